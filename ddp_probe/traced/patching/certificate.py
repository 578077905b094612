"""What undo returns: each slot, whether it is as it was, and who still holds a wrapper."""

from typing import Any, Dict, List, NamedTuple

from ddp_probe.traced.patching.call import Target

_EXCUSED = ("overwritten", "unreachable")


class Entry(NamedTuple):
    """One slot; its kind is attribute, alias, slot (made by us, removed), code, spliced, overwritten or unreachable."""

    target: Target
    slot: str
    kind: str
    restored: bool
    why: str


class Certificate:
    """Every entry of one undo, checked by identity.

    It is ok if every slot that still led to our wrapper is as it was. An overwritten slot is no longer ours to restore; an
    unreachable holder keeps a retired wrapper, which only calls the original. Both are listed.
    """

    def __init__(self, entries: List[Entry]) -> None:
        self.entries = entries

    @property
    def ok(self) -> bool:
        """Tell whether everything that could be put back is back."""
        return all(entry.restored or entry.kind in _EXCUSED for entry in self.entries)

    def lines(self) -> List[str]:
        """Return one sentence for each entry."""
        return ["%s: %s: %s" % (entry.slot, entry.kind, entry.why) for entry in self.entries]

    def as_dict(self) -> Dict[str, Any]:
        """Return the certificate as plain data."""
        return {"ok": self.ok, "entries": [dict(entry._asdict(), target=str(entry.target)) for entry in self.entries]}
