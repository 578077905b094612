"""Tells how far an archive without its end goes, from the order in which torch writes the records."""

import contextlib
import struct
from typing import Dict, List, Optional, Tuple

from ddp_probe.checkpoints import fill, stored_tensors
from ddp_probe.checkpoints.checkpoint_file import FileRange
from ddp_probe.checkpoints.judged import BrokenError, Damage, Judged, UnknownError
from ddp_probe.checkpoints.pickle_machine import Machine
from ddp_probe.checkpoints.pickle_stream import PickleStream
from ddp_probe.checkpoints.stored_tensors import Contents
from ddp_probe.wording.text import joined, say

_UNDESCRIBED = 4096  # Maximum bytes of a record whose size is not known: a version, a byte order.


def explain_cut(source: FileRange, judged: Judged) -> None:
    """Say how much of the archive is there. The directory is at the end, so only the records' headers are left."""
    text = say("The archive has no end: it was cut off, or its writer has not finished.")
    reached = _Reached(source)
    with contextlib.suppress(UnknownError, BrokenError):
        reached.walk(judged)
    judged.broken(Damage(joined([text, reached.words()]), reached.record, source.size))


class _Reached:
    """How far an archive that was cut goes."""

    def __init__(self, source: FileRange) -> None:
        self._source = source
        self.record = ""
        self._pickled: Optional[Contents] = None
        self._complete: List[str] = []
        self._at = 0

    def words(self) -> str:
        """Return one sentence; empty if nothing is known."""
        if self._pickled is None:
            return say("It ends within data.pkl.") if self.record.endswith("data.pkl") else ""
        asked = self._pickled.storages
        there = sum(name.partition("/")[2].startswith("data/") for name in self._complete)
        total = sum(storage.bytes for storage in asked.values())
        return say(
            "{complete} of {total} storages are complete; the file has {count} bytes of at least {least}.",
            complete=there,
            total=len(asked),
            count=self._source.size,
            least=self._least(total),
        )

    def _least(self, storages: int) -> int:
        return max(storages + self._begin, self._source.size + 1)

    def walk(self, judged: Judged) -> None:
        """Follow the records from the first one, which is data.pkl."""
        name, start = self._header(0)
        self.record, self._begin = name, start
        if not name.endswith("/data.pkl"):
            return
        machine = Machine()
        stream = PickleStream(self._source, start)
        root = machine.run(stream, name)
        self._pickled = stored_tensors.read(root, machine.persistent)
        fill.from_pickle(judged, root, machine, self._pickled)
        self._at = self._begin = stream.tell()
        prefix = name[: -len("data.pkl")]
        sizes: Dict[str, int] = {"%sdata/%s" % (prefix, key): storage.bytes for key, storage in self._pickled.storages.items()}
        self._complete.append(name)
        self._follow(sizes)

    def _header(self, offset: int) -> Tuple[str, int]:
        header = self._source.read(offset, 30)
        if len(header) < 30 or header[:4] != b"PK\x03\x04":
            raise BrokenError(say("There is no record here."), "", offset)
        name, extra = struct.unpack_from("<HH", header, 26)
        raw = self._source.read(offset + 30, name)
        return raw.decode("utf-8", "backslashreplace"), offset + 30 + name + extra

    def _follow(self, sizes: Dict[str, int]) -> None:
        at = self._behind(self._at)
        while at is not None:
            name, start = self._header(at)
            self.record = name
            size = sizes.get(name)
            if size is None:
                place = self._source.read(start, _UNDESCRIBED).find(b"PK\x07\x08")
                if place < 0:
                    return
                size = place
            if start + size > self._source.size:
                return
            self._complete.append(name)
            at = self._behind(start + size)

    def _behind(self, at: int) -> Optional[int]:
        """Return where the next record begins: after the data descriptor, which is 16 or 24 bytes, or absent."""
        held = self._source.read(at, 28)
        for skipped in (16, 24) if held[:4] == b"PK\x07\x08" else (0,):
            if held[skipped : skipped + 4] in (b"PK\x03\x04", b"PK\x01\x02"):
                return at + skipped
        return None
