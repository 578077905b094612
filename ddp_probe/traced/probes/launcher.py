"""What starts ranks: torchrun's own agent, and a program that starts them by multiprocessing. What was asked for, which children, how each ended."""

import os
import signal
import sys
from typing import Any, Dict, List, Optional, Set

from ddp_probe.activation.targets import LAUNCH
from ddp_probe.shared import schema
from ddp_probe.shared.masks import mask_argv, masked
from ddp_probe.shared.ours import ours
from ddp_probe.traced.device_states import HostReader
from ddp_probe.traced.facts.describe import class_name, contents, describe, overridden
from ddp_probe.traced.patching import Call
from ddp_probe.traced.probes import Begun, Probe
from ddp_probe.traced.session import Session

_TEXT = 2000
_LOOK = ".poll"


class Launcher(Probe):
    """Reads exit codes from the launcher's tables, once it has closed them; starts and signals nothing.

    A program that starts processes by multiprocessing is a launcher once a child that left a rank's file has not ended well: nothing else
    knows of a SIGKILL.
    """

    name = "launcher"
    targets = (
        "torch.distributed.launcher.api:launch_agent",
        "torch.distributed.elastic.multiprocessing.api:PContext.start",
        "torch.distributed.elastic.multiprocessing.api:PContext.close",
        "multiprocessing.popen_fork:Popen.poll",
        "multiprocessing.popen_forkserver:Popen.poll",
    )
    roles = LAUNCH
    events = (schema.LauncherAgent, schema.LauncherGroup)
    points = (schema.LauncherChild, schema.LauncherSignal)
    cost = "A few lines per launch, in the launcher only; one comparison when a program asks whether its child has ended."

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._told: Set[Optional[int]] = set()
        self._stopped = False
        self._generation = 0
        self._children: Dict[int, int] = {}

    def forget(self) -> None:
        """Forget the children too: they are the parent's."""
        super().forget()
        self._told.clear()
        self._stopped = False
        self._children.clear()
        self._generation = 0

    def silent_ranks(self) -> List[int]:
        """Return the local ranks whose process has left no file, as far as their pids are known."""
        pids = self._pids_with_a_file()
        if pids and not pids & {str(pid) for pid in self._children.values()}:
            return []  # Each child is a shell that started its rank: their pids say nothing.
        return sorted(rank for rank, pid in self._children.items() if str(pid) not in pids)

    def _pids_with_a_file(self) -> Set[str]:
        try:
            return {name.split(".")[2] for name in os.listdir(self.session.process.folder) if name.startswith("rank")}
        except ours(OSError):
            return set()

    def before(self, call: Call) -> None:
        """Write the begin event; a look at a child has none."""
        if not call.target.qualname.endswith(_LOOK):
            super().before(call)

    def begin(self, call: Call) -> Optional[schema.Event]:
        """Record what is about to be started or closed."""
        method = call.target.qualname.rpartition(".")[2]
        if method == "launch_agent":
            self.session.act_as_launcher()
            return _asked(call.arguments())
        if method == "start":
            asked = _whole(contents(call.instance).get("nprocs"))
            return schema.LauncherGroup(restart=self._generation, asked=asked, oom_kills=HostReader().oom_kills())
        event = None if self._stopped else _signal_being_handled()
        if event is not None:
            self._stopped = True
            self.session.recorder.point(event)
            self.session.launch.note_signal()
        return None

    def end(self, call: Call, begun: Begun, result: Any) -> Optional[schema.Event]:
        """Record the children that have been started."""
        if isinstance(begun.event, schema.LauncherGroup):
            self._generation += 1
            children = _pids(call.instance)
            self._children.update(children)
            return schema.LauncherGroup(children={str(rank): pid for rank, pid in children.items()}, restart=begun.event.restart)
        return None

    def error(self, call: Call, begun: Begun, exc: BaseException) -> None:
        """Record what the launcher itself says of each failure."""
        failures = contents(exc).get("failures")
        if type(failures) is dict:
            first = _first(failures)
            for rank, failure in failures.items():
                self.session.recorder.point(_failure(rank, failure, failure is first))

    def after(self, call: Call, result: Any) -> None:
        """Record each child's exit code where the group has been closed."""
        super().after(call, result)
        if call.target.qualname.endswith(_LOOK):
            self._lost(contents(call.instance).get("pid"), result)
        if call.target.qualname.endswith(".close"):
            for event in _ended(call.instance):
                if event.child_pid not in self._told:  # torch closes a group more than once
                    self._told.add(event.child_pid)
                    self.session.recorder.point(event)

    def _lost(self, pid: Any, code: Any) -> None:
        """Record a child that has not ended well, if it has become a rank."""
        if type(pid) is not int or type(code) is not int or not code or pid in self._told or self.session.process.role.name not in LAUNCH:
            return
        self._told.add(pid)
        if str(pid) in self._pids_with_a_file():
            self.session.act_as_launcher(watches=False)
            self.session.recorder.point(child_event(None, pid, code))


