"""What the lifecycle arms: loads the probes and remedies as their targets appear, owns the recorder and the registry of patches, ends in good order.

It decides nothing about its own life: ddp_probe.activation.lifecycle calls begin, begin_again, fall_silent and restore.
"""

import importlib
import os
import socket
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Set, Tuple, Union

from ddp_probe.activation.targets import FIX, PROGRAM, remedy_rows
from ddp_probe.shared import schema, settings
from ddp_probe.traced import ending, opening
from ddp_probe.traced.device_states import DeviceStates
from ddp_probe.traced.hangs import LaunchWatcher
from ddp_probe.traced.ledger import Collectives
from ddp_probe.traced.patching import Certificate, Override, Patch, PatchRegistry, Target, guard, switch
from ddp_probe.traced.plugins import Plugins
from ddp_probe.traced.record import Recorder, brief, files
from ddp_probe.traced.session import Session

if TYPE_CHECKING:
    from ddp_probe.activation.targets import TargetRow
    from ddp_probe.activation.this_process import ThisProcess
    from ddp_probe.traced.probes import Probe
    from ddp_probe.traced.watched_line import WatchedLine


class Remedies:
    """Which remedies are asked for in this process, and what they may change."""

    def __init__(self, role: str) -> None:
        self.names: Tuple[str, ...] = settings.get(settings.FIX) if role in (*PROGRAM, "helper") else ()
        self.mistake = _mistake() if role in PROGRAM else ""
        self.rows = remedy_rows(self.names)

    def load(self, name: str, session: Session) -> Any:
        """Return the remedy that a row names, or None if the row names a probe."""
        return _class(name[len(FIX) :])(session) if name.startswith(FIX) else None


def _mistake() -> str:
    wrong = settings.mistakes(os.environ).get(settings.FIX.name)
    return "%s: %s Nothing is changed." % (settings.FIX.name, wrong) if wrong else ""


def _class(name: str) -> Any:
    return importlib.import_module("ddp_probe.traced.remedies." + name.replace("-", "_")).REMEDY


# What the lifecycle arms: loads the probes as their targets appear, owns the recorder and the registry of patches, ends in good order.
#
# It decides nothing about its own life: ddp_probe.activation.lifecycle calls begin, begin_again, fall_silent and restore.

_BUILT_IN = "ddp_probe.traced.probes."


