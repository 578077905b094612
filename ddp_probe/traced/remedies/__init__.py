"""Changes to a job's calls, one file each, made only if DDP_PROBE_FIX asks for them. Each one is recorded, and restore() undoes it.

What every remedy is: when it applies, what it changes, and a record of both. A remedy that might be wrong does nothing and says why.
"""

from typing import Any, ClassVar, Dict, Set, Tuple

from ddp_probe.activation.targets import FIX
from ddp_probe.shared import schema
from ddp_probe.traced.facts.call_site import call_path
from ddp_probe.traced.facts.describe import describe
from ddp_probe.traced.patching import Call, Change, Override
from ddp_probe.traced.session import Session

_OFTEN = 20


class Remedy(Override):
    """A change to a call that avoids a common failure; made only with DDP_PROBE_FIX, and always logged.

    REMEDY in a remedy's file names its class, and the docstring of that class says what it does.
    What it may change, when and in which order is declared here and in no other file: scripts/render_docs prints
    ddp_probe/shared/declared.py and docs/remedies.md from it.
    """

    word: ClassVar[str] = ""
    """Its name in DDP_PROBE_FIX: that of its file, with hyphens."""

    order: ClassVar[int] = 0
    """Of the remedies of one call, the lowest number acts first."""

    targets: ClassVar[Tuple[str, ...]] = ()
    """The calls that it may change, as module:qualname."""

    when: ClassVar[str] = ""
    """When it applies by itself under auto; printed in docs/remedies.md."""

    for_good: ClassVar[str] = ""
    """The same change in code: the remedy is needed only until then."""

    def __init__(self, session: Session) -> None:
        self.name = FIX + self.word
        self.session = session
        self._said: Set[str] = set()
        self._times: Dict[str, int] = {}

    def forget(self) -> None:
        """Reset the counters and say each thing again: this child is a rank of its own."""
        self._said.clear()
        self._times.clear()

    def record(self, call: Call, change: Change) -> None:
        """Write an event for a change, and one line on stderr for the first of each kind; called before every change."""
        count = self._times[call.label] = self._times.get(call.label, 0) + 1
        if count > _OFTEN and count & (count - 1):  # A collective of every step: from here on the 32nd, the 64th, the 128th …
            return
        site, through = call_path()
        before, after = _described(change.before), _described(change.after)
        self.session.recorder.point(
            schema.Remedied(
                remedy=self.word,
                target=call.label,
                before=before,
                after=after,
                because=change.because,
                precaution=change.precaution,
                for_good=self.for_good,
                site=site,
                through=through,
            )
        )
        self._say(site, "%s: %s, because %s" % (self.word, _changed(before, after), change.because), change.because)

    def declined(self, call: Call, because: str) -> None:
        """Write, once for each reason, that nothing was done."""
        if because in self._said:
            return
        site, through = call_path()
        self.session.recorder.point(schema.Declined(remedy=self.word, target=call.label, because=because, site=site, through=through))
        self._say(site, "%s does nothing: %s" % (self.word, because), because)

    def _say(self, site: Any, text: str, key: str) -> None:
        if key not in self._said:
            self._said.add(key)
            rank = self.session.process.rank
            where = " at %s:%d" % (site.file, site.line) if site is not None else ""
            self.session.recorder.warn("rank %s%s: DDP_PROBE_FIX %s." % ("?" if rank is None else rank, where, text))


def _described(values: Dict[str, Any]) -> Dict[str, str]:
    return {name: value if type(value) is str else describe(value) for name, value in values.items()}


def _changed(before: Dict[str, str], after: Dict[str, str]) -> str:
    if not after:
        return "%s was skipped" % ", ".join("%s(%s)" % pair for pair in before.items())
    return "%s became %s" % tuple(", ".join("%s=%s" % pair for pair in values.items()) for values in (before, after))
