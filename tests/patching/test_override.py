"""A mend may change a call before it, in its place and after it has failed; whatever fails in the mend, the job's call stays as it was made."""

import sys
import traceback
import warnings
from pathlib import Path

import pytest

import ddp_probe
from ddp_probe.patching import Target, clean_exception, guard
from ddp_probe.patching.override import Change, Override

LOAD = Target("probed_lib", "load")
PACKAGE = str(Path(ddp_probe.__file__).parent)


class Doing(Override):
    """A mend made of functions; it writes down which moments it was asked at."""

    def __init__(self, name="doing", tries=1, **moments):
        self.name = name
        self.tries = tries
        self.begin = []
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


def _with(**ends):
    change = Change(ends.pop("arguments", None))
    for name, step in ends.items():
        setattr(change, name, step)
    return change


@pytest.fixture
def quiet(monkeypatch):
    """Faults of a mend are held back, as in a real run."""
    monkeypatch.delenv("DDP_PROBE_STRICT", raising=False)


@pytest.fixture
def calls(lib):
    """A function of the library that notes how it was called, and fails for the word fail."""
    seen = []

    def act(what, times=1, *rest, flag=False, **options):
        """Do something."""
        seen.append((what, times, rest, flag, options))
        if what == "fail":
            raise KeyError(what)
        return what

    lib.act = act
    return seen


ACT = Target("probed_lib", "act")


@pytest.mark.parametrize(
    ("args", "kwargs", "seen"),
    [
        (("a",), {}, ("a", 9, (), True, {"more": 1})),
        (("a", 2), {}, ("a", 9, (), True, {"more": 1})),
        (("a", 2, "b", "c"), {"flag": False}, ("a", 9, ("b", "c"), True, {"more": 1})),
        ((), {"times": 2, "what": "a", "more": 0, "other": 3}, ("a", 9, (), True, {"more": 1, "other": 3})),
    ],
)
def test_arguments_change_where_they_were_passed(lib, ledger, calls, args, kwargs, seen):
    """An argument is changed by its name, be it passed by place, by name, as a further keyword or not at all; the others stay."""
    ledger.apply(ACT, Doing(prepare=lambda call: Change({"times": 9, "flag": True, "more": 1})))
    assert lib.act(*args, **kwargs) == "a"
    assert calls == [seen]


def test_a_method_keeps_its_instance(lib, ledger):
    """A method's argument is changed on the very instance, on a bound method kept from before, and through the class."""
    ledger.apply(Target("probed_lib", "Model.to"), Doing(prepare=lambda call: Change({"device": "card"})))
    model = lib.Model()
    kept = model.to
    assert model.to("cpu") == kept(device="cpu") == lib.Model.to(model, "cpu") == (model, "card")


def test_a_method_that_binds_in_its_own_way(lib, ledger):
    """Another tool's decorator around a method does not shift the arguments."""
    wrapt = pytest.importorskip("wrapt")

    @wrapt.decorator
    def theirs(wrapped, instance, args, kwargs):
        return wrapped(*args, **kwargs)

    lib.Model.to = theirs(lib.Model.to)
    told = []
    override = Doing(prepare=lambda call: told.append((call.instance, call.arguments())) or Change({"device": "card"}))
    ledger.apply(Target("probed_lib", "Model.to"), override)
    model = lib.Model()
    assert model.to("cpu") == lib.Model.to(model, "cpu") == (model, "card")
    assert told == [(model, {"device": "cpu"})] * 2


def test_mends_are_asked_in_their_order(lib, ledger, calls):
    """A mend sees what those before it have changed; the watch sees the call as the job made it."""
    seen = []
    ledger.apply(ACT, Doing("one", prepare=lambda call: Change({"what": "b"})))
    ledger.apply(ACT, Doing("two", prepare=lambda call: Change({"what": call.arguments()["what"] + "c"})))
    watch = Doing("three")
    watch.prepare = lambda call: seen.append(call.arguments()["what"])
    ledger.apply(ACT, watch)
    assert lib.act("a") == "bc"
    assert seen == ["bc"]


