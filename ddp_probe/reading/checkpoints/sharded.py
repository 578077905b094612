"""An index of Hugging Face: which of several files has which tensor."""

import os
from typing import Any, Callable, Dict, List, Optional

import msgspec

from ddp_probe.reading.checkpoints import tensor_names
from ddp_probe.reading.checkpoints.checkpoint_file import FileRange
from ddp_probe.reading.checkpoints.judged import BROKEN, UNKNOWN, WHOLE, BrokenError, Damage, Judged, Tensor, UnknownError
from ddp_probe.shared.schema import UNREADABLE

_LONGEST = 32 << 20
_SHARDS = 4096

JudgeOne = Callable[[str], Judged]


class _Index(msgspec.Struct):
    weight_map: Dict[str, str]
    metadata: Dict[str, Any] = {}


_DECODER = msgspec.json.Decoder(_Index)


def judge(path: str, source: FileRange, judged: Judged, judge_one: JudgeOne) -> None:
    """Judge each shard by `judge_one`, and that each has the tensors that the index says."""
    judged.kind, judged.verdict = "sharded index", WHOLE
    if source.size > _LONGEST:
        raise UnknownError("The index has %d bytes; at most %d are read." % (source.size, _LONGEST))
    try:
        index = _DECODER.decode(source.read(0, source.size))
    except (*UNREADABLE, OverflowError) as exc:
        raise BrokenError("The index is not valid: %s." % str(exc)[:200], os.path.basename(path)) from exc
    expected: Dict[str, List[str]] = {}
    for name, file in index.weight_map.items():
        expected.setdefault(file, []).append(name)
    if len(expected) > _SHARDS:
        raise UnknownError("The index names %d files; at most %d are judged." % (len(expected), _SHARDS))
    judged.files = sorted(expected)
    _shards(os.path.dirname(path), expected, judged, judge_one)
    judged.prefixes = tensor_names.prefixes({tensor.name: tensor for tensor in judged.names})


def _shards(folder: str, expected: Dict[str, List[str]], judged: Judged, judge_one: JudgeOne) -> None:
    tensors: List[Tensor] = []
    judged.tensors = judged.elements = judged.bytes = 0
    for file in judged.files:
        if os.path.basename(file) != file or file in ("", ".", ".."):
            judged.broken_in_part(Damage("The index names the file %s, which is outside its folder." % file[:200], file[:200]))
            continue
        shard = _shard(os.path.join(folder, file), judge_one)
        if shard is None:
            judged.broken_in_part(Damage("The index says that %d tensors are in this file, and it is not there." % len(expected[file]), file))
            continue
        _merge(shard, judged)
        tensors.extend(shard.names)
        _compare(file, expected[file], shard, judged)
    judged.names = tensors


def _shard(path: str, judge_one: JudgeOne) -> Optional[Judged]:
    if not os.path.lexists(path):
        return None
    if path.endswith(".index.json"):
        raise UnknownError("The index names an index.")
    return judge_one(path)


def _merge(shard: Judged, judged: Judged) -> None:
    """Add what a shard holds."""
    judged.tensors = (judged.tensors or 0) + (shard.tensors or 0)
    judged.elements = (judged.elements or 0) + (shard.elements or 0)
    judged.bytes = (judged.bytes or 0) + (shard.bytes or 0)
    judged.size = (judged.size or 0) + (shard.size or 0)
    judged.writers.extend(shard.writers)
    for mine, theirs in ((judged.dtypes, shard.dtypes), (judged.devices, shard.devices)):
        for name, count in theirs.items():
            mine[name] = mine.get(name, 0) + count
    judged.versions.update(shard.versions)
    judged.classes = list(dict.fromkeys(judged.classes + shard.classes))


def _compare(file: str, expected: List[str], shard: Judged, judged: Judged) -> None:
    if shard.verdict == BROKEN:
        for fault in shard.faults:
            judged.broken_in_part(Damage(fault.text, "%s: %s" % (file, fault.record) if fault.record else file, fault.offset, fault.unnoticed))
        return
    if shard.verdict == UNKNOWN or shard.tensors is None:
        judged.verdict = judged.verdict if judged.verdict == BROKEN else UNKNOWN
        judged.because = judged.because or "%s: %s" % (file, shard.because)
        return
    held = {tensor.name for tensor in shard.names}
    missing = [name for name in expected if name not in held]
    if missing:
        text = "The index says that %s is in this file, and it is not%s."
        judged.broken_in_part(Damage(text % (missing[0][:200], "; nor are %d others" % (len(missing) - 1) if missing[1:] else ""), file))
    extra = len(held) - len(expected) + len(missing)
    if extra > 0:
        judged.remarks.append("%s has %d tensors that the index does not name." % (file, extra))
