"""The folder of torch.distributed.checkpoint: `.metadata`, which is written last, and the files of the ranks that it points into."""

import os
import time
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from ddp_probe.checkpoints import fill, tensor_names, torch_zip, writers
from ddp_probe.checkpoints.checkpoint_file import FileRange, Progress, ReadMeter, open_file
from ddp_probe.checkpoints.judged import BROKEN, WHOLE, BrokenError, Damage, Judged, Tensor
from ddp_probe.checkpoints.pickle_machine import Machine
from ddp_probe.checkpoints.pickle_stream import Global, Mapping, PickledCall, PickleStream
from ddp_probe.checkpoints.stored_tensors import Storage
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted

METADATA = ".metadata"
_MODULE = "torch.distributed.checkpoint."


class _Piece(NamedTuple):
    """The position of one tensor's chunk, or of one object."""

    name: str
    file: str
    offset: int
    length: int
    transformed: bool


def is_checkpoint(folder: str) -> bool:
    """Tell whether a folder is a distributed checkpoint, or the remains of an interrupted save."""
    try:
        held = os.listdir(folder)
    except OSError:
        return False
    return any(name == METADATA or name.endswith((".distcp", METADATA)) for name in held)


def judge(folder: str, judged: Judged, progress: Optional[Progress] = None) -> None:
    """Judge the metadata, and that everything it points to is there."""
    judged.kind, judged.verdict = "distributed checkpoint", WHOLE
    held = sorted(os.listdir(folder))
    _sizes(folder, [name for name in held if name.endswith((".distcp", METADATA))], judged)
    described = [name for name in held if name == METADATA or (name.startswith("__") and name.endswith(METADATA))]
    if not described:
        count = sum(name.endswith(".distcp") for name in held)
        text = say(
            "It has {count} data files and no .metadata, which is written last: the save has not finished, or it failed.",
            count=count,
        )
        judged.broken(Damage(text, METADATA))
        _writers(folder, held, judged)
        return
    for name in described:
        _metadata(folder, name, judged, progress)
    if judged.verdict == BROKEN:
        _writers(folder, held, judged)


def _sizes(folder: str, held: List[str], judged: Judged) -> None:
    judged.files = held
    statuses = [os.stat(os.path.join(folder, name)) for name in held]
    judged.size = sum(status.st_size for status in statuses)
    judged.modified = max(status.st_mtime for status in statuses)
    judged.age = round(time.time() - judged.modified, 3)


def _writers(folder: str, held: List[str], judged: Judged) -> None:
    for name in held[:50]:
        judged.writers.extend(writers.writers(os.stat(os.path.join(folder, name))))


def _metadata(folder: str, name: str, judged: Judged, progress: Optional[Progress]) -> None:
    fd, status = open_file(os.path.join(folder, name))
    try:
        machine = Machine()
        root = machine.run(PickleStream(FileRange(fd, 0, status.st_size)), name)
    except BrokenError as exc:
        judged.broken(exc.fault)
        return
    finally:
        os.close(fd)
    state = _state(root)
    described, stored = _member(state, "state_dict_metadata"), _member(state, "storage_data")
    if type(described) is not Mapping or type(stored) is not Mapping:
        judged.broken(Damage(say("It is a pickle without the metadata of a distributed checkpoint."), name))
        return
    judged.classes = [path for path in machine.globals if not path.startswith(("torch.", "collections.", "builtins.", "pathlib."))]
    pieces = list(_pieces(stored))
    _tensors(described, {piece.name for piece in pieces}, len(pieces), judged)
    _files(folder, pieces, judged, progress)


def _state(value: Any) -> Any:
    return value.state if type(value) is PickledCall else None


def _member(state: Any, name: str) -> Any:
    return state.get(name) if type(state) is Mapping else None


def _pieces(stored: Mapping) -> Iterator[_Piece]:
    for index in range(0, len(stored.pairs) - 1, 2):
        key, value = _state(stored.pairs[index]), _state(stored.pairs[index + 1])
        name, file = _member(key, "fqn"), _member(value, "relative_path")
        offset, length = _member(value, "offset"), _member(value, "length")
        if type(name) is str and type(file) is str and type(offset) is int and type(length) is int:
            yield _Piece(name, file, offset, length, bool(_member(value, "transform_descriptors")))


