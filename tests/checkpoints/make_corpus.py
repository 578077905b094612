"""Writes the corpus: one file for each object and each option of torch.save, by the torch that runs this, and what torch says is in it.

.venv/bin/python tests/checkpoints/make_corpus.py           # writes tests/checkpoints/corpus/new
.venv-legacy/bin/python tests/checkpoints/make_corpus.py    # writes tests/checkpoints/corpus/legacy
"""

import collections
import datetime
import json
import os
import pathlib
import pickle
import sys
import warnings
from typing import Any, Callable, Dict, List

import numpy as np
import torch
from torch import nn

HERE = pathlib.Path(__file__).resolve().parent / "corpus"
NEW = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 6)


def model() -> nn.Module:
    """A small model with parameters, buffers and a shared weight."""
    torch.manual_seed(0)
    made = nn.Sequential(collections.OrderedDict(stem=nn.Linear(3, 4), norm=nn.BatchNorm1d(4), head=nn.Linear(4, 3)))
    made.head.weight = nn.Parameter(made.stem.weight.t().contiguous())
    return made


def trained() -> Dict[str, Any]:
    """A state with an optimizer that has made a step."""
    net = model()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    net(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    return {"state_dict": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "meta": {"mmengine_version": "0.10.7", "iter": 40}}


def types() -> Dict[str, torch.Tensor]:
    """One tensor of each type of numbers that both torches have."""
    names = "float32 float64 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 complex128".split()
    return {name: torch.zeros(2, 3, dtype=getattr(torch, name)) for name in names}


def views() -> Dict[str, Any]:
    """Tensors that share a storage, some of them not contiguous."""
    base = torch.arange(12.0)
    return {
        "base": base,
        "middle": base[3:7],
        "matrix": base.view(3, 4).t(),
        "last": base[11],
        "none": base[:0],
        "again": base,
        "spread": base[:1].expand(5),
    }


def quantized() -> Dict[str, Any]:
    """Quantized tensors, by tensor and by channel."""
    one = torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)
    other = torch.quantize_per_channel(torch.ones(2, 3), torch.tensor([0.1, 0.2]), torch.tensor([0, 0]), 0, torch.quint8)
    return {"one": one, "other": other}


def sparse() -> Dict[str, Any]:
    """Sparse tensors of two layouts."""
    return {"coo": torch.eye(3).to_sparse(), "csr": torch.eye(3).to_sparse_csr()}


def marked() -> torch.Tensor:
    """A tensor with an attribute, which torch saves by another function."""
    made = torch.ones(2)
    made.note = "text"
    return made


def plain() -> Dict[str, Any]:
    """What a pickle may hold beside tensors, all of it accepted by weights_only."""
    return {
        "text": "ä\U0001f600",
        "numbers": [1, -1, 300, 1 << 40, 1 << 70, 0.5, True, None, 1j],
        "bytes": b"\x00\xff",
        "set": {1},
        3: (torch.ones(1), [torch.zeros(2)]),
        "size": torch.Size([1, 2]),
        "device": torch.device("cpu"),
        "type": torch.float16,
        "count": collections.Counter("aab"),
        "long": "x" * 5000,
    }


def foreign() -> Dict[str, Any]:
    """Objects of the standard library and of numpy, which weights_only refuses."""
    return {
        "date": datetime.date(2026, 1, 1),
        "path": pathlib.PurePosixPath("a"),
        "array": np.ones((2, 3)),
        "scalar": np.float64(1),
        "default": collections.defaultdict(int, a=1),
        "weight": torch.ones(2),
        "frozen": frozenset((1,)),
    }


def wrapped() -> Dict[str, Any]:
    """Names of which some begin with a wrapper's prefix."""
    state = {"module." + name: value for name, value in model().state_dict().items()}
    return {"state_dict": dict(state, plain=torch.ones(1))}


