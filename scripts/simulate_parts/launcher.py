"""What torchrun's agent on one host writes: the children that it starts, how each of them ends, and its own account of the failed ones."""

from typing import List, NamedTuple, Optional

import ddp_probe
from ddp_probe.shared import schema

from . import launch as of_launch
from .launch import Launch, host_name, torch_frame
from .process import CLOCK, LoggedProcess
from .training import Training

_TORCHRUN = schema.Site(file="/env/bin/torchrun", line=8, function="<module>")
_RUN = torch_frame("distributed/run.py", 1019, "run")
_AGENT = torch_frame("distributed/launcher/api.py", 383, "launch_agent")
_SEE = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
_TARGETS = ("torch.distributed.launcher.api.launch_agent", "torch.distributed.elastic.multiprocessing.api.PContext.start")


class Ending(NamedTuple):
    """How the launcher sees one child end."""

    rank: int
    local_rank: int
    pid: int
    exit_code: int
    signal: str

    @property
    def message(self) -> str:
        """What the launcher knows of it."""
        return "Signal %d (%s) received by PID %d" % (-self.exit_code, self.signal, self.pid) if self.signal else _SEE


def write(launch: Launch, host: int, ranks: List[Training]) -> None:
    """Write the launcher's file of a host whose ranks have lived."""
    CLOCK.now = 0
    identity = {"host": host_name(host), "pid": launch.launcher_pid(host), "run": launch.name}
    process = LoggedProcess(launch.folder, "launcher.%s" % host_name(host), identity, lambda: _first(launch))
    agent = process.begin(_agent(launch, len(ranks)))
    _start(process, launch, ranks)
    endings = [_ending(launch, rank) for rank in ranks]
    CLOCK.stand_at(ranks[0].meeting("leave") + max(rank.outlived_by for rank in ranks))
    failed = _account(process, endings, launch)
    told = _failure(failed) if failed else None
    if told is None:
        process.end(agent, CLOCK.now * 1e-9, schema.LauncherAgent())
    else:
        process.fail(agent, CLOCK.now * 1e-9, told, schema.LauncherAgent())
    state = {"probe": "launcher", "state": "patched", "calls": 1}
    watched = [schema.WatchedTarget(target=target, **state) for target in _TARGETS]
    process.point(schema.Coverage(targets=watched))
    process.point(_last(launch, ranks, told))
    process.close()


def _first(launch: Launch) -> schema.Event:
    argv = ["/env/bin/torchrun", "--nnodes=%d" % launch.hosts, "--nproc_per_node=%d" % launch.per_host, of_launch.SCRIPT, "config.py"]
    return schema.LauncherStart(
        schema=schema.VERSION,
        probe=ddp_probe.__version__,
        launcher="torchrun",
        argv=argv,
        cwd="/job",
        versions=of_launch.VERSIONS,
        environment=of_launch.shared_environment(launch),
    )


def _agent(launch: Launch, count: int) -> schema.Event:
    return schema.LauncherAgent(
        site=_TORCHRUN,
        through=[_RUN],
        nproc_per_node=count,
        nnodes="%d:%d" % (launch.hosts, launch.hosts),
        max_restarts=0,
        rendezvous={"backend": "static", "endpoint": "%s:%s" % (host_name(0), of_launch.PORT), "id": "none"},
        entrypoint="/env/bin/python3.11 -u %s config.py" % of_launch.SCRIPT,
    )


def _start(process: LoggedProcess, launch: Launch, ranks: List[Training]) -> None:
    children = {str(rank.local_rank): launch.pid(rank.rank) for rank in ranks}
    asked = schema.LauncherGroup(site=_TORCHRUN, through=[_RUN], asked=len(ranks), restart=0)
    process.call(asked, 0.02, schema.LauncherGroup(children=children, restart=0))


def _ending(launch: Launch, rank: Training) -> Ending:
    exit_code, signal = (1, "") if launch.fault else (0, "")
    if rank.guilty and launch.fault == "killed":
        exit_code, signal = -9, "SIGKILL"
    elif rank.gone or (rank.guilty and launch.fault == "missing"):
        exit_code, signal = -15, "SIGTERM"
    return Ending(rank.rank, rank.local_rank, launch.pid(rank.rank), exit_code, signal)


def _account(process: LoggedProcess, endings: List[Ending], launch: Launch) -> List[Ending]:
    """Write each child's end, then those that failed, the first of them marked: the guilty one where this host has it."""
    for one in endings:
        process.point(schema.LauncherChild(child_local_rank=one.local_rank, child_pid=one.pid, exit_code=one.exit_code, signal=one.signal))
    failed = [one for one in endings if one.exit_code]
    failed.sort(key=lambda one: (one.signal == "SIGTERM", one.rank != launch.guilty))
    for one in failed:
        event = schema.LauncherChild(
            child_rank=one.rank,
            child_local_rank=one.local_rank,
            child_pid=one.pid,
            exit_code=one.exit_code,
            signal=one.signal,
            message=one.message,
            first=one is failed[0],
        )
        process.point(event)
    return failed


def _failure(failed: List[Ending]) -> schema.Failure:
    line = "[%d]:\n  host      : %s\n  rank      : %d (local_rank: %d)\n  exitcode  : %d (pid: %d)\n  error_file: <N/A>\n  traceback : %s\n"
    account = "".join(line % (n, "localhost", one.rank, one.local_rank, one.exit_code, one.pid, one.message) for n, one in enumerate(failed))
    bar = "=" * 60
    message = "\n%s\n%s FAILED\nRoot Cause (first observed failure):\n%s%s" % (bar, of_launch.SCRIPT, account, bar)
    kind = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError"
    return schema.Failure(type=kind, message=message[:2000], raised_at=_AGENT, frames=[_AGENT])


def _last(launch: Launch, ranks: List[Training], told: Optional[schema.Failure]) -> schema.Event:
    silent = [rank.local_rank for rank in ranks if rank.guilty and launch.fault == "missing"]
    event = schema.LauncherEnd(silent_ranks=silent)
    if told is not None:
        event.exit_code, event.uncaught, event.failure = 1, True, told
    return event
