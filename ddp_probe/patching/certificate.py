"""What undo hands back: each place, whether it is as it was, and who still holds on to a wrapper."""

from typing import Any, Dict, List, NamedTuple

from .target import Target

_EXCUSED = ("overwritten", "unreachable")


class Entry(NamedTuple):
    """One place: attribute, alias, slot (made by us, removed), spliced, overwritten or unreachable."""

    target: Target
    slot: str
    kind: str
    restored: bool
    why: str


class Certificate:
    """Every entry of one undo, checked by identity.

    It is ok when every place that still led to us is as it was. An overwritten place was no longer ours to restore; an
    unreachable holder keeps a retired wrapper, which calls the original and nothing else. Both are listed.
    """

    def __init__(self, entries: List[Entry]) -> None:
        self.entries = entries

    @property
    def ok(self) -> bool:
        """Tell whether nothing that could be put back is missing."""
        return all(entry.restored or entry.kind in _EXCUSED for entry in self.entries)

    def lines(self) -> List[str]:
        """Return one sentence for each entry."""
        return ["%s: %s: %s" % (entry.slot, entry.kind, entry.why) for entry in self.entries]

    def as_dict(self) -> Dict[str, Any]:
        """Return the certificate as plain data."""
        return {"ok": self.ok, "entries": [dict(entry._asdict(), target=str(entry.target)) for entry in self.entries]}
