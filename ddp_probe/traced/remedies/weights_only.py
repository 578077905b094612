"""A checkpoint of mmengine under a torch.load that takes weights only."""

import importlib
import pickle
import re
import sys
from typing import Any, List, Optional, Tuple

from ddp_probe.shared.ours import ours
from ddp_probe.traced.facts.checkpoint_file import path_of
from ddp_probe.traced.facts.failure import said
from ddp_probe.traced.patching import Call, Change
from ddp_probe.traced.remedies import Remedy

_GETATTR = "builtins.getattr"
# What a HistoryBuffer consists of, under the names of numpy 1 and 2. None of them runs code from the file; bytes stand for an
# array without elements.
_ALLOWED = re.compile(
    r"mmengine\.logging\.history_buffer\.HistoryBuffer|builtins\.(getattr|bytes)|numpy\.(ndarray|dtype)|numpy\.dtypes\.(Float|U?Int|Bool)\d*DType"
    r"|numpy\.(_core|core)\.multiarray\.(_reconstruct|scalar)"
)
_BLOCKED = re.compile(r"GLOBAL [\w.]+ was not an allowed global|but got <class 'numpy\.dtypes\.\w+DType'>")
_STATISTICS = ("min", "max", "current", "mean")


class WeightsOnly(Remedy):
    """For one load, torch's allow-list gains mmengine's HistoryBuffer and the numpy types it needs; weights_only stays as it is."""

    word = "weights-only"
    order = 80
    targets = ("torch.serialization:load",)
    when = "The load failed for exactly those classes."
    for_good = "torch.serialization.add_safe_globals([HistoryBuffer, …]) before the load, with the classes that the error names."

    def rescue(self, call: Call, exc: BaseException) -> Optional[Change]:
        """Load again with the names that the file asks for, if all of them are on our list."""
        if not _BLOCKED.search(said(exc)):
            return None
        path = path_of(call.arguments().get("f"))
        if path is None:
            self.declined(call, "the checkpoint comes from a stream, which cannot be read twice")
            return None
        names = _asked_for(path)
        foreign = names if names is None else [name for name in names if not _ALLOWED.fullmatch(name)]
        if foreign is None:
            self.declined(call, "this torch does not say which classes the file asks for")
        elif foreign:
            self.declined(call, "the file also asks for %s, which only its author can vouch for" % ", ".join(sorted(foreign)[:5]))
        return self._allow(call, names) if names is not None and not foreign else None

    def _allow(self, call: Call, names: List[str]) -> Optional[Change]:
        """Allow them until the load is over."""
        serialization: Any = sys.modules["torch.serialization"]
        try:
            allowed = [_stand_in(name) for name in names] + _kinds_of_numbers()
        except ours(ImportError) as missing:
            self.declined(call, "%s cannot be imported here" % missing.name)
            return None
        # What the job already allows stays out: leaving the context would remove it.
        already = serialization.get_safe_globals()
        context = serialization.safe_globals([entry for entry in allowed if entry not in already])
        context.__enter__()

        def leave() -> None:
            context.__exit__(None, None, None)

        after = {"allowed too": ", ".join(sorted(names))}
        return Change({"allowed": "torch's own"}, after, "the file asks for these, and for nothing else", commit=leave, rollback=leave)


def _asked_for(path: str) -> Optional[List[str]]:
    """Return every name that torch would refuse in this file; None if it cannot tell, as for files of the format before 1.6."""
    ask = getattr(sys.modules["torch.serialization"], "get_unsafe_globals_in_checkpoint", None)
    try:
        return list(ask(path)) if ask is not None else None
    except ours(ValueError):
        return None


def _stand_in(name: str) -> Tuple[Any, str]:
    """Return the object that a name in the file stands for, with that name."""
    if name == _GETATTR:
        return _method_of_the_buffer, name
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute), name


def _kinds_of_numbers() -> List[Any]:
    """Return the classes of numpy's number types: a dtype is an instance of one of them, and no name in the file says which."""
    numpy: Any = importlib.import_module("numpy")
    return [type(numpy.dtype(kind)) for kind in ("float64", "float32", "int64", "int32", "bool")]


def _method_of_the_buffer(owner: Any, attribute: Any) -> Any:
    """Return one of the four statistics of HistoryBuffer and nothing else: through the real getattr a file could reach anything."""
    buffer = getattr(sys.modules.get("mmengine.logging.history_buffer"), "HistoryBuffer", None)
    if owner is not buffer or buffer is None or attribute not in _STATISTICS:
        raise pickle.UnpicklingError("A checkpoint may ask HistoryBuffer for %s, and for nothing else." % ", ".join(_STATISTICS))
    return getattr(owner, attribute)


REMEDY = WeightsOnly
