"""This process: its role, its place in the job, its run, and what becomes of them over a fork or a promotion."""

from __future__ import annotations

import os

from ddp_probe import settings
from ddp_probe.activation import _roles, _run
from ddp_probe.activation._command import command_line, program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional


class Process:
    """What the rest of the probe needs to know of the process that it is in."""

    def __init__(self) -> None:
        self.program = program(command_line())
        self.role = _roles.decide(self.program, os.environ)
        self.rank_info = _roles.rank_info(os.environ)
        self.pid = os.getpid()
        self.promoted = False
        self.folder = ""
        if self.role.name in (_roles.LAUNCHER, _roles.RANK, _roles.SOLO):
            self.settle()

    def settle(self) -> None:
        """Decide the run's folder and tell what this process starts."""
        self.folder = _run.folder(self.role.name, self.rank_info.rank, os.environ)
        if self.role.name == _roles.SOLO:
            os.environ[settings.ORIGIN.name] = self.folder
            return
        os.environ[settings.RUN.name] = self.folder
        if self.role.name == _roles.RANK:
            os.environ[settings.ARMED.name] = "%d:%s" % (self.pid, _roles.armed_as(os.environ))
        else:
            os.environ.pop(settings.ARMED.name, None)

    def demote(self) -> None:
        """Become a helper: this is a fork of a process that was armed."""
        self.pid = os.getpid()
        self.promoted = False
        self.role = _roles.Role(_roles.HELPER, "A fork of an armed process.")

    def promote(self, given: Dict[str, Any]) -> None:
        """Become the rank that init_process_group was called for."""
        self.rank_info = _roles.rank_info(os.environ)
        if self.rank_info.rank is None:
            self.rank_info.launcher = "multiprocessing"
        rank, world_size = given.get("rank"), given.get("world_size")
        if isinstance(rank, int) and rank >= 0:
            self.rank_info.rank = rank
        if isinstance(world_size, int) and world_size > 0:
            self.rank_info.world_size = world_size
        self.promoted = True
        self.role = _roles.Role(_roles.RANK, "A child that calls init_process_group.")
        self.folder = _run.folder(_roles.RANK, self.rank_info.rank, os.environ)

    def arm_anyway(self) -> None:
        """Take the part that the environment names, because the program itself asked to be armed."""
        if self.role.name in (_roles.HELPER, _roles.NOTHING):
            name = _roles.SOLO if self.rank_info.rank is None else _roles.RANK
            self.role = _roles.Role(name, "The program called ddp_probe.activate().")
            self.settle()

    @property
    def run(self) -> str:
        """The run's name."""
        return os.path.basename(self.folder)

    @property
    def rank(self) -> Optional[int]:
        """The rank to write under; a program on its own is rank 0."""
        return 0 if self.rank_info.rank is None and self.role.name == _roles.SOLO else self.rank_info.rank