def _asked(given: Dict[str, Any]) -> schema.LauncherAgent:
    config = _fields(given.get("config"))
    rendezvous = {"backend": config.get("rdzv_backend"), "endpoint": config.get("rdzv_endpoint"), "id": config.get("run_id")}
    return schema.LauncherAgent(
        nproc_per_node=_whole(config.get("nproc_per_node")),
        nnodes="%s:%s" % (_whole(config.get("min_nodes")), _whole(config.get("max_nodes"))),
        max_restarts=_whole(config.get("max_restarts")),
        rendezvous={name: masked(value, 200) for name, value in rendezvous.items() if type(value) is str},
        entrypoint=_program(given.get("entrypoint"), given.get("args")),
    )


def _program(entrypoint: Any, args: Any) -> str:
    """Return the command line that each rank runs, or the function."""
    words = args if type(args) in (list, tuple) and type(entrypoint) is str else ()
    return " ".join(mask_argv([entrypoint, *words]))[:_TEXT] if type(entrypoint) is str else describe(entrypoint)


def _fields(config: Any) -> Dict[str, Any]:
    """Return what a LaunchConfig holds; of anything else, nothing is asked."""
    return contents(config) if class_name(config).startswith("torch.") else {}


def _whole(value: Any) -> Optional[int]:
    return value if type(value) is int and 0 <= value < 1 << 31 else None


def _pids(context: Any) -> Dict[int, int]:
    pids = {} if overridden(type(context), ("__getattribute__", "__getattr__")) else context.pids()
    return {int(rank): int(pid) for rank, pid in pids.items()} if type(pids) is dict else {}


def _signal_being_handled() -> Optional[schema.LauncherSignal]:
    """Return the signal because of which the launcher closes its children, if its exception is being handled this moment."""
    exc = sys.exc_info()[1]
    if issubclass(type(exc), KeyboardInterrupt):
        return schema.LauncherSignal(signal="SIGINT")
    if exc is None or class_name(exc).rpartition(".")[2] != "SignalException":
        return None
    number: Any = contents(exc).get("sigval")
    return schema.LauncherSignal(signal=_signal_name(-number) if issubclass(type(number), int) else "")


def _ended(context: Any) -> List[schema.LauncherChild]:
    """Read exit codes from Popen objects (programs) or multiprocessing's processes (functions)."""
    held = contents(context)
    handlers = held.get("subprocess_handlers")
    if type(handlers) is dict:
        return [child_event(rank, handler.proc.pid, handler.proc.returncode) for rank, handler in sorted(handlers.items())]
    processes = contents(held.get("_pc")).get("processes") or []
    return [child_event(rank, process.pid, process.exitcode) for rank, process in enumerate(processes)]


def child_event(local_rank: Optional[int], pid: Optional[int], code: Optional[int]) -> schema.LauncherChild:
    """Return how a child ended. Its peers are often ended before they can count what the kernel has killed, so the launcher counts it as well."""
    name = _signal_name(code)
    kills = HostReader().oom_kills() if name == "SIGKILL" else None
    return schema.LauncherChild(child_local_rank=local_rank, child_pid=pid, exit_code=code, signal=name, oom_kills=kills)


def _signal_name(code: Optional[int]) -> str:
    """Return the name of the signal that a negative exit code stands for."""
    if code is None or code >= 0:
        return ""
    try:
        return signal.Signals(-code).name
    except ours(ValueError):
        return "signal %d" % -code


def _first(failures: Dict[int, Any]) -> Any:
    return min(failures.values(), key=lambda failure: getattr(failure, "timestamp", 0) or 0)


def _failure(rank: int, failure: Any, first: bool) -> schema.LauncherChild:
    message = getattr(failure, "message", "")
    text = message if type(message) is str else describe(message)
    code = getattr(failure, "exitcode", None)
    return schema.LauncherChild(
        child_rank=rank,
        child_local_rank=getattr(failure, "local_rank", None),
        child_pid=getattr(failure, "pid", None),
        exit_code=code,
        signal=_signal_name(code),
        message=masked(text, _TEXT),
        first=first,
    )


PROBE = Launcher