def test_the_watch_sees_the_jobs_own_call_once(lib, ledger, calls, recorder):
    """What is recorded is the call of the job, once, however often the original was called for it."""
    watch = recorder()
    ledger.apply(ACT, watch)
    ledger.apply(ACT, Doing(rescue=lambda call, exc: Change({"what": "b"})))
    assert lib.act("fail") == "b"
    assert watch.seen == [("before", "act", {"what": "fail"}), ("after", "act", "b")]
    assert len(calls) == 2


def test_nothing_changed_is_called_once(lib, ledger, calls):
    """Where no mend wants anything, the original is called once, with the very arguments, and its very result comes back."""
    override = Doing()
    ledger.apply(ACT, override)
    what = ["a"]
    assert lib.act(what, 2, "b", flag=True, more=1) is what
    assert calls == [(["a"], 2, ("b",), True, {"more": 1})]
    assert calls[0][0] is what
    assert override.begin == ["prepare", "settled"]


def test_in_place_of_the_call(lib, ledger, calls):
    """A mend can answer instead: before the call, for its failure, and for its result."""
    for moment, asked in (("prepare", 0), ("rescue", 1), ("settled", 1)):
        calls.clear()
        ledger.apply(ACT, Doing(**{moment: lambda *_: Change.to("mine")}))
        assert lib.act("fail" if moment == "rescue" else "a") == "mine"
        assert len(calls) == asked
        ledger.undo()


def test_a_rescue_has_its_tries(lib, ledger, calls):
    """A call that goes on failing is made as often as the mend has tries, and once; the last exception is the job's."""
    override = Doing(tries=3, rescue=lambda call, exc: Change())
    ledger.apply(ACT, override)
    with pytest.raises(KeyError):
        lib.act("fail")
    assert len(calls) == 4
    assert override.begin == ["prepare", *["rescue"] * 3]


def test_a_result_that_must_not_be_believed(lib, ledger, calls):
    """A result is fetched again as long as the mend has tries; then it passes as it is."""
    ledger.apply(ACT, Doing(tries=2, settled=lambda call, result: Change()))
    assert lib.act("a") == "a"
    assert len(calls) == 3


def test_a_note_of_its_own(lib, ledger, calls):
    """What a mend notes at one moment it finds at the next, and no other mend does."""
    told = []

    def note(call):
        told.append(call.note)
        call.note = "mine"

    ledger.apply(ACT, Doing("one", tries=2, prepare=note, rescue=lambda call, exc: told.append(call.note) or Change()))
    ledger.apply(ACT, Doing("two", rescue=lambda call, exc: told.append(call.note)))
    with pytest.raises(KeyError):
        lib.act("fail")
    assert told == [None, "mine", "mine", None]
    lib.act("a")
    assert told[-1] is None


def test_what_follows_a_call(lib, ledger, calls):
    """After a call that went well the changes are done, the last one first; after a failure each of them is left."""
    steps = []

    def change(name):
        return lambda call: _with(done=lambda: steps.append("done " + name), left=lambda: steps.append("left " + name))

    ledger.apply(ACT, Doing("one", prepare=change("one")))
    ledger.apply(ACT, Doing("two", prepare=change("two")))
    lib.act("a")
    assert steps == ["done two", "done one"]
    steps.clear()
    with pytest.raises(KeyError):
        lib.act("fail")
    assert steps == ["left two", "left one"]


def test_what_follows_and_fails_is_the_calls_failure(lib, ledger, calls):
    """Where the last step of a change fails, such as a rename, the call has failed: its exception passes, and every change is left."""
    steps, full = [], OSError(28, "No space left on device")

    def done():
        raise full

    ledger.apply(ACT, Doing("one", prepare=lambda call: _with(done=lambda: steps.append("done"), left=lambda: steps.append("left one"))))
    ledger.apply(ACT, Doing("two", prepare=lambda call: _with(done=done, left=lambda: steps.append("left two"))))
    with pytest.raises(OSError, match="No space left") as caught:
        lib.act("a")
    assert caught.value is full
    assert steps == ["left two", "left one"]


