"""The ledger of collectives: from the first init_process_group on, every public collective and point-to-point call of torch.distributed.

Functional collectives (torch.distributed._functional_collectives), what DistributedDataParallel's reducer does in C++, and what a compiled graph
calls are not seen: Python does not pass through a function there that could be watched without changing what torch.compile makes of it.
"""

import os
import sys
from types import FunctionType
from typing import Any, Dict, List, Optional

from ddp_probe.activation.hooks import without_collections
from ddp_probe.shared import ledger_schema as schema
from ddp_probe.shared import settings
from ddp_probe.shared.ours import ours
from ddp_probe.traced.facts.birth import boot, born
from ddp_probe.traced.hangs import Watcher, is_held, phase_and_step
from ddp_probe.traced.ledger import phases
from ddp_probe.traced.ledger.barriers import BARRIERS, CallLines
from ddp_probe.traced.ledger.calls import CALL, NO_PEER, Frames, Here, hooks
from ddp_probe.traced.ledger.groups import NEVER, Groups, Sums
from ddp_probe.traced.ledger.optimizers import OptimizerSteps, makers
from ddp_probe.traced.ledger.phases import OPTIMIZER, StepRing
from ddp_probe.traced.ledger.works import Works
from ddp_probe.traced.patching import Entry, Switch, Target
from ddp_probe.traced.patching.code_swap import Hooks, Swap, innermost, put_back, woven_swap
from ddp_probe.traced.patching.guard import guard
from ddp_probe.traced.patching.woven import Given, NotWoven, SourceFiles
from ddp_probe.traced.record.ledger_memory import Author, LedgerFile, create
from ddp_probe.traced.session import Session

_MODULE = "torch.distributed.distributed_c10d"

# The argument whose elements are counted; of the names before a blank the first that the function has.
_PAYLOADS: Dict[str, str] = {
    "all_gather": "tensor",
    "all_to_all": "input_tensor_list",
    "all_to_all_single": "input",
    "all_gather_coalesced": "input_tensor_list",
    "all_gather_multigpu": "input_tensor_list",
    "reduce_scatter_multigpu": "output_tensor_list",
}
_PAYLOAD = "tensor tensors tensor_list input_tensor output"


