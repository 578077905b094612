"""The safetensors format: the length of a header, the header as JSON, and the tensors' bytes without a gap."""

from typing import Dict, List, Tuple

import msgspec

from ddp_probe.checkpoints import fill, stored_tensors, tensor_names
from ddp_probe.checkpoints.checkpoint_file import FileRange
from ddp_probe.checkpoints.judged import WHOLE, BrokenError, Damage, Judged, Tensor, UnknownError
from ddp_probe.checkpoints.stored_tensors import Storage
from ddp_probe.shared.schema import UNREADABLE
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted

LONGEST = 100 << 20  # Bytes of a header; the format's limit is 100 million.
_FOLLOWED = 32 << 20
_DTYPES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E8M0": "float8_e8m0fnu",
    "I16": "int16",
    "U16": "uint16",
    "F16": "float16",
    "BF16": "bfloat16",
    "I32": "int32",
    "U32": "uint32",
    "F32": "float32",
    "C64": "complex64",
    "F64": "float64",
    "I64": "int64",
    "U64": "uint64",
}


class _Entry(msgspec.Struct):
    dtype: str
    shape: Tuple[int, ...]
    data_offsets: Tuple[int, int]


_HEADER = msgspec.json.Decoder(Dict[str, msgspec.Raw])
_ENTRY = msgspec.json.Decoder(_Entry)
_METADATA = msgspec.json.Decoder(Dict[str, str])


def judge(source: FileRange, judged: Judged) -> None:
    """Judge the header, and that the tensors it lists fill the file."""
    judged.kind, judged.verdict = "safetensors", WHOLE
    length = int.from_bytes(source.read(0, 8), "little")
    if 8 + length > source.size:
        text = say("The file was cut off, or its writer has not finished: its header alone ends at byte {end}.", end=8 + length)
        raise BrokenError(text, say("the header"), source.size)
    if length > _FOLLOWED:
        raise UnknownError(say("Its header has {count} bytes; at most {limit} are read.", count=length, limit=_FOLLOWED))
    entries = _entries(source.read(8, length), judged)
    _fill_from(entries, judged)
    _offsets(entries, 8 + length, source.size, judged)
    if judged.deep:
        for _ in source.blocks(8 + length, source.size):
            pass
    judged.remarks.append(say("This format has no checksums: only its sizes are judged."))


def _entries(header: bytes, judged: Judged) -> Dict[str, _Entry]:
    try:
        raw = _HEADER.decode(header)
        metadata = _METADATA.decode(raw.pop("__metadata__")) if "__metadata__" in raw else {}
        entries = {name: _ENTRY.decode(value) for name, value in raw.items()}
    except (*UNREADABLE, OverflowError) as exc:
        text = say("The header is not valid: {why}.", why=quoted(str(exc)[:200]))
        raise BrokenError(text, say("the header"), 8) from exc
    if "format" in metadata:
        judged.versions["format"] = metadata["format"][:100]
    return entries


def _fill_from(entries: Dict[str, _Entry], judged: Judged) -> None:
    tensors: List[Tensor] = []
    storages: List[Storage] = []
    for name, entry in entries.items():
        dtype = _DTYPES.get(entry.dtype, entry.dtype)
        tensors.append(Tensor(name, entry.shape, dtype, "cpu"))
        storages.append(Storage(name, "uint8", "cpu", max(entry.data_offsets[1] - entry.data_offsets[0], 0)))
    fill.tensors(judged, tensors, storages)
    judged.devices = {}
    judged.prefixes = tensor_names.prefixes(tensor_names.model_state(tensors, {}))


def _offsets(entries: Dict[str, _Entry], start: int, size: int, judged: Judged) -> None:
    """Check that each tensor begins at the end of the previous one, has the size of its shape, and is in the file."""
    at = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1].data_offsets):
        begin, end = entry.data_offsets
        expected = fill.product(entry.shape) * (stored_tensors.dtype_size(_DTYPES.get(entry.dtype, "")) or 0)
        if begin != at or end < begin:
            text = say(
                "The tensor {name} is said to be in bytes {begin} to {end}, and the one before it ends at {before}.",
                name=quoted(name),
                begin=begin,
                end=end,
                before=at,
            )
            judged.broken(Damage(text, name, start))
            return
        if (entry.dtype in _DTYPES and expected != end - begin) or any(number < 0 for number in entry.shape):
            text = say(
                "The tensor {name} needs {expected} bytes for its shape, and has {count}.",
                name=quoted(name),
                expected=expected,
                count=end - begin,
            )
            judged.broken(Damage(text, name, start + begin))
            return
        if start + end > size:
            text = say(
                "The file was cut off, or its writer has not finished: it has {count} bytes of {total}; {name} is the "
                "first tensor that is not complete.",
                count=size,
                total=start + max(other.data_offsets[1] for other in entries.values()),
                name=quoted(name),
            )
            judged.broken(Damage(text, name, size))
            return
        at = end
    if start + at < size:
        text = say("{count} bytes follow the last tensor; safetensors refuses that.", count=size - start - at)
        judged.broken(Damage(text, "", start + at))
