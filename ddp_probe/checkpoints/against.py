"""Compares the tensors of a checkpoint with those of another checkpoint, or with the parameters that a run has recorded of its model."""

import re
from importlib import metadata
from typing import Dict, List, NamedTuple, Optional, Tuple

import msgspec

from ddp_probe.checkpoints import tensor_names
from ddp_probe.checkpoints.judge_path import judge
from ddp_probe.checkpoints.judged import Comparison, Judged
from ddp_probe.shared.errors import UnusableError
from ddp_probe.shared.regular_files import open_bytes
from ddp_probe.shared.schema import UNREADABLE
from ddp_probe.wording.text import say

_BYTES = 1 << 26  # A list longer than this is not read.
_ROWS = msgspec.json.Decoder(List[Tuple[str, Tuple[int, ...], str, bool, str]])


class Other(NamedTuple):
    """What a checkpoint is compared with: shapes by name, and whether buffers are among them."""

    path: str
    shapes: Dict[str, Tuple[int, ...]]
    is_model: bool


def read(path: str) -> Other:
    """Read what to compare with."""
    rows = _model(path)
    if rows is not None:
        return Other(path, {row[0]: row[1] for row in rows}, is_model=True)
    judged = judge(path)
    if not judged.names:
        raise UnusableError(
            what=say("{path} cannot be compared with.", path=path),
            why=judged.because or "; ".join(fault.text for fault in judged.faults[:1]) or say("No tensor was found in it."),
            what_to_do="Name a checkpoint, or models/DIGEST.json of a run.",
        )
    return Other(path, shapes(judged), is_model=False)


def _model(path: str) -> Optional[List[Tuple[str, Tuple[int, ...], str, bool, str]]]:
    if not path.endswith(".json") or path.endswith(".index.json"):
        return None
    try:
        with open_bytes(path) as stream:
            return _ROWS.decode(stream.read(_BYTES))
    except (OSError, *UNREADABLE) as exc:
        why = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)[:200]
        raise UnusableError(
            what=say("{path} is not a list of parameters.", path=path),
            why=why,
            what_to_do="Name a checkpoint, or models/DIGEST.json of a run.",
        ) from exc


def shapes(judged: Judged) -> Dict[str, Tuple[int, ...]]:
    """Return the shapes of a checkpoint's model, by the names that load_state_dict takes."""
    return {name: tensor.shape for name, tensor in tensor_names.model_state(judged.names, judged.states).items()}


def compare(judged: Judged, other: Other) -> Comparison:
    """Compare names and shapes, and find the renaming that explains all differences, if there is one."""
    mine = shapes(judged)
    comparison = _compared(mine, other)
    renamed = tensor_names.explain(mine, other.shapes, exact=not other.is_model) if comparison.missing else None
    if renamed is not None:
        comparison.renaming, comparison.explains = renamed.expression("state"), renamed.names
        comparison.load = _load(judged)
    if other.is_model:
        comparison.buffers = len(comparison.unexpected) - (comparison.explains if renamed is not None else 0)
    comparison.fits = not comparison.missing and not comparison.shapes and (other.is_model or not comparison.unexpected)
    return comparison


def _compared(mine: Dict[str, Tuple[int, ...]], other: Other) -> Comparison:
    comparison = Comparison(other.path, other.is_model)
    comparison.missing = [name for name in other.shapes if name not in mine]
    comparison.unexpected = [name for name in mine if name not in other.shapes]
    comparison.shapes = [(name, mine[name], shape) for name, shape in other.shapes.items() if name in mine and mine[name] != shape]
    comparison.same = len(other.shapes) - len(comparison.missing) - len(comparison.shapes)
    return comparison


def _load(judged: Judged) -> str:
    """Return Python source that loads the file's state."""
    if judged.kind == "safetensors":
        return "safetensors.torch.load_file(%r)" % judged.path
    refused = ", weights_only=False" if judged.weights_only is not None and not judged.weights_only.accepted and _has_weights_only() else ""
    inside = "".join("[%r]" % part for part in tensor_names.chosen(judged.states).split(".") if part)
    return "torch.load(%r, map_location='cpu'%s)%s" % (judged.path, refused, inside)


def _has_weights_only() -> bool:
    """Tell whether the torch installed here takes weights_only, which 1.13 brought; yes if none is installed. Nothing of torch is imported."""
    try:
        match = re.match(r"(\d+)\.(\d+)", metadata.version("torch"))
    except metadata.PackageNotFoundError:
        return True
    return match is None or (int(match[1]), int(match[2])) >= (1, 13)