class Collectives:
    """The ledger of this process: its file, and what has been swapped for it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._switch = Switch()
        self._works: Optional[Works] = None
        self._phases: Dict[int, Hooks] = {}
        self._steps: Optional[OptimizerSteps] = None
        self._swaps: List[Swap] = []
        self._frames = Frames()
        self.unwatched: Dict[Target, str] = {}
        """What is not recorded, and why."""
        self.file: Optional[LedgerFile] = None
        self._is_open = False
        self.watcher = Watcher()

    def open(self) -> None:
        """Make the file and swap in what writes to it; to be called when a process group is about to be made, and again if that was cut short."""
        if self._is_open or not settings.get(settings.LEDGER) or not hasattr(os, "posix_fallocate"):
            return
        try:
            self.file = self.file or create(self._base(), self._author(), in_memory=is_held())
        except ours(OSError) as exc:
            self._session.recorder.warn("There is no ledger of collectives: %s." % (exc.strerror or exc))
            return
        self._put_back()
        without_collections(self._swap)  # The trees of what is woven are many objects, which do not last.
        guard.run("watcher", self.watcher.start, self.file, self._session)
        self._is_open = True

    def stands(self) -> Dict[str, Any]:
        """Return the phase that this process is in, and its step, as far as the ledger knows; for the job's logs, so it looks at few words."""
        if self.file is None:
            return {}
        during, step = phase_and_step(self.file)
        return {"during": during, "step": step}

    def _base(self) -> str:
        recorder = self._session.recorder
        recorder.start()
        if recorder.path is None:
            raise OSError("the log could not be opened")
        return recorder.path[: -len(".jsonl")]

    def _author(self) -> Author:
        process = self._session.process
        rank, world_size = process.rank, process.rank_info.world_size
        return Author(-1 if rank is None else rank, -1 if world_size is None else world_size, born() or 0, boot(), os.uname().nodename)

    def _swap(self) -> None:
        assert self.file is not None
        self._switch = Switch()
        groups = Groups(self.file)
        patience = settings.get(settings.SLOW)
        slow_ns = NEVER if patience is None else int(patience * 1e9)
        here, sums = Here(), Sums(self.file.map, slow_ns)
        lines = CallLines(self._session, self.file, groups, slow_ns)
        self._frames = Frames()
        self._works = Works(self.file, self._switch, here, lines.slow)
        self.file.before_flush, self.file.before_look = sums.put, self._works.look
        told = self._works.issued, lines.slow, lines.raised
        calls, about_groups = hooks(self.file, self._switch, groups, sums, here, self._frames, *told)
        barriers = lines.hooks(calls, self._switch, here, self._frames)
        self._phases = phases.hooks(self.file, self._switch, StepRing(self.file.map), here, self._frames)
        sources = SourceFiles()
        for (op, name, doc), target in zip(schema.OPERATIONS, targets()):
            around = about_groups if schema.ABOUT_GROUPS <= op < schema.BATCH else calls
            if op in BARRIERS:
                around = barriers
            self._take(target, around, _arguments(op, name, doc), CALL if op < schema.BATCH else None, sources)
        self._steps = OptimizerSteps(self._switch, lambda step: self._take(step, self._phases[OPTIMIZER], [], OPTIMIZER, SourceFiles()))
        for target in makers():
            self._take(target, self._steps.hooks(), ["self"], None, sources)
        self._take_phases(sources)
        for name, module, qualname in phases.WRAPPED:
            target = Target(module, qualname)
            self._frames.know(getattr(innermost(target), "__code__", None), phases.CODES[name])
            self._session.registry.apply(target, phases.PhaseObserver(name, lambda: self._phases))

    def _take(self, target: Target, around: Hooks, given: List[Given], kind: Optional[int], sources: SourceFiles) -> bool:
        """Watch a function, and tell whether this needs no other try."""
        function = innermost(target)
        if function is None:
            return True
        for made in self._swaps:
            if made.function is function:
                made.put_in()
                return True
        return guard.attempt("ledger", self._swap_in, target, function, around, given, kind, sources)

    def _swap_in(self, target: Target, function: FunctionType, around: Hooks, given: List[Given], kind: Optional[int], sources: SourceFiles) -> None:
        try:
            made = woven_swap(target, function, around, given, sources)
        except ours(NotWoven) as exc:
            self.unwatched[target] = str(exc)
            return
        self._frames.know(made.code, kind)
        self._swaps.append(made)  # Before it is put in: restore() finds it if a signal handler of the job's raises in between.
        made.put_in()

    def modules(self) -> None:
        """Further modules may have been imported: watch the phases in them."""
        self._take_phases(SourceFiles())

    def _take_phases(self, sources: SourceFiles) -> None:
        there = {str(one.target) for one in self._swaps}
        if self.file is None:
            return
        for phase, target in phases.targets():
            if phase not in self._phases or target.module not in sys.modules or str(target) in there:
                continue
            if phase == OPTIMIZER and self._steps is not None:
                self._steps.wait_for(target)
            else:
                self._take(target, self._phases[phase], phases.given(phase), phase, sources)

    def rank_known(self, rank: Optional[int], world_size: Optional[int]) -> None:
        """Write who this process is, once a process group knows it."""
        if self.file is not None:
            self.file.bind(rank, world_size)

    def fall_silent(self) -> None:
        """In the child of a fork: nothing is written to the parent's file, which the child has mapped as well."""
        self._switch.on = self._is_open = False
        self.watcher.fall_silent()
        if self.file is not None:
            self.file.close(said=False)
            self.file = None

    def undo(self) -> List[Entry]:
        """Put every original back and let go of the file."""
        entries = self._put_back()
        self._switch.on = self._is_open = False
        self.watcher.stop()
        if self.file is not None:
            self.file.close()
            self.file = None
        return entries

    def _put_back(self) -> List[Entry]:
        self._phases, self._steps = {}, None
        entries = []
        while self._swaps:
            entries.append(put_back(self._swaps[-1]))
            self._swaps.pop()  # Afterwards: what a signal handler of the job's cuts short is done by the next call.
        if self._works is not None:
            entries += self._works.undo()
            self._works = None
        return entries


def targets() -> List[Target]:
    """Return the function of each operation; torch may not have it."""
    return [Target(_MODULE, name) for _, name, _ in schema.OPERATIONS]


def _arguments(op: int, name: str, doc: str) -> List[Given]:
    """Return what begin is called with."""
    if op >= schema.ABOUT_GROUPS:
        return [op, None, NO_PEER, None, "group" if name == "destroy_process_group" else None, False]
    is_object = "object" in name
    payload = None if is_object or "barrier" in name else _PAYLOADS.get(name, _PAYLOAD)
    if op >= schema.POINT_TO_POINT:
        return [op, payload, "dst src", "group_dst group_src", "group", name in ("isend", "irecv")]
    peer, group_peer = ("dst src", "group_dst group_src") if "root" in doc else (NO_PEER, None)
    return [op, payload, peer, group_peer, "group", "async_op"]
