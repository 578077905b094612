"""The format of torch.save since 1.6: an archive with the pickle in data.pkl and one record a storage."""

import re
from typing import Any, Optional, Tuple

from ddp_probe.checkpoints import fill, stored_tensors
from ddp_probe.checkpoints.checkpoint_file import FileRange
from ddp_probe.checkpoints.cut_archive import explain_cut
from ddp_probe.checkpoints.judged import BROKEN, UNKNOWN, WHOLE, BrokenError, Damage, Judged, UnknownError, WeightsOnlyAnswer
from ddp_probe.checkpoints.pickle_machine import Machine
from ddp_probe.checkpoints.pickle_stream import PickleStream
from ddp_probe.checkpoints.stored_tensors import Contents
from ddp_probe.checkpoints.zip_archive import Archive, ZipEntry, find_end, read_directory
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted, size

_INFLATED = 64 << 20  # torch does not compress; so much of a compressed data.pkl is followed.
_SMALL = 64 << 20  # Records that are always checked, unless they are a tensor's.
_NEWEST = 10  # torch 2.13 reads up to this version of the archive.
_FAULTS = 100
_NO_PICKLE = say("The archive has no data.pkl.")


def judge(source: FileRange, judged: Judged) -> None:
    """Judge an archive."""
    judged.kind = "torch zip"
    end = find_end(source)
    if end is None:
        explain_cut(source, judged)
        return
    archive = Archive(source, read_directory(source, end))
    prefix = archive.entries[0].name.partition("/")[0] + "/" if archive.entries else ""
    _judge(archive, prefix, judged)
    judged.faults.extend(archive.faults)
    if archive.faults:
        judged.verdict = BROKEN
    if archive.directory.behind:
        judged.remarks.append(say("{count} bytes follow the end of the archive.", count=archive.directory.behind))


def _judge(archive: Archive, prefix: str, judged: Judged) -> None:
    names = archive.by_name
    if prefix + "constants.pkl" in names:
        judged.kind = "TorchScript"
    elif prefix + "data.pkl" not in names:
        _another(archive, prefix, judged)
        return
    judged.verdict = WHOLE
    _folder(archive, prefix, judged)
    _versions(archive, prefix, judged)
    _checksums(archive, prefix, judged)
    entry = names.get(prefix + "data.pkl")
    if entry is None:
        judged.broken(Damage(_NO_PICKLE))
        return
    try:
        root, machine, contents = _follow(archive, entry)
    except UnknownError as exc:
        judged.because, judged.verdict = exc.because, judged.verdict if judged.verdict == BROKEN else UNKNOWN
        return
    except BrokenError as exc:
        judged.broken(exc.fault)
        return
    fill.from_pickle(judged, root, machine, contents)
    if judged.kind == "TorchScript":
        judged.weights_only = WeightsOnlyAnswer(accepted=False, because=say("it is a TorchScript archive"))
        judged.classes = [name for name in judged.classes if not name.startswith("__torch__")]
    _contents(contents, entry, judged)
    _storages(archive, prefix, contents, judged)


def _folder(archive: Archive, prefix: str, judged: Judged) -> None:
    stray = next((entry for entry in archive.entries if not entry.name.startswith(prefix)), None)
    if stray is not None:
        text = say(
            "This record is not in the folder {folder} of the archive; torch.load refuses that.",
            folder=quoted(prefix[:200]),
        )
        judged.broken(Damage(text, stray.name[:200], stray.offset))
    if any(".." in entry.name.split("/") for entry in archive.entries):
        judged.remarks.append(say("A record's name has '..' in it, which torch never writes."))


def _contents(contents: Contents, entry: ZipEntry, judged: Judged) -> None:
    for fault in contents.faults:
        judged.broken(fault)
    for storage, needed in stored_tensors.beyond(contents):
        text = say(
            "Tensors need {needed} elements of the storage {key}, for which the pickle asks {asked}.",
            needed=needed,
            key=quoted(storage.key),
            asked=storage.elements,
        )
        judged.broken(Damage(text, entry.name))


def _another(archive: Archive, prefix: str, judged: Judged) -> None:
    names = [entry.name for entry in archive.entries]
    if not names:
        judged.broken(Damage(say("The directory of the archive is empty."), "", archive.directory.offset))
        return
    if prefix + "version" in names or any(name.startswith((prefix + "data/", prefix + ".data/")) for name in names):
        judged.broken(Damage(_NO_PICKLE))
        return
    if all(name.endswith(".npy") for name in names):
        judged.kind, judged.verdict = "numpy archive", WHOLE
        judged.because = say("It is an archive of numpy (numpy.savez): numpy.load reads it, torch.load does not.")
        _checksums(archive, prefix, judged)
        return
    judged.kind = "zip archive"
    judged.because = say("It is a zip archive without data.pkl: torch.save did not write it.")