OBJECTS: Dict[str, Callable[[], Any]] = {
    "state": lambda: model().state_dict(),
    "trained": trained,
    "types": types,
    "views": views,
    "quantized": quantized,
    "sparse": sparse,
    "marked": marked,
    "plain": plain,
    "foreign": foreign,
    "wrapped": wrapped,
    "module": model,
    "tensor": lambda: torch.ones(2, 3),
    "parameter": lambda: {"weight": nn.Parameter(torch.ones(2)), "fixed": nn.Parameter(torch.ones(2), requires_grad=False)},
    "storage": lambda: {"storage": torch.ones(3).storage()},
    "nothing": lambda: None,
    "list": lambda: [torch.ones(1), {"a": {"b": torch.ones(2)}}],
}
LEGACY = ("state", "trained", "types", "views", "quantized", "sparse", "plain", "foreign", "module", "tensor", "storage", "nothing")
PROTOCOLS = ("trained", "plain", "views", "foreign")


def described(value: Any, path: str = "", seen: Any = None) -> Dict[str, List[Any]]:
    """Return the tensors of an object by path, as torch has them."""
    seen = set() if seen is None else seen
    found: Dict[str, List[Any]] = {}
    if isinstance(value, nn.Module):
        value = {**dict(value.named_parameters()), **dict(value.named_buffers())}
    if isinstance(value, torch.Tensor):
        return {path: [list(value.shape), str(value.dtype)[6:], str(value.device)]}
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple, set)) else ()
    for name, inner in items:
        found.update(described(inner, "%s.%s" % (path, name) if path else str(name), seen))
    return found


def _write(folder: pathlib.Path) -> None:
    truth = {}
    for name, build in OBJECTS.items():
        options: List[Dict[str, Any]] = [{}]
        options += [{"_use_new_zipfile_serialization": False}] if name in LEGACY else []
        options += [dict(one, pickle_protocol=protocol) for one in list(options) for protocol in (3, 4, 5) if name in PROTOCOLS]
        for option in options:
            form = "zip" if option.get("_use_new_zipfile_serialization", True) else "old"
            file = "%s-%s-%d.pt" % (name, form, option.get("pickle_protocol", 2))
            value = build()
            torch.save(value, str(folder / file), **option)
            truth[file] = described(value)
    _special(folder, truth)
    rows = ",\n".join('"%s": %s' % (file, json.dumps(tensors)) for file, tensors in sorted(truth.items()))
    (folder / "truth.json").write_text("{\n%s\n}\n" % rows, encoding="utf-8")


def _special(folder: pathlib.Path, truth: Dict[str, Any]) -> None:
    """Files that torch.save does not write by an option: of other devices, TorchScript, plain pickles, and what only a newer torch has."""
    tag = torch.serialization.location_tag
    for device in ("cuda:1", "npu:3"):
        torch.serialization.location_tag = lambda storage, device=device: device
        for form in (True, False):
            file = "%s-%s-2.pt" % (device.replace(":", ""), "zip" if form else "old")
            torch.save({"weight": torch.ones(2)}, str(folder / file), _use_new_zipfile_serialization=form)
            truth[file] = {"weight": [[2], "float32", device]}
    torch.serialization.location_tag = tag
    torch.jit.save(torch.jit.script(model()), str(folder / "script.pt"))
    truth["script.pt"] = described(model())
    (folder / "pickled.pkl").write_bytes(pickle.dumps({"a": [1, 2], "b": datetime.date(2026, 1, 1)}))
    truth["pickled.pkl"] = {}
    np.save(str(folder / "array.npy"), np.ones((2, 3)))
    truth["array.npy"] = {}
    if NEW:
        late = {"unsigned": torch.ones(3, dtype=torch.uint16), "eight": torch.ones(3).to(torch.float8_e4m3fn), "meta": torch.ones(2, device="meta")}
        torch.save(late, str(folder / "late-zip-2.pt"))
        truth["late-zip-2.pt"] = described(late)
        parts = {"weight": torch.ones(3, 4), "bias": torch.zeros(4, dtype=torch.bfloat16), "scalar": torch.tensor(7)}
        import torch.distributed.checkpoint as distributed

        os.chdir(str(folder))  # The metadata keep the path that was given.
        distributed.save({"model": parts, "epoch": 3}, checkpoint_id="distributed", no_dist=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    # The older format keeps the source of a module's class and the path of its file; paths of this machine stay out of the corpus.
    torch.serialization.get_source_lines_and_file = lambda kind, *more: (["class %s: ...\n" % kind.__name__], 1, "module.py")
    target = HERE / ("new" if NEW else "legacy")
    target.mkdir(parents=True, exist_ok=True)
    _write(target)
    print("%d files in %s" % (len(list(target.iterdir())), target), file=sys.stderr)
