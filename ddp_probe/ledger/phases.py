"""Phases: what a rank is in while it is in no collective; one row of the ledger each, with the latest time and a count."""

import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from ddp_probe import ledger_schema as schema
from ddp_probe.ledger._calls import broken
from ddp_probe.ledger._sites import finder
from ddp_probe.ledger._steps import BACKWARD, StepRing
from ddp_probe.ours import ours
from ddp_probe.patching import Call, Observer, Switch, Target
from ddp_probe.patching.guard import FRAGILE
from ddp_probe.patching.intercept.code_swap import Hooks
from ddp_probe.record.ledger import PLACES, LedgerFile, word

_CODES = {code.name: code.code for code in schema.PHASES}

_OPTIMIZERS = (
    ("adadelta", "Adadelta"),
    ("_adafactor", "Adafactor"),
    ("adagrad", "Adagrad"),
    ("adam", "Adam"),
    ("adamw", "AdamW"),
    ("adamax", "Adamax"),
    ("asgd", "ASGD"),
    ("lbfgs", "LBFGS"),
    ("_muon", "Muon"),
    ("nadam", "NAdam"),
    ("radam", "RAdam"),
    ("rmsprop", "RMSprop"),
    ("rprop", "Rprop"),
    ("sgd", "SGD"),
    ("sparse_adam", "SparseAdam"),
)

SWAPPED: Tuple[Tuple[str, str, str], ...] = (
    ("dataloader", "torch.utils.data.dataloader", "_BaseDataLoaderIter.__next__"),
    ("backward", "torch.autograd", "backward"),
    ("forward", "torch.nn.parallel.distributed", "DistributedDataParallel.forward"),
    ("train", "mmengine.runner.loops", "EpochBasedTrainLoop.run"),
    ("train", "mmengine.runner.loops", "IterBasedTrainLoop.run"),
    ("validate", "mmengine.runner.loops", "ValLoop.run"),
    ("test", "mmengine.runner.loops", "TestLoop.run"),
    ("checkpoint", "mmengine.hooks.checkpoint_hook", "CheckpointHook._save_checkpoint"),
    ("checkpoint", "mmengine.runner.runner", "Runner.save_checkpoint"),
    *(("optimizer", "torch.optim." + module, name + ".step") for module, name in _OPTIMIZERS),
)
"""What is a phase, by the name of its row. An optimizer of the job's own is not: its class is not known."""

WRAPPED: Tuple[Tuple[str, str, str], ...] = (("save", "torch.serialization", "save"), ("load", "torch.serialization", "load"))
"""Wrapped and not swapped: their warnings name the caller's line (stacklevel=2), and pass over the wrapper's frame alone."""


class PhaseObserver(Observer):
    """One phase that is seen through the wrapper of its function."""

    def __init__(self, name: str, current: Callable[[], Optional[Hooks]]) -> None:
        self.name = "phase_" + name
        self._code = _CODES[name]
        self._current = current

    def before(self, call: Call) -> None:
        """Enter the phase."""
        current = self._current()
        if current is not None:
            call.note = current, current.begin(self._code)

    def after(self, call: Call, result: Any) -> None:
        """Leave it."""
        if call.note is not None:
            call.note[0].end(call.note[1], None)

    def error(self, call: Call, exc: BaseException) -> None:
        """Leave it by an exception."""
        if call.note is not None:
            call.note[0].failed(call.note[1])


def targets() -> List[Tuple[int, Target]]:
    """Return each target with the code of its phase."""
    return [(_CODES[name], Target(module, qualname)) for name, module, qualname in SWAPPED]


def hooks(file: LedgerFile, switch: Switch, flags: Callable[[], int], steps: StepRing) -> Hooks:  # noqa: C901  # Flat, for 2 microseconds.
    """Return what writes a row when a phase is entered, and one word of it when the last that are in it have left."""
    site = finder(file)
    layout = schema.layout(schema.PHASE)
    pack, size, start = layout.pack_into, layout.size, PLACES.phases
    left, counted = (schema.offset(schema.PHASE, name) // 8 for name in ("left", "count"))
    mapped, words, moved, clock = file.map, file.words, word("moved_ns"), time.monotonic_ns
    counts: List[int] = [0] * (schema.PHASE_ROWS + 1)
    inside: Dict[int, Dict[Any, None]] = {code.code: {} for code in schema.PHASES}  # tokens: a set that any thread may change at any time

    def begin(phase: int) -> Any:
        if not switch.on:
            return None
        token = None
        try:
            now = clock()
            here = inside[phase]
            counts[phase] = count = counts[phase] + 1
            at = start + (phase - 1) * size
            token = (phase, at >> 3, count, now)
            if phase == BACKWARD and not here:
                steps.backward()
            if here:  # inside itself, or in two threads: the row tells of the first
                words[(at >> 3) + counted] = count
            else:
                pack(mapped, at, count, now, 0, count, site(), flags(), count)
            here[token] = None
            words[moved] = now
            return token
        except RecursionError:
            if not FRAGILE:
                return None
            raise
        except ours(Exception) as exc:
            broken(switch, exc)
            return None
        except BaseException:
            if token is not None:
                close(token, schema.RAISED)
            raise

    def close(token: Any, state: int) -> None:
        if token is None or not switch.on:
            return
        try:
            phase, at, _, entered = token
            here = inside[phase]
            here.pop(token, None)
            now = clock()
            if not here:
                words[at + left] = now << 2 | state
                steps.add(phase, now - entered)
                if phase == BACKWARD and state == schema.RETURNED:
                    steps.end(now)
            words[moved] = now
        except ours(Exception) as exc:
            broken(switch, exc)

    return Hooks(begin, lambda token, _: close(token, schema.RETURNED), lambda token: close(token, schema.RAISED))
