"""At which call the ranks of a run part, as reading/splits.py tells it, with what the logs and the job's own source know besides."""

from typing import Optional, Tuple
from weakref import WeakKeyDictionary

from ddp_probe.judging._halted import halted
from ddp_probe.judging._rank_branch import branch
from ddp_probe.judging.ledgers import view
from ddp_probe.reading import splits
from ddp_probe.reading.model import Run
from ddp_probe.reading.splits import Split

_SPLITS: "WeakKeyDictionary[Run, Tuple[Optional[Split]]]" = WeakKeyDictionary()


def split(run: Run) -> Optional[Split]:
    """Return where the ranks of a run part first; None if they do not."""
    found = _SPLITS.get(run)
    if found is None:
        seen = view(run)
        parted = splits.differing(seen)
        told = _by_source(parted) or splits.narrowed(seen, parted) if parted is not None else None
        found = _SPLITS[run] = (told or splits.halt(seen, halted(run, seen)) or splits.stalled(seen),)
    return found[0]


def _by_source(parted: Split) -> Optional[Split]:
    """Blame the one side whose call stands under an `if` on the rank; None if the majority tells, or if both do, or neither."""
    told = [(line, ranks) for call, ranks in parted.calls for line in [branch(call.site)] if line is not None]
    if len(parted.blame) <= len(parted.there) or len(told) != 1 or len({call.site for call, _ in parted.calls}) < 2:
        return None
    return parted._replace(branch=told[0][0], blame=told[0][1])
