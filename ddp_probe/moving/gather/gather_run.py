"""Gathers: rank 0 holds the meeting and returns what has arrived; each other rank brings what its host has."""

import contextlib
import multiprocessing
import os
import signal
import socket
import sys
from typing import Callable, Iterator, List, Mapping, NamedTuple, Optional

from ddp_probe.doctor import children
from ddp_probe.moving.gather import choice, sender
from ddp_probe.moving.gather.hub import GatherHub
from ddp_probe.moving.gather.keep import Keep, nothing_kept
from ddp_probe.moving.gather.messages import GatherLine
from ddp_probe.reading import find
from ddp_probe.reading import gathered as gathered_folder
from ddp_probe.shared import meeting
from ddp_probe.shared.errors import ProbeError, UnusableError, UsageError
from ddp_probe.shared.meeting import MeetingPlace, agent_key, fresh_token, is_launch, leads_host, missing, of_slurm_step, place
from ddp_probe.shared.rank_info import rank_info
from ddp_probe.wording.text import say

_MARGIN = 180.0  # Seconds that the store of torchrun's agent has besides waiting for rank 0; its child imports torch.
_LEAVE = 5.0  # Seconds that the process for rank 0's host has to end.
UNDECIDED = 3


class GatherRequest(NamedTuple):
    """What a person asked for."""

    run: str = ""  # In the form that `report` takes; the newest run if empty.
    into: str = ""
    logs: bool = False
    most: int = 1 << 30  # Bytes of the files that --logs brings.
    seconds: float = 60.0


class Came:
    """What rank 0 has in its folder."""

    def __init__(self, folder: str, launch: str) -> None:
        self.folder = folder
        self.launch = launch  # ":3" if the third launch of the run's folder was named.
        self.hosts: List[str] = []
        self.lacking: List[str] = []  # Missing parts of the folds, one sentence each.
        self.remarks: List[str] = []  # What else a person should know.
        self.bytes = 0
        self.code = UNDECIDED  # The exit code of the report, which the ranks wait for.


class NotGatheredError(ProbeError):
    """A rank that could not meet the others, or has lost rank 0; exit code 3."""

    exit_code = UNDECIDED


def where(environ: Mapping[str, str]) -> MeetingPlace:
    """Return where the ranks of this launch meet; a process that is alone meets itself."""
    here = rank_info(environ)
    if here.rank is not None and here.world_size is None:
        raise UsageError(
            say("This is rank {rank} of an unknown number.", rank=here.rank),
            "Set WORLD_SIZE to the number of processes of gather on all hosts.",
        )
    if not is_launch(environ):
        return MeetingPlace(0, 1, "127.0.0.1", 0, "", fresh_token())
    lacking = missing(environ)
    address, port = of_slurm_step(environ)
    if lacking and not address:
        raise UsageError(
            say("The ranks cannot meet: {variables} is not set.", variables=" and ".join(lacking)),
            "Set MASTER_ADDR to the host of rank 0 and MASTER_PORT to a free port, the same on all hosts; torchrun and srun need neither.",
        )
    return place({"MASTER_ADDR": address, "MASTER_PORT": str(port), **{name: environ[name] for name in environ if name not in lacking}})


def bring(request: GatherRequest, environ: Mapping[str, str]) -> int:
    """Act as a rank other than rank 0; return the exit code of the report."""
    at = where(environ)
    try:
        key = agent_key(environ, "gather")
        at = _from_agent(at, key, request.seconds, environ) if key else at
        return _brought(at, request, leads=leads_host(environ))
    except (OSError, ValueError, meeting.RefusedError) as exc:
        raise _not_ended(at, "%s." % str(exc).rstrip(".")) from exc


def _not_ended(at: MeetingPlace, why: str) -> NotGatheredError:
    return NotGatheredError(
        what=say(
            "gather of rank {rank} on {host} did not finish with rank 0 at {address}:{port}.",
            rank=at.rank,
            host=socket.gethostname(),
            address=at.address,
            port=at.port,
        ),
        why=why,
        what_to_do="See what rank 0 prints, and start gather again: what has arrived is kept.",
    )


def _brought(at: MeetingPlace, request: GatherRequest, *, leads: bool, token: str = "") -> int:
    """Bring what this host has."""
    with contextlib.closing(GatherLine(meeting.entered(at.address, at.port, at.token, request.seconds), request.seconds)) as line:
        return sender.bring(line, at, request.run, leads=leads, token=token)