def _versions(archive: Archive, prefix: str, judged: Judged) -> None:
    entry = archive.by_name.get(prefix + "version") or archive.by_name.get(prefix + ".data/version")
    if entry is None:
        judged.broken(Damage(say("The archive has no record 'version', which torch.load insists on.")))
        return
    text = archive.small(entry, 20)
    number = re.match(rb"\s*\+?(\d+)", text)  # As std::stoull does, ignore what follows the digits.
    if number is None or not 1 <= int(number.group(1)) <= _NEWEST:
        wrong = say(
            "The version of the archive is {version}; torch reads 1 to {newest}.",
            version=quoted(repr(text[:20].decode("latin-1"))),
            newest=_NEWEST,
        )
        judged.broken(Damage(wrong, entry.name, entry.offset))
    order = archive.by_name.get(prefix + "byteorder")
    alignment = archive.by_name.get(prefix + ".storage_alignment")
    if alignment is not None and not archive.small(alignment, 20).strip().isdigit():
        judged.broken(Damage(say("The record .storage_alignment is not a number."), alignment.name, alignment.offset))
    if order is not None and archive.small(order, 20) not in (b"little", b"big"):
        judged.broken(Damage(say("The record byteorder is neither little nor big."), order.name, order.offset))


def _checksums(archive: Archive, prefix: str, judged: Judged) -> None:
    """Check the records that are not a tensor's, and with --deep all of them."""
    passed_over = 0
    for entry in archive.entries:
        small = entry.size <= _SMALL and entry.packed <= _SMALL and not entry.name.startswith(prefix + "data/")
        if judged.deep or small:
            archive.check(entry)
        else:
            passed_over += 1
    if passed_over:
        judged.remarks.append(say("The checksums of {count} records were not compared: --deep compares them.", count=passed_over))


def _follow(archive: Archive, entry: ZipEntry) -> Tuple[Any, Machine, Contents]:
    if entry.method:
        data = archive.small(entry, _INFLATED)
        if len(data) >= _INFLATED:
            raise UnknownError(say("data.pkl is compressed, and inflates to more than {limit}.", limit=size(_INFLATED)))
        stream = PickleStream(_Memory(data))
    else:
        record = archive.record(entry)
        if record is None:
            raise BrokenError(say("data.pkl is not there."), entry.name, entry.offset)
        stream = PickleStream(record)
    machine = Machine()
    root = machine.run(stream, entry.name)
    return root, machine, stored_tensors.read(root, machine.persistent)


class _Memory(FileRange):
    """Bytes in memory, read as a file is."""

    def __init__(self, data: bytes) -> None:
        super().__init__(-1, 0, len(data))
        self._data = data

    def read(self, offset: int, length: int) -> bytes:
        """Return a range."""
        return self._data[max(offset, 0) : max(offset, 0) + max(length, 0)]


def _storages(archive: Archive, prefix: str, contents: Contents, judged: Judged) -> None:
    """Check that each storage that the pickle asks for is there, with as many bytes as it asks for."""
    missing = 0
    for storage in contents.storages.values():
        name = "%sdata/%s" % (prefix, storage.key)
        entry = archive.by_name.get(name)
        if entry is None and judged.kind == "TorchScript":
            continue
        if entry is None and storage.device == "meta":
            continue
        fault: Optional[Damage] = None
        if entry is None:
            fault = Damage(say("The pickle asks for this record, and the archive does not have it."), name)
        elif entry.size != storage.bytes:
            text = say(
                "The pickle asks for {asked} bytes of this record, and it has {count}.",
                asked=storage.bytes,
                count=entry.size,
            )
            fault = Damage(text, name, entry.offset)
        if fault is not None:
            missing += 1
            judged.verdict = BROKEN
            if missing <= _FAULTS:
                judged.faults.append(fault)
    unused = sum(entry.name.startswith(prefix + "data/") for entry in archive.entries) - len(contents.storages) + missing
    if unused > 0 and judged.kind != "TorchScript":
        judged.remarks.append(say("{count} records of storages that the pickle does not ask for.", count=unused))