@pytest.mark.parametrize("moment", ["prepare", "rescue", "settled"])
def test_a_fault_of_a_mend_changes_nothing(lib, ledger, calls, quiet, moment):
    """A mend that fails is counted, the original is called once, and its result or its exception passes; other mends go on."""
    ledger.apply(ACT, Doing("broken", tries=5, **{moment: lambda *_: 1 / 0}))
    other = Doing("other")
    ledger.apply(ACT, other)
    if moment == "rescue":
        with pytest.raises(KeyError) as caught:
            lib.act("fail")
        assert caught.value.__context__ is None
        assert caught.value.__cause__ is None
    else:
        assert lib.act("a") == "a"
    assert len(calls) == 1
    assert guard.counts == {"broken": 1}
    assert moment in other.begin


def test_a_mend_that_keeps_failing_is_switched_off(lib, ledger, calls, quiet):
    """After five faults a mend is not asked any more."""
    override = Doing(prepare=lambda call: 1 / 0)
    ledger.apply(ACT, override)
    for _ in range(8):
        assert lib.act("a") == "a"
    assert override.begin.count("prepare") == 5
    assert len(calls) == 8


@pytest.mark.parametrize("arguments", [{"no_such_parameter": 1}, {"device": "card"}])
def test_a_change_that_does_not_fit(lib, ledger, quiet, arguments):
    """A change that the original could not be called with is a fault; the call is made as the job made it, and the change is left."""
    left = []
    ledger.apply(Target("probed_lib", "outer"), Doing(prepare=lambda call: _with(arguments=arguments, left=lambda: left.append(1))))
    assert lib.outer("a") == ("a", "r", (), {})
    assert left == [1]
    assert guard.counts == {"doing": 1}


def test_a_call_that_does_not_fit_fails_as_ever(lib, ledger, quiet):
    """A call with arguments that the original does not take raises the original's own TypeError."""
    with pytest.raises(TypeError) as plain:
        lib.outer()
    ledger.apply(Target("probed_lib", "outer"), Doing(prepare=lambda call: Change({"path": "a"}) if call.arguments() else None))
    with pytest.raises(TypeError) as caught:
        lib.outer()
    assert str(caught.value) == str(plain.value)


def test_an_original_without_a_signature(lib, ledger, quiet):
    """An argument of an original that has no signature cannot be changed by its name: a fault, and the call as the job made it."""
    lib.largest = max
    ledger.apply(Target("probed_lib", "largest"), Doing(prepare=lambda call: Change({"key": None})))
    assert lib.largest([1, 3, 2]) == 3
    assert guard.counts == {"doing": 1}


def test_a_fault_while_leaving_does_not_hide_the_failure(lib, ledger, calls, quiet):
    """What fails after a failure is counted as a fault; the job gets its own exception, and the other changes are left."""
    left = []
    ledger.apply(ACT, Doing("one", prepare=lambda call: _with(left=lambda: left.append(1))))
    ledger.apply(ACT, Doing("two", prepare=lambda call: _with(left=lambda: 1 / 0)))
    with pytest.raises(KeyError) as caught:
        lib.act("fail")
    assert caught.value.__context__ is None
    assert left == [1]


def test_the_very_exception_passes(lib, ledger):
    """The job's exception object arrives with nothing linked to it; without the probe's frames it reads as without a remedy."""
    mine = KeyError("mine")

    def fails():
        raise mine

    lib.fails = fails
    ledger.apply(Target("probed_lib", "fails"), Doing())
    with pytest.raises(KeyError) as caught:
        lib.fails()
    assert caught.value is mine
    assert mine.__context__ is mine.__cause__ is None
    clean_exception(mine)
    names = [entry.filename for entry in traceback.extract_tb(mine.__traceback__)]
    assert not [name for name in names if name.startswith(PACKAGE)]
    assert len(names) == 2


def test_the_second_exception_is_not_linked_to_the_first(lib, ledger):
    """Where the call is made again and fails again, the job gets the second exception alone."""
    raised = []

    def fails():
        raised.append(KeyError(len(raised)))
        raise raised[-1]

    lib.fails = fails
    ledger.apply(Target("probed_lib", "fails"), Doing(rescue=lambda call, exc: Change()))
    with pytest.raises(KeyError) as caught:
        lib.fails()
    assert caught.value is raised[1]
    assert caught.value.__context__ is None