class ArmedSession:
    """What is armed in this process; at most one at a time."""

    def __init__(self, process: "ThisProcess", rows: "List[TargetRow]", group_called: Callable[[Dict[str, Any]], None]) -> None:
        guard.forget()
        self.process = process
        self.group_called = group_called
        """Call it with the arguments of init_process_group: a silent child becomes a rank."""
        self.switch = switch
        self.plugins = Plugins(process.role.name)
        self.remedies = Remedies(process.role.name)
        self.rows = rows + self.further_rows()
        self.registry = PatchRegistry()
        self.patches: Dict[str, Patch] = {}
        self.missed: Dict[str, List[str]] = {}
        self._probes: Dict[str, Union[Probe, Override]] = {}
        self._late: Set[str] = set()
        self._open_in_this_process()
        self.collectives = Collectives(self)
        self.launch = LaunchWatcher()
        self.watched_line = self._line_to_watch()
        self.states = DeviceStates(self)
        guard.on_fault = self._fault

    def _open_in_this_process(self) -> None:
        self.recorder = self._open()
        self.ending = ending.Ending(self)
        self._pid = os.getpid()

    def begin(self) -> None:
        """Listen for the end and write the first line; a second time changes nothing."""
        self.ending.watch()
        self._begin()

    def _begin(self) -> None:
        """Write the first line at once, but for a program of its own: it may never do what a probe watches."""
        if self.process.role.name == "rank":
            self.recorder.start()
            if (self.process.rank_info.world_size or 0) > 1:
                guard.run("watcher", self.collectives.watcher.start_early, self)
        wrong = [self.remedies.mistake] if self.remedies.mistake else []
        wrong += settings.replaced() if self.process.role.name in PROGRAM else []
        for sentence in wrong if not self.process.rank else ():
            self.recorder.warn(sentence)

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
            guard.run("process", files.point_at, self.process.folder)
        return opening.first_event(self.process)

    def _stem(self) -> str:
        if self.process.role.name == "launcher":
            return "launcher.%s" % _host()
        return "rank%05d.%s.%d" % (self.process.rank or 0, _host(), os.getpid())

    def ready(self, modules: List[str], late: bool) -> None:
        """Modules have been executed, this moment or before we came: patch what is watched in them."""
        rows = [row for row in self.rows if row.module in modules]
        probes = [(row, guard.run(row.probe, self.probe, row.probe)) for row in rows]
        loaded = [(row, probe) for row, probe in probes if probe is not None]
        targets = [(Target(row.module, row.qualname), probe) for row, probe in loaded]
        patches = self.registry.apply_all(targets, aliases=late)
        for (row, _), patch in zip(loaded, patches):
            self.patches[str(row)] = patch
            if late:
                self._late.add(str(row))
        guard.run("ledger", self.collectives.modules)
        self._watch_line()

    def note_missed(self) -> None:
        """The program armed itself late: find out who had kept an original before, for the lines at exit."""
        self.missed = guard.run("process", self.registry.missed) or {}

    def probe(self, name: str) -> "Union[Probe, Override]":
        """Return the probe of that name, or the remedy, loading its file first."""
        if name not in self._probes:
            self._probes[name] = self.remedies.load(name, self) or self._load(name)
        return self._probes[name]

    def loaded(self, name: str) -> Any:
        """Return the probe of that name if its file has been loaded, else None."""
        return self._probes.get(name)

    def last(self, name: str) -> str:
        """Return, in words, the last call that the probe of that name remembers; empty if there is none."""
        probe = self.loaded(name)
        return str(probe.last) if probe is not None else ""

    def _load(self, name: str) -> "Probe":
        module = self.plugins.modules.get(name) or importlib.import_module(_BUILT_IN + name)
        probe: Probe = module.PROBE(self)
        return probe

    def was_late(self, row: "TargetRow") -> bool:
        """Tell whether the target's module had been imported before the probe was there."""
        return str(row) in self._late

    def rank_known(self, rank: Optional[int], world_size: Optional[int]) -> None:
        """A process group tells who this process is; programs without a launcher learn it here."""
        rank_info = self.process.rank_info
        rank_info.rank = rank_info.rank if rank is None else rank
        rank_info.world_size = rank_info.world_size if world_size is None else world_size
        self.recorder.bind(rank=rank_info.rank, world_size=rank_info.world_size)
        self.collectives.rank_known(rank_info.rank, rank_info.world_size)
        self._watch_line()
        if self.watched_line is not None:
            guard.run("watched-line", self.watched_line.say_if_not_found)

    def _line_to_watch(self) -> Optional["WatchedLine"]:
        """Return what watches the line that DDP_PROBE_WATCH names; its modules are loaded only if there is one."""
        if not settings.get(settings.WATCH):
            return None
        from ddp_probe.traced.watched_line import WatchedLine

        return WatchedLine(self)

    def _watch_line(self) -> None:
        if self.watched_line is not None and self.process.role.name in ("rank", "solo"):
            guard.run("watched-line", self.watched_line.look_for_it)

    def act_as_launcher(self, watches: bool = True) -> None:
        """A program of its own starts ranks itself: what it writes from here is a launcher's."""
        if self.process.role.name == "solo" and self.recorder.path is None:
            self.process.role.name = "launcher"
            self.recorder.bind(rank=None, local_rank=None, world_size=None)
        if watches and self.process.role.name == "launcher":
            guard.run("watcher", self.launch.start, self, _host())

    def speak_for_ranks(self) -> None:
        """A program of its own fails whose children have become ranks, as with a pool's: only it has their exception, for its pool keeps that."""
        if self.process.role.name == "solo" and self.recorder.path is None and os.path.isdir(self.process.folder):
            self.act_as_launcher(watches=False)
            self.recorder.start()

    def warn(self, problem: str, event: schema.Event) -> None:
        """Say one line on stderr, unless DDP_PROBE_ECHO is off, and record it: which rank, which line, what, how to read on."""
        rank = "?" if self.process.rank is None else self.process.rank
        where = " at %s:%d" % (event.site.file, event.site.line) if event.site is not None else ""
        self.recorder.warn("rank %s%s: %s. Read on: %s" % (rank, where, problem, brief.command("report", self.process.folder)))

    def _fault(self, name: str, exc: BaseException, count: int) -> None:
        from ddp_probe.traced.facts.failure import failure

        self.recorder.point(schema.Fault(probe=name, count=count, switched_off=guard.off(name), failure=failure(exc)))

    def fall_silent(self) -> None:
        """In the child of a fork: keep nothing of the parent's file."""
        self.recorder.forked()
        self.collectives.fall_silent()
        self.launch.fall_silent()
        self.ending.unwatch()

    def begin_again(self, rows: "List[TargetRow]") -> None:
        """In a child that is watched from here: a separate file, and counts that start from nothing."""
        if self._pid != os.getpid():
            self._forget_the_parent()
            self.rows = rows + self.further_rows()
            self._open_in_this_process()
            self.states = DeviceStates(self)
        self.begin()

    def _forget_the_parent(self) -> None:
        guard.forget()
        for patch in self.patches.values():
            patch.calls = patch.stale_calls = 0
        for probe in self._probes.values():
            probe.forget()

    def further_rows(self) -> List["TargetRow"]:
        """Return the targets that the import watcher does not know of by itself."""
        return self.plugins.rows + self.remedies.rows

    def restore(self) -> Certificate:
        """Put every original back; the certificate says which, by identity."""
        certificate = self.registry.undo()
        certificate.entries += self.collectives.undo()
        certificate.entries += self.watched_line.undo() if self.watched_line is not None else []
        self.launch.stop()
        for name, probe in self._probes.items():
            if isinstance(probe, Override):
                guard.run(name, probe.undo)
        self.ending.stop()
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


def _host() -> str:
    """Return the host's name as files carry it."""
    return "".join(letter if (letter.isascii() and letter.isalnum()) or letter in "-_" else "_" for letter in socket.gethostname().split(".")[0])
