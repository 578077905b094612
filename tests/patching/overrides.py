"""An override made of functions, and the changes that it makes."""

from ddp_probe.traced.patching import Change, Override, Target

ACT = Target("probed_lib", "act")


class Doing(Override):
    """An override made of functions; it notes at which moments it was asked, and what it was told to record."""

    def __init__(self, name="doing", tries=1, **moments):
        self.name = name
        self.tries = tries
        self.begin = []
        self.recorded = []
        self.moments = moments

    def _do(self, moment, *args):
        self.begin.append(moment)
        return self.moments.get(moment, lambda *_: None)(*args)

    def prepare(self, call):
        """Answer as told."""
        return self._do("prepare", call)

    def rescue(self, call, exc):
        """Answer as told."""
        return self._do("rescue", call, exc)

    def settled(self, call, result):
        """Answer as told."""
        return self._do("settled", call, result)

    def record(self, call, change):
        """Note the change, or fail as told."""
        self.moments.get("record", lambda *_: None)(call, change)
        self.recorded.append((call.target.qualname, change.before, change.after, change.because))


def change(arguments=None, **steps):
    """Return a change of the arguments, or of what the steps say."""
    return Change({"old": 1}, {"new": 2}, "it was told to", arguments=arguments, **steps)


def answer(result, **steps):
    """Return a change that answers in place of the call."""
    return Change.answer(result, {"old": 1}, {"new": result}, "it was told to", **steps)
