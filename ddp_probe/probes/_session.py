"""One armed process: loads the probes as their targets appear, owns the recorder and the registry of patches, ends in good order."""

import importlib
import os
import socket
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Set, Union

from ddp_probe import schema, settings
from ddp_probe.ours import ours
from ddp_probe.patching import Certificate, Override, Patch, PatchRegistry, Target, guard, switch
from ddp_probe.probes import _coverage, _ending, _opening, _summary
from ddp_probe.probes._plugins import Plugins
from ddp_probe.probes._remedies import Remedies
from ddp_probe.record import Recorder, latest

if TYPE_CHECKING:
    from ddp_probe.activation._process import Process
    from ddp_probe.activation.targets import TargetRow
    from ddp_probe.probes._probe import Probe

_BUILT_IN = "ddp_probe.probes."


class Session:
    """What is armed in this process; at most one at a time."""

    def __init__(self, process: "Process") -> None:
        guard.forget()
        self.process = process
        self.plugins = Plugins(process.role.name)
        self.remedies = Remedies(process.role.name)
        self.rows: List[TargetRow] = self._rows_now()
        self.registry = PatchRegistry()
        self.patches: Dict[str, Patch] = {}
        self.last_move = ""
        self.last_set_device = ""
        self.generation = 0
        self.children: Dict[int, int] = {}
        self.closed = False
        self._last_word: Dict[str, Any] = {}
        self.summary_due = False
        self.missed: Dict[str, List[str]] = {}
        self._probes: Dict[str, Union[Probe, Override]] = {}
        self._late: Set[str] = set()
        self.recorder = self._open()
        switch.on = True
        guard.on_fault = self._fault
        self.ending = _ending.Ending(self)
        self.begun = False

    def begin(self) -> None:
        """Listen for the end and write the first line; what a signal handler of the job's cuts short is done at the next module."""
        if not self.begun:
            self.ending.watch()
            self._begin()
            self.begun = True

    def _begin(self) -> None:
        """Write the first line at once, but for a program of its own: it may never do what a probe watches."""
        if self.process.role.name == "rank":
            self.recorder.start()
        if self.remedies.mistake and not self.process.rank:
            self.recorder.warn(self.remedies.mistake)

    def _open(self) -> Recorder:
        process = self.process
        return Recorder(
            process.folder,
            self._stem,
            {
                "rank": None if process.role.name == "launcher" else process.rank,
                "local_rank": process.rank_info.local_rank,
                "world_size": process.rank_info.world_size,
                "host": socket.gethostname(),
                "pid": os.getpid(),
                "run": process.run,
            },
            max_bytes=settings.get(settings.MAX_BYTES),
            echo=settings.get(settings.ECHO),
            first=self._first,
        )

    def _first(self) -> schema.Event:
        if self.process.role.name != "rank" or self.process.rank == 0:
            guard.run("process", latest.point_at, self.process.folder)
        return _opening.first_event(self.process)

    def _stem(self) -> str:
        host = "".join(letter if (letter.isascii() and letter.isalnum()) or letter in "-_" else "_" for letter in socket.gethostname().split(".")[0])
        if self.process.role.name == "launcher":
            return "launcher.%s" % host
        return "rank%05d.%s.%d" % (self.process.rank or 0, host, os.getpid())

    def ready(self, modules: List[str], late: bool) -> None:
        """Modules have been executed, this moment or before we came: patch what is watched in them."""
        rows = [row for row in self.rows if row.module in modules]
        probes = [(row, guard.run(row.probe, self.probe, row.probe)) for row in rows]
        found = [(row, probe) for row, probe in probes if probe is not None]
        patches = self.registry.apply_all([(Target(row.module, row.qualname), probe) for row, probe in found], aliases=late)
        for (row, _), patch in zip(found, patches):
            self.patches[str(row)] = patch
            if late:
                self._late.add(str(row))

    def note_missed(self) -> None:
        """The program armed itself late: find out who had kept an original before, for the lines at exit."""
        self.missed = guard.run("process", self.registry.missed) or {}

    def probe(self, name: str) -> "Union[Probe, Override]":
        """Return the probe of that name, or the remedy, loading its file first."""
        if name not in self._probes:
            self._probes[name] = self.remedies.load(name, self) or self._load(name)
        return self._probes[name]

    def _load(self, name: str) -> "Probe":
        module = self.plugins.modules.get(name) or importlib.import_module(_BUILT_IN + name)
        found: Probe = module.PROBE(self)
        return found

    def was_late(self, row: "TargetRow") -> bool:
        """Tell whether the target's module had been imported before the probe was there."""
        return str(row) in self._late

    def rank_known(self, rank: Optional[int], world_size: Optional[int]) -> None:
        """A process group tells who this process is; programs without a launcher learn it here."""
        rank_info = self.process.rank_info
        rank_info.rank = rank_info.rank if rank is None else rank
        rank_info.world_size = rank_info.world_size if world_size is None else world_size
        self.recorder.bind(rank=rank_info.rank, world_size=rank_info.world_size)

    def act_as_launcher(self) -> None:
        """A program of its own starts ranks itself: what it writes from here is a launcher's."""
        if self.process.role.name == "solo" and self.recorder.path is None:
            self.process.role.name = "launcher"
            self.recorder.bind(rank=None, local_rank=None, world_size=None)

    def silent_ranks(self) -> List[int]:
        """Return the local ranks whose process has left no file, as far as this launcher knows their pids."""
        try:
            pids = {name.split(".")[2] for name in os.listdir(self.process.folder) if name.startswith("rank")}
        except ours(OSError):
            pids = set()
        if pids and not pids & {str(pid) for pid in self.children.values()}:
            return []  # each child is a shell that started its rank: their pids say nothing
        return sorted(rank for rank, pid in self.children.items() if str(pid) not in pids)

    def warn(self, problem: str, event: schema.Event) -> None:
        """Say one line on stderr, unless DDP_PROBE_ECHO is off, and record it: which rank, which line, what, how to read on."""
        rank = "?" if self.process.rank is None else self.process.rank
        where = " at %s:%d" % (event.site.file, event.site.line) if event.site is not None else ""
        self.recorder.warn("rank %s%s: %s. Read on: %s" % (rank, where, problem, _summary.command(self.process.folder)))

    def _fault(self, name: str, exc: BaseException, count: int) -> None:
        from ddp_probe.facts.failure import failure

        self.recorder.point(schema.Fault(probe=name, count=count, switched_off=guard.off(name), failure=failure(exc)))

    def forked(self) -> None:
        """In the child of a fork: silent, with nothing of the parent's file."""
        switch.on = False
        self.recorder.forked()
        self.ending.forget()

    def _forget_the_parent(self) -> None:
        """Count from nothing: a fork inherits what its parent has counted."""
        guard.forget()
        self.children.clear()
        for patch in self.patches.values():
            patch.calls = patch.stale_calls = 0
        for probe in self._probes.values():
            probe.forget()

    def promoted(self) -> None:
        """This process has become a rank."""
        if not switch.on:
            self._forget_the_parent()
            self.rows = self._rows_now()
            self.last_move = self.last_set_device = ""
            self.recorder = self._open()
            self.closed, self._last_word = False, {}
            self.ending = _ending.Ending(self)
            self.ending.watch()
            switch.on = True
            self._begin()

    def _rows_now(self) -> List["TargetRow"]:
        from ddp_probe.activation import targets

        return targets.rows(self.process.role.name) + self.further_rows()

    def further_rows(self) -> List["TargetRow"]:
        """Return the targets that the import watcher does not know of by itself."""
        return self.plugins.rows + self.remedies.rows

    def close(self, **known: Any) -> None:
        """Write what is known at the end: once, and once more if the exit code turns out to be another one."""
        if not switch.on or self.recorder.path is None:
            return
        again = self.closed
        if again and known.get("exit_code") in (None, self._last_word.get("exit_code")):
            return
        self.closed = True
        try:
            for event in () if again else _coverage.events(self):
                self.recorder.point(event)
            self._last_word.update(known)
            last = _ending.last_event(self, **self._last_word)
            self.recorder.point(last)
        except BaseException:  # raised by a signal handler of the job's: there is no last line yet
            self.closed = again
            raise
        self.summary_due = _summary.wanted(last)

    def restore(self) -> Certificate:
        """Put every original back; the certificate says which, by identity."""
        certificate = self.registry.undo()
        for name, probe in self._probes.items():
            if isinstance(probe, Override):
                guard.run(name, probe.undo)
        self.closed = True
        self.ending.unwatch()
        if self.recorder.path is not None:
            self.recorder.point(
                schema.Restored(
                    ok=certificate.ok,
                    restored=sum(entry.restored for entry in certificate.entries),
                    unreachable=[str(entry.slot) for entry in certificate.entries if not entry.restored][:50],
                )
            )
        self.recorder.close()
        return certificate
