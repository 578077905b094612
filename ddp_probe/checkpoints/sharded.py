"""An index of Hugging Face: which of several files has which tensor."""

import os
from typing import Any, Callable, Dict, List, Optional

import msgspec

from ddp_probe.checkpoints import tensor_names
from ddp_probe.checkpoints.checkpoint_file import FileRange
from ddp_probe.checkpoints.judged import BROKEN, UNKNOWN, WHOLE, BrokenError, Damage, Judged, Tensor, UnknownError
from ddp_probe.shared.schema import UNREADABLE
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted

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
        raise UnknownError(say("The index has {count} bytes; at most {limit} are read.", count=source.size, limit=_LONGEST))
    try:
        index = _DECODER.decode(source.read(0, source.size))
    except (*UNREADABLE, OverflowError) as exc:
        text = say("The index is not valid: {why}.", why=quoted(str(exc)[:200]))
        raise BrokenError(text, os.path.basename(path)) from exc
    expected: Dict[str, List[str]] = {}
    for name, file in index.weight_map.items():
        expected.setdefault(file, []).append(name)
    if len(expected) > _SHARDS:
        raise UnknownError(say("The index names {count} files; at most {limit} are judged.", count=len(expected), limit=_SHARDS))
    judged.files = sorted(expected)
    _shards(os.path.dirname(path), expected, judged, judge_one)
    judged.prefixes = tensor_names.prefixes({tensor.name: tensor for tensor in judged.names})


def _shards(folder: str, expected: Dict[str, List[str]], judged: Judged, judge_one: JudgeOne) -> None:
    tensors: List[Tensor] = []
    judged.tensors = judged.elements = judged.bytes = 0
    for file in judged.files:
        if os.path.basename(file) != file or file in ("", ".", ".."):
            text = say("The index names the file {file}, which is outside its folder.", file=quoted(file[:200]))
            judged.broken_in_part(Damage(text, file[:200]))
            continue
        shard = _shard(os.path.join(folder, file), judge_one)
        if shard is None:
            text = say("The index says that {count} tensors are in this file, and it is not there.", count=len(expected[file]))
            judged.broken_in_part(Damage(text, file))
            continue
        _merge(shard, judged)
        tensors.extend(shard.names)
        _compare(file, expected[file], shard, judged)
    judged.names = tensors


def _shard(path: str, judge_one: JudgeOne) -> Optional[Judged]:
    if not os.path.lexists(path):
        return None
    if path.endswith(".index.json"):
        raise UnknownError(say("The index names an index."))
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
            record = say("{file}: {record}", file=quoted(file), record=fault.record) if fault.record else file
            judged.broken_in_part(Damage(fault.text, record, fault.offset, fault.unnoticed))
        return
    if shard.verdict == UNKNOWN or shard.tensors is None:
        judged.verdict = judged.verdict if judged.verdict == BROKEN else UNKNOWN
        judged.because = judged.because or say("{file}: {because}", file=quoted(file), because=shard.because)
        return
    held = {tensor.name for tensor in shard.names}
    missing = [name for name in expected if name not in held]
    if missing:
        name = quoted(missing[0][:200])
        text = say("The index says that {name} is in this file, and it is not.", name=name)
        if missing[1:]:
            text = say(
                "The index says that {name} is in this file, and it is not; nor are {count} others.",
                name=name,
                count=len(missing) - 1,
            )
        judged.broken_in_part(Damage(text, file))
    extra = len(held) - len(expected) + len(missing)
    if extra > 0:
        judged.remarks.append(say("{file} has {count} tensors that the index does not name.", file=quoted(file), count=extra))