def test_the_handled_exception_is_still_seen(lib, ledger):
    """Inside an except block the original sees the exception that is being handled, at the second try as at the first."""
    seen = []

    def look():
        seen.append(sys.exc_info()[1])
        if len(seen) < 2:
            raise KeyError("again")

    lib.look = look
    ledger.apply(Target("probed_lib", "look"), Doing(rescue=lambda call, exc: Change()))
    first = ValueError("first")
    try:
        raise first
    except ValueError:
        lib.look()
    assert seen == [first, first]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_is_no_exception_is_not_rescued(lib, ledger, kind):
    """An interruption passes at once; what was changed for the call is left."""
    left = []

    def fails():
        raise kind()

    lib.fails = fails
    override = Doing(prepare=lambda call: _with(left=lambda: left.append(1)), rescue=lambda call, exc: Change())
    ledger.apply(Target("probed_lib", "fails"), override)
    with pytest.raises(kind):
        lib.fails()
    assert (override.begin, left) == (["prepare"], [1])


def test_an_interruption_of_a_mend_is_the_jobs(lib, ledger, calls, quiet):
    """Ctrl-C while a mend waits ends the call as it would have ended the original."""

    def wait(call):
        raise KeyboardInterrupt

    ledger.apply(ACT, Doing(prepare=wait))
    with pytest.raises(KeyboardInterrupt):
        lib.act("a")
    assert calls == []


def test_warnings_point_at_the_jobs_line(lib, ledger):
    """A warning with stacklevel=2 names this file and the line of the call, at the second try as at the first."""

    def old():
        warnings.warn("old", DeprecationWarning, stacklevel=2)
        raise KeyError

    lib.old = old
    ledger.apply(Target("probed_lib", "old"), Doing(rescue=lambda call, exc: Change()))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        line = sys._getframe().f_lineno + 2
        with pytest.raises(KeyError):
            lib.old()
    assert [(entry.filename, entry.lineno) for entry in caught] == [(__file__, line)] * 2


def test_deep_recursion_ends_as_it_would(lib, ledger, quiet):
    """A mended function that recurses for ever raises RecursionError, and is mended again afterwards."""

    def forever(deep):
        return lib.forever(deep) if deep else "flat"

    lib.forever = forever
    ledger.apply(Target("probed_lib", "forever"), Doing())
    with pytest.raises(RecursionError):
        lib.forever(True)
    override = Doing("second", prepare=lambda call: Change.to("mended"))
    ledger.apply(Target("probed_lib", "forever"), override)
    assert lib.forever(False) == "mended"


def test_a_mend_does_not_see_its_own_calls(lib, ledger, calls):
    """What a mend calls itself is neither watched nor mended."""
    override = Doing(prepare=lambda call: lib.act("own") and None)
    ledger.apply(ACT, override)
    assert lib.act("a") == "a"
    assert override.begin == ["prepare", "settled"]
    assert [call[0] for call in calls] == ["own", "a"]


def test_without_mends_one_frame(lib, ledger, recorder):
    """A seat that is only watched stays with one frame of ours on the stack, also once another seat is mended."""
    lib.look = lambda: [entry for entry in traceback.extract_stack() if entry.filename.startswith(PACKAGE)]
    ledger.apply(Target("probed_lib", "look"), recorder())
    ledger.apply(Target("probed_lib", "outer"), Doing())
    assert len(lib.look()) == 1


def test_undo_takes_mends_away(lib, ledger, calls):
    """After undo the very original is in its place; a wrapper that somebody kept calls it unchanged."""
    original = lib.act
    override = Doing(prepare=lambda call: Change({"what": "b"}))
    ledger.apply(ACT, override)
    kept = lib.act
    assert lib.act("a") == kept("a") == "b"
    assert ledger.undo().ok
    assert lib.act is original
    assert lib.act("a") == kept("a") == "a"
    assert override.begin == ["prepare", "settled"] * 2
