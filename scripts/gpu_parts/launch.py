"""Starts a job with a time limit, and leaves none of its processes behind."""

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Sequence

REPO = Path(__file__).resolve().parent.parent.parent
_LAUNCHERS = ("DDP_PROBE", "MASTER_", "SLURM_", "OMPI_", "PMI", "TORCHELASTIC_", "GROUP_", "ROLE_")
_RANK = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
_PORTS = (10000, 20000)  # Below the ports that the kernel gives to whoever asks for any.
_GRACE = 5.0  # Seconds that the kernel has to end a killed process.


class Ended(NamedTuple):
    """How a job ended."""

    code: Optional[int]  # None: it was killed at its time limit.
    output: str
    seconds: float


def environment(more: Dict[str, str]) -> Dict[str, str]:
    """Return this process's environment without what a launcher or the probe puts there, for a child that uses this checkout."""
    env = {name: value for name, value in os.environ.items() if name not in _RANK and not name.startswith(_LAUNCHERS)}
    path = os.pathsep.join([str(REPO), *filter(None, [env.get("PYTHONPATH", "")])])
    return {**env, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **more}


def probed(runs: Path, command: Sequence[str]) -> List[str]:
    """Return the command that runs another one under the probe."""
    return [sys.executable, "-m", "ddp_probe", "run", "--dir", str(runs), "--", *command]


def torchrun(program: Path, ranks: int, arguments: Sequence[str]) -> List[str]:
    """Return the command that launches a program over some ranks of this host."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=%d" % ranks]
    return [*launcher, "--master_addr=127.0.0.1", "--master_port=%d" % _port(), str(program), *arguments]


def _port() -> int:
    for port in random.SystemRandom().sample(range(*_PORTS), 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise OSError("none of 100 ports between %d and %d is free" % _PORTS)


def bounded(command: Sequence[str], folder: Path, env: Dict[str, str], seconds: float) -> Ended:
    """Run a command in a folder of its own; at its end, or at the limit, kill every process that still runs in that folder."""
    started, code = time.monotonic(), None
    output = folder.with_name(folder.name + ".txt")
    with output.open("wb") as file:  # A pipe could be held open by a grandchild.
        process = subprocess.Popen(
            command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _end(process, folder)
    return Ended(code, output.read_text(encoding="utf-8", errors="replace"), time.monotonic() - started)


def _end(process: "subprocess.Popen[bytes]", folder: Path) -> None:
    """Kill the group, then what is left in the folder: newer launchers give each rank a session of its own."""
    if process.poll() is None:  # Once it was waited for, its number may be another group's.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    until = time.monotonic() + _GRACE
    while running_in(folder) and time.monotonic() < until:
        for pid in running_in(folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    with contextlib.suppress(subprocess.TimeoutExpired):  # A call into a driver may hold a process even then.
        process.wait(_GRACE)


def running_in(folder: Path) -> List[int]:
    """Return the processes whose working directory is in a folder."""
    place, found = os.path.realpath(str(folder)), []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # It has ended meanwhile, or is another person's.
            where = os.readlink(str(entry / "cwd"))
            if where == place or where.startswith(place + os.sep):
                found.append(int(entry.name))
    return found