def _tensors(described: Mapping, stored: Set[str], pieces: int, judged: Judged) -> None:
    tensors: List[Tensor] = []
    chunks = 0
    for index in range(0, len(described.pairs) - 1, 2):
        name, value = described.pairs[index], described.pairs[index + 1]
        if type(name) is not str or type(value) is not PickledCall:
            continue
        if name not in stored:
            text = say("The metadata describes {name}, and says of no file that it is in there.", name=quoted(name[:200]))
            judged.broken_in_part(Damage(text, name[:200]))
        tensor, parts, covered = _tensor(name, value)
        chunks += parts
        if tensor is not None:
            tensors.append(tensor)
            elements = fill.product(tensor.shape)
            if covered != elements:
                text = say(
                    "The chunks of {name} have {covered} elements of {elements}.",
                    name=quoted(name[:200]),
                    covered=covered,
                    elements=elements,
                )
                judged.broken_in_part(Damage(text, name[:200]))
    if chunks > pieces:
        text = say("The metadata describes {chunks} chunks, and says where {pieces} are.", chunks=chunks, pieces=pieces)
        judged.broken_in_part(Damage(text, METADATA))
    fill.tensors(judged, tensors, [Storage(part.name, "uint8", "", fill.size_of(part)) for part in tensors])
    judged.devices = {}
    judged.keys = list(dict.fromkeys(part.name.partition(".")[0] for part in tensors))[:1000]
    judged.prefixes = tensor_names.prefixes({part.name: part for part in tensors})


def _tensor(name: str, value: PickledCall) -> Tuple[Optional[Tensor], int, int]:
    """Return the tensor, the number of its chunks and of their elements; no tensor for another object, which is one chunk."""
    state = value.state
    size, chunks, properties = _member(state, "size"), _member(state, "chunks"), _member(state, "properties")
    shape = _shape(size)
    if shape is None or type(chunks) is not list:
        return None, 1, 0
    dtype = _dtype(properties)
    covered = sum(fill.product(_shape(_member(_state(chunk), "sizes")) or (0,)) if shape else 1 for chunk in chunks)
    return Tensor(name, shape, dtype, ""), len(chunks), covered


def _shape(value: Any) -> Optional[Tuple[int, ...]]:
    inner = value.arguments[0] if type(value) is PickledCall and type(value.arguments) is tuple and value.arguments else value
    if type(inner) not in (tuple, list) or len(inner) > 64:
        return None
    fits = all(type(number) is int and 0 <= number < 1 << 63 for number in inner)
    return tuple(inner) if fits else None


def _dtype(properties: Any) -> str:
    state = _state(properties)
    first = state[0] if type(state) is tuple and state else _member(state, "dtype")
    return first.name if type(first) is Global else "?"


def _files(folder: str, pieces: List[_Piece], judged: Judged, progress: Optional[Progress]) -> None:
    by_file: Dict[str, List[_Piece]] = {}
    for piece in pieces:
        by_file.setdefault(piece.file, []).append(piece)
    tally = ReadMeter(judged.size or 0 if judged.deep else 0, progress)
    for file, inside in sorted(by_file.items()):
        if os.path.isabs(file) or ".." in file.split("/"):
            text = say("The metadata names the file {file}, which is outside the folder.", file=quoted(file[:200]))
            judged.broken_in_part(Damage(text, file[:200]))
            continue
        try:
            fd, status = open_file(os.path.join(folder, file))
        except FileNotFoundError:
            text = say(
                "The metadata says that {count} tensors or objects are in this file, and it is not there.",
                count=len(inside),
            )
            judged.broken_in_part(Damage(text, file))
            continue
        try:
            _in_file(FileRange(fd, 0, status.st_size, tally), inside, judged)
        finally:
            os.close(fd)


def _in_file(source: FileRange, inside: List[_Piece], judged: Judged) -> None:
    for piece in sorted(inside, key=lambda piece: piece.offset):
        if piece.offset < 0 or piece.length < 0 or piece.offset + piece.length > source.size:
            text = say(
                "The file has {bytes} bytes; {name} is said to be in bytes {begin} to {end}.",
                bytes=source.size,
                name=quoted(piece.name[:200]),
                begin=piece.offset,
                end=piece.offset + piece.length,
            )
            judged.broken_in_part(Damage(text, piece.file, source.size))
            return
        begin = source.read(piece.offset, 4) if piece.length else b""
        if begin != b"PK\x03\x04" and not piece.transformed and piece.length:
            text = say("{name} should begin here, and does not.", name=quoted(piece.name[:200]))
            judged.broken_in_part(Damage(text, piece.file, piece.offset))
            return
        if judged.deep and begin == b"PK\x03\x04":
            _deep(source.part(piece.offset, piece.length), piece, judged)


def _deep(part: FileRange, piece: _Piece, judged: Judged) -> None:
    of_part = Judged("", deep=True)
    try:
        torch_zip.judge(part, of_part)
    except BrokenError as exc:
        of_part.broken(exc.fault)
    for fault in of_part.faults if of_part.verdict == BROKEN else ():
        text = say("{name}: {fault}", name=quoted(piece.name[:200]), fault=fault.text)
        judged.broken_in_part(Damage(text, piece.file, piece.offset + (fault.offset or 0), fault.unnoticed))
