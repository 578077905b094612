"""The launch as a whole: how many ranks on which hosts, when everybody meets, and the texts that are the same in all of its files."""

import math
import os
import time
from typing import Dict, List, NamedTuple

from ddp_probe.shared.schema import Failure, Site

PORT = "29500"
SCRIPT = "/train/train.py"
_TORCH = "/env/site-packages/torch/"
VERSIONS = {
    "python": "3.11.7",
    "torch": "2.13.0+cpu",
    "mmengine": "0.10.7",
    "numpy": "2.4.6",
    "wrapt": "2.5.2",
    "msgspec": "0.22.0",
    "torch.git": "cf30153c4c131c8164ee7798e5022d810682e2cb",
}


class Launch(NamedTuple):
    """What was asked for."""

    folder: str
    ranks: int
    hosts: int
    events: int  # Lines in each rank's file.
    fault: str  # Empty: nothing goes wrong.
    guilty: int
    began: int  # Unix time in nanoseconds.
    records: int = 0  # Calls in each rank's ledger; 0: there is no ledger.
    folds: bool = False  # Each host's files are replaced by their fold.

    @property
    def name(self) -> str:
        """The run's name."""
        return os.path.basename(self.folder)

    @property
    def per_host(self) -> int:
        """How many ranks a full host has."""
        return math.ceil(self.ranks / self.hosts)

    def ranks_of(self, host: int) -> range:
        """Return the ranks of a host; the last one may have fewer."""
        return range(host * self.per_host, min((host + 1) * self.per_host, self.ranks))

    def pid(self, rank: int) -> int:
        """Return a rank's pid; hosts count theirs for themselves."""
        return self.launcher_pid(rank // self.per_host) + 10 + rank % self.per_host

    @staticmethod
    def launcher_pid(host: int) -> int:
        """Return the pid of a host's launcher."""
        return 2000 + host * 31 % 500

    @property
    def busy(self) -> float:
        """Seconds that the calls which fill up a file take at most."""
        return self.events * 0.04 + 1


def host_name(host: int) -> str:
    """Return a host's name."""
    return "node%d" % (host + 1)


def began_so_that_it_ends_now(events: int, outlived_by: float) -> int:
    """Return when a launch with this many lines per file, whose ranks end this late after their last meeting, has begun."""
    return time.time_ns() - int((events * 0.04 + 30 + outlived_by) * 1e9)


def shared_environment(launch: Launch) -> Dict[str, str]:
    """Return the variables that all processes of the launch have."""
    return {
        "DDP_PROBE": "1",
        "DDP_PROBE_DIR": "/scratch/runs",
        "DDP_PROBE_RUN": "/scratch/runs/" + launch.name,
        "MASTER_ADDR": host_name(0),
        "MASTER_PORT": PORT,
        "OMP_NUM_THREADS": "1",
        **({} if launch.records else {"DDP_PROBE_LEDGER": "off"}),
    }


def at(line: int, function: str = "main") -> Site:
    """Return a line of the job."""
    return Site(file=SCRIPT, line=line, function=function)


def torch_frame(file: str, line: int, function: str) -> Site:
    """Return a line of torch."""
    return Site(file=_TORCH + file, line=line, function=function)


def failure(kind: str, message: str, frames: List[Site]) -> Failure:
    """Return an exception that the last of some frames has raised."""
    return Failure(type=kind, message=message, raised_at=frames[-1], frames=frames)
