"""The format of torch.save before 1.6: five pickles in a row, then each storage with its size before it."""

from typing import Any, Sequence, Tuple

from ddp_probe.checkpoints import fill, stored_tensors, weights_only
from ddp_probe.checkpoints.checkpoint_file import FileRange
from ddp_probe.checkpoints.judged import WHOLE, BrokenError, Damage, Judged
from ddp_probe.checkpoints.pickle_machine import Machine
from ddp_probe.checkpoints.pickle_stream import Mapping, PickledSet, PickleStream
from ddp_probe.checkpoints.stored_tensors import Contents, Storage
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted

MAGIC = 0x1950A86A20F9469CFC6C
_PROTOCOL = 1001
_NO_LIST = say("The list of storages is not a list.")


def judge(source: FileRange, judged: Judged) -> None:
    """Judge the pickles, and that the storages add up to the file's end."""
    judged.kind, judged.verdict = "torch legacy", WHOLE
    stream = PickleStream(source)
    machine = Machine()
    try:
        _preface(machine, stream, judged)
        root = machine.run(stream, say("the object"))
        contents = stored_tensors.read(root, machine.persistent)
        fill.from_pickle(judged, root, machine, contents)
        for fault in contents.faults:
            judged.broken(fault)
        keys = machine.run(stream, say("the list of storages"))
        judged.weights_only = weights_only.weights_only_answer(machine)
        _storages(source, stream.tell(), keys, contents, judged)
    except BrokenError as exc:
        judged.broken(exc.fault)
    judged.remarks.append(say("This format has no checksums: only its sizes are judged."))


def _preface(machine: Machine, stream: PickleStream, judged: Judged) -> None:
    machine.run(stream, say("the magic number"))
    if machine.run(stream, say("the protocol")) != _PROTOCOL:
        text = say("The protocol number is not {protocol}; torch.load refuses it.", protocol=_PROTOCOL)
        raise BrokenError(text, say("the protocol"), 0)
    system = machine.run(stream, say("the system's sizes"))
    if type(system) is Mapping and system.get("little_endian") is False:
        judged.remarks.append(say("It was written on a host with big-endian numbers."))


def _storages(source: FileRange, at: int, keys: Any, contents: Contents, judged: Judged) -> None:
    listed, seen = _listed(keys, at, judged), set()
    for number, key in enumerate(listed):
        name = key.decode("utf-8", "replace") if type(key) is bytes else str(key) if type(key) in (str, int) else ""
        storage = contents.storages.get(name)
        if storage is None:
            text = say("The storage {key} is in the file, and the object does not ask for it.", key=quoted(name[:100]))
            raise BrokenError(text, name[:100], at)
        seen.add(name)
        # torch lets a storage grow to what the views of it need, and only then compares it with the file.
        storage = storage._replace(elements=max(storage.elements, contents.needed.get(name, 0)))
        at = _storage(source, at, storage, (number, len(listed)))
    missing = [key for key in contents.storages if key not in seen]
    if missing:
        text = say("The file does not have the storage {key}, for which the object asks.", key=quoted(missing[0]))
        judged.broken(Damage(text, missing[0], at, unnoticed=True))
    if at < source.size:
        judged.remarks.append(say("{count} bytes follow the last storage.", count=source.size - at))


def _listed(keys: Any, at: int, judged: Judged) -> Sequence[Any]:
    """Return the keys; torch.load goes through whatever it finds in place of the list, and so an empty text or dictionary stands for none."""
    if type(keys) is list:
        return keys
    items = keys.pairs[::2] if type(keys) is Mapping else keys.items if type(keys) is PickledSet else keys
    if type(items) not in (list, tuple) and items not in ("", b""):
        raise BrokenError(_NO_LIST, say("the list of storages"), at)
    judged.broken(Damage(_NO_LIST, say("the list of storages"), at, unnoticed=True))
    return list(items)


def _storage(source: FileRange, at: int, storage: Storage, so_far: Tuple[int, int]) -> int:
    """Return where a storage ends; before it, this many of the storages are complete, of this many."""
    head = source.read(at, 8)
    elements = int.from_bytes(head, "little", signed=True)
    if len(head) == 8 and elements != storage.elements:
        text = say(
            "The object asks for {asked} elements of this storage, and it has {elements}.",
            asked=storage.elements,
            elements=elements,
        )
        raise BrokenError(text, say("storage {key}", key=quoted(storage.key)), at)
    end = at + 8 + storage.elements * (stored_tensors.dtype_size(storage.dtype) or 1)
    if len(head) < 8 or end > source.size:
        complete, total = so_far
        text = say(
            "The file was cut off, or its writer has not finished. {complete} of {total} storages are complete; "
            "the file has {count} bytes of at least {least}.",
            complete=complete,
            total=total,
            count=source.size,
            least=end,
        )
        raise BrokenError(text, say("storage {key}", key=quoted(storage.key)), at)
    return end


def starts(head: bytes) -> bool:
    """Tell whether a file begins with the magic number, in any protocol of pickle."""
    return b"\x8a\x0a" + MAGIC.to_bytes(10, "little") in head or str(MAGIC).encode() in head
