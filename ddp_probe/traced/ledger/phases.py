"""Phases: what a rank is in while it is in no collective; one row of the ledger each, with the latest time and a count. And the ring of steps."""

import itertools
import sys
import time
from typing import Any, Callable, Dict, List, Optional, Tuple, cast

from ddp_probe.shared import ledger_schema as schema
from ddp_probe.shared.ledger_codec import HEADER, PASS, PHASE, PLACES, STEP
from ddp_probe.shared.ours import must_pass, ours
from ddp_probe.shared.overflow import FRAGILE, forgotten
from ddp_probe.traced.ledger.calls import Frames, Here, LedgerThread, broken
from ddp_probe.traced.ledger.groups import Numbers
from ddp_probe.traced.ledger.sites import LINE, finder
from ddp_probe.traced.ledger.wrapped_models import WrappedModels
from ddp_probe.traced.patching import Call, Observer, Switch, Target
from ddp_probe.traced.patching.code_swap import Hooks
from ddp_probe.traced.patching.woven import Given
from ddp_probe.traced.record.ledger_memory import LedgerFile

_ROWS = schema.PHASE_ROWS + 1
CODES = schema.codes(schema.PHASES)
BACKWARD = CODES["backward"]
_NAMES = ("dataloader", "forward", "optimizer", "checkpoint", "save", "load", "validate", "test")
_DATA, _FORWARD, OPTIMIZER, _CHECKPOINT, _SAVE, _LOAD, _VALIDATE, _TEST = (CODES[name] for name in _NAMES)


_OpenStep = Tuple[int, int, int, List[int], Optional[LedgerThread]]
"""Its number, when it began, how long its thread had waited by then, its times by phase, and which thread trains: unknown before its first
backward pass has ended. One value, so that no exception finds half of it changed."""


class StepRing:
    """What has been added up since the last backward pass. `step` is read by the hot path, which adds to its times."""

    def __init__(self, mapped: Any) -> None:
        self._map = mapped
        self._pack, self._size = STEP.pack_into, STEP.size
        self.step: _OpenStep = (1, 0, 0, [0] * _ROWS, None)

    def end(self, thread: LedgerThread, now: int, waited: int) -> None:
        """Write the step that ends with this backward pass, before which its thread had waited so long in calls."""
        number, began, before, times, _ = self.step
        saving = times[_SAVE] + times[_LOAD]
        self._pack(
            self._map,
            PLACES.steps + (number & (schema.STEPS - 1)) * self._size,
            number,
            began,
            now,
            times[_DATA],
            times[_FORWARD],
            times[BACKWARD],
            times[OPTIMIZER],
            saving if saving > times[_CHECKPOINT] else times[_CHECKPOINT],  # max() costs three times as much.
            times[_VALIDATE] + times[_TEST],
            waited - before if waited > before else 0,
            number,
        )
        self.step = number + 1, now, thread.waited, [0] * _ROWS, thread


# Phases: what a rank is in while it is in no collective; one row of the ledger each, with the latest time and a count.

_Token = Tuple[LedgerThread, int, int, int, int]
"""A thread that is in a phase, since when, how long it had waited by then; the number of its pass and where that is, in words."""
_Inside = Dict[LedgerThread, _Token]
"""The token of each thread that is in a phase."""
INNER = ()
"""The token of a phase inside itself."""

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
"""What is a phase, by the name of its row. An optimizer that the job defines is not: its class is not known."""

WRAPPED: Tuple[Tuple[str, str, str], ...] = (("save", "torch.serialization", "save"), ("load", "torch.serialization", "load"))
"""Wrapped and not swapped: the probes have a wrapper there already."""


class PhaseObserver(Observer):
    """One phase that is seen through the wrapper of its function."""

    def __init__(self, name: str, current: Callable[[], Dict[int, Hooks]]) -> None:
        self.name = "phase_" + name
        self._code = CODES[name]
        self._current = current

    def before(self, call: Call) -> None:
        """Enter the phase."""
        current = self._current().get(self._code)
        if current is not None:
            call.note = current, current.begin()

    def after(self, call: Call, result: Any) -> None:
        """Leave it."""
        if call.note is not None:
            call.note[0].end(call.note[1], None)

    def raised(self, call: Call, exc: BaseException) -> None:
        """Leave it by an exception."""
        if call.note is not None:
            call.note[0].error(call.note[1])


def given(phase: int) -> List[Given]:
    """Return what the begin of a phase is called with: the model of a forward pass."""
    return ["self"] if phase == _FORWARD else []


def targets() -> List[Tuple[int, Target]]:
    """Return each target with the code of its phase."""
    return [(CODES[name], Target(module, qualname)) for name, module, qualname in SWAPPED]