def _from_agent(at: MeetingPlace, key: str, seconds: float, environ: Mapping[str, str], meet_at: int = 0) -> MeetingPlace:
    """Tell the others the port and the token by the store of torchrun's agent, or return the place that rank 0 has named."""
    task = {"address": at.address, "port": at.port, "key": key, "seconds": seconds, "meet_at": meet_at, "token": at.token}
    answer = children.with_task("agent_port", task, environ, seconds + _MARGIN)
    if "port" not in answer.last:
        why = say(
            "The store of torchrun's agent could not be asked: {reason}.",
            reason=answer.last.get("error") or answer.how(),
        )
        raise _not_ended(at, why)
    return at._replace(port=int(answer.last["port"]), token=str(answer.last["token"]))


@contextlib.contextmanager
def gathered(request: GatherRequest, environ: Mapping[str, str], draw: Callable[[int, int, str], None]) -> Iterator[Came]:
    """Act as rank 0: yield what has arrived. The ranks wait until they receive the exit code, which the caller sets."""
    at = where(environ)
    key = agent_key(environ, "gather") if at.world > 1 else ""
    is_alone = at.world == 1
    at = at._replace(token=fresh_token()) if key else at
    listening = _listening(at, anywhere=bool(key))
    port = int(listening.getsockname()[1])
    hub = GatherHub(listening, at._replace(port=at.port or port), request.seconds, logs=request.logs, most=request.most)
    child = _own_host(listening, at._replace(address="127.0.0.1", port=port), request, hub.token)
    hub.open()
    came: Optional[Came] = None
    try:
        if key:
            _from_agent(at, key, request.seconds, environ, port)
        came = _taken(hub, request, child.is_alive, draw)
        if is_alone:
            alone = "This launch has one host: there is nothing to fetch. 'report' reads the run where it is."
            came.remarks.insert(0, say(alone))
        yield came
    finally:
        failed = sys.exc_info()[1]
        code = came.code if came else UNDECIDED
        hub.tell(failed.exit_code if isinstance(failed, ProbeError) else code)
        _end(child)


def _taken(hub: GatherHub, request: GatherRequest, alive: Callable[[], bool], draw: Callable[[int, int, str], None]) -> Came:
    run = hub.chosen(alive)
    if run is None:
        raise _no_run(hub, request)
    keep = Keep(request.into or os.path.join(find.root(), run.name + choice.SUFFIX), run.name)
    came = Came(keep.folder, ":%d" % run.launch if run.launch else "")
    hub.take(run, keep, draw)
    hosts = hub.hosts()
    came.lacking, came.hosts = hub.lacking(), [files.host for files in hosts if files.fold]
    came.bytes = sum(files.bytes for files in hosts)
    came.remarks = list(hub.strangers())
    for files in hosts:
        came.remarks += files.left_out()
    for files in hosts:
        if files.same:
            came.remarks.append(say("{who} has the same files as another host", who=files.who))
    fault = keep.close(came.lacking)
    if fault:
        came.remarks.append(
            say(
                "{path} could not be written: {reason}",
                path=os.path.join(keep.folder, gathered_folder.NAME),
                reason=fault,
            )
        )
    if not keep.folds():
        raise nothing_kept(keep.folder, "%s." % "; ".join(came.lacking))
    return came


def _no_run(hub: GatherHub, request: GatherRequest) -> ProbeError:
    if not request.run:
        return find.no_run(find.root())
    why = next((files.hello.why for files in hub.hosts() if files.hello.why), "")
    return UnusableError(
        what=say("No host has the run {run}.", run=request.run),
        why=why,
        what_to_do="'python -m ddp_probe runs' lists the runs of a host.",
    )


def _listening(at: MeetingPlace, *, anywhere: bool) -> socket.socket:
    try:
        if at.world == 1:
            return socket.create_server(("127.0.0.1", 0))
        return meeting.listen(0 if anywhere else at.port)
    except OSError as exc:
        raise ProbeError(
            what=say("Rank 0 cannot listen on port {port}.", port=at.port),
            why="%s." % (exc.strerror or exc),
            what_to_do="Set MASTER_PORT to a free port on all hosts. 'ss -ltnp' shows who listens.",
        ) from exc


def _own_host(listening: socket.socket, at: MeetingPlace, request: GatherRequest, token: str) -> multiprocessing.process.BaseProcess:
    """Start a process that sends the files of rank 0's host, as every other host does."""
    child = multiprocessing.get_context("fork").Process(target=_bring_own, args=(listening, at, request, token))
    sys.stdout.flush()
    sys.stderr.flush()
    child.start()
    return child


def _bring_own(listening: socket.socket, at: MeetingPlace, request: GatherRequest, token: str) -> None:
    listening.close()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # rank 0 says it
    with contextlib.suppress(OSError, ValueError, meeting.RefusedError):
        _brought(at, request, leads=True, token=token)


def _end(child: multiprocessing.process.BaseProcess) -> None:
    child.join(_LEAVE)
    if child.is_alive():  # Nobody needs its fold any more: rank 0 was interrupted, for example.
        child.terminate()
        child.join()