def hooks(file: LedgerFile, switch: Switch, steps: StepRing, here: Here, frames: Frames) -> Dict[int, Hooks]:  # noqa: C901, PLR0915  # Flat.
    """Return for each phase what writes its row when it is entered, and one word of it when the last thread that is in it has left.

    As with the calls, an exception may come after any instruction, and the stack decides which phases a thread is in.
    """
    place_of = finder(file)
    pack, size, start, left, counted = PHASE.pack_into, PHASE.size, PLACES.phases, PHASE.word("left"), PHASE.word("count")
    mapped, words, moved, clock, frame_of = file.map, file.words, HEADER.word("moved_ns"), time.monotonic_ns, sys._getframe
    pack_pass, pass_size, pass_start, mask = PASS.pack_into, PASS.size, PLACES.passes, schema.PASSES - 1
    pass_left, flags_at, pack_flags = PASS.word("left"), PASS.offset("flags"), PASS.single("flags").pack_into
    row_flags_at, row_flags = PHASE.offset("flags"), PHASE.single("flags")
    pass_number: Callable[[], int] = itertools.count(1).__next__
    flags_of = WrappedModels().flags
    rows = {code.code: (start + (code.code - 1) * size >> 3, Numbers(), cast(_Inside, {})) for code in schema.PHASES}

    def of(phase: int) -> Hooks:  # noqa: C901, PLR0915  # Closures with what is known of one phase, for a microsecond.
        at, numbers, threads = rows[phase]
        row, left_at, counted_at, ends_step = at << 3, at + left, at + counted, phase == BACKWARD

        def begin(model: Any = None) -> Any:
            if not switch.on:
                return None
            count = 0
            thread = None
            try:
                now = clock()
                thread = here.thread
                count = numbers.next()
                if threads and (thread not in threads or frames.around(frame_of(1).f_back, phase)):
                    token: Any = INNER
                    if thread not in threads:  # The row tells of the first thread.
                        threads[thread] = token = thread, now, thread.waited, 0, 0
                    words[counted_at] = count
                else:
                    line, way = place_of()
                    line, index = line & LINE, pass_number()
                    pass_at = pass_start + (index & mask) * pass_size
                    threads[thread] = token = thread, now, thread.waited, index, pass_at >> 3
                    pack(mapped, row, count, now, 0, count, line, thread.flags, count)
                    pack_pass(mapped, pass_at, index, now, 0, count, phase, way, line, thread.flags, index)
                    if model is not None:
                        pack_flags(mapped, pass_at + flags_at, thread.flags | flags_of(model))
                numbers.used = count
                words[moved] = now
                return token
            except RecursionError as exc:
                try:
                    passes = must_pass(exc)
                except RecursionError:
                    passes = FRAGILE and not forgotten()
                if passes:
                    unmade(phase, thread, count)
                    raise
                return None
            except ours(Exception) as exc:
                broken(switch, exc)
                return None
            except BaseException:
                unmade(phase, thread, count)
                raise

        def end(token: Any, _: Any) -> None:
            if not token or not switch.on:
                return
            try:
                now = clock()
                thread, entered, waited, index, pass_at = token
                _, _, _, times, trains = steps.step
                if trains is thread or trains is None:
                    times[phase] += now - entered
                    if ends_step:
                        steps.end(thread, now, waited)
                threads.pop(thread, None)
                if not threads:
                    words[left_at] = now << 2 | 1
                if index and words[pass_at] == index:
                    words[pass_at + pass_left] = now << 2 | 1
                words[moved] = now
            except RecursionError as exc:
                try:
                    passes = must_pass(exc)
                except RecursionError:
                    passes = FRAGILE and not forgotten()
                if passes:
                    raise
            except ours(Exception) as exc:
                broken(switch, exc)

        def error(token: Any) -> None:
            over(phase, token)

        return Hooks(begin, end, error)

    def unmade(phase: int, thread: Optional[LedgerThread], count: int) -> None:
        at, numbers, _ = rows[phase]
        if count and words[at + counted] == count:
            numbers.used = count
        numbers.back()
        if thread is not None and not frames.around(frame_of(2).f_back, phase):
            leave(phase, thread, clock())

    def leave(phase: int, thread: LedgerThread, now: int, is_end: bool = False) -> None:
        at, _, threads = rows[phase]
        token = threads.pop(thread, None)
        has_failed = phase == _DATA and not is_end
        _, _, _, times, trains = steps.step
        if token is not None and trains in (thread, None):
            times[phase] += now - token[1]
        if not threads and not words[at + left]:
            if has_failed:
                flags = row_flags.unpack_from(mapped, (at << 3) + row_flags_at)[0]
                row_flags.pack_into(mapped, (at << 3) + row_flags_at, flags | schema.FAILED)
            words[at + left] = now << 2 | schema.RAISED
        if token is not None and token[3] and words[token[4]] == token[3] and not words[token[4] + pass_left]:
            if has_failed:
                pack_flags(mapped, (token[4] << 3) + flags_at, thread.flags | schema.FAILED)
            words[token[4] + pass_left] = now << 2 | schema.RAISED

    def over(phase: int, token: Any) -> None:
        """Leave every phase that this thread is in no more, once one was left by an exception."""
        if token == INNER or not switch.on:
            return
        try:
            words[moved] = now = clock()
            thread, frame = here.thread, frame_of(3).f_back
            kind = sys.exc_info()[0]
            is_end = kind is not None and issubclass(kind, StopIteration)
            for other in rows:
                if (thread in rows[other][2] or (token and other == phase)) and not frames.around(frame, other):
                    leave(other, thread, now, is_end and other == phase)
        except RecursionError as exc:
            try:
                passes = must_pass(exc)
            except RecursionError:
                passes = FRAGILE and not forgotten()
            if passes:
                raise
        except ours(Exception) as exc:
            broken(switch, exc)

    return {phase: of(phase) for phase in rows}
