"""This process: its role, its rank, its run, and what becomes of them after a fork or when a child becomes a rank."""

from __future__ import annotations

import os
import sys

from ddp_probe.activation import roles, run_folder
from ddp_probe.activation.roles import command_line, program
from ddp_probe.shared import settings
from ddp_probe.shared.rank_info import rank_info

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional


class ThisProcess:
    """What the rest of the probe needs to know of the process that it runs in."""

    def __init__(self) -> None:
        self.argv = command_line()
        self.program = program(self.argv)
        self.role = roles.decide(self.program, os.environ)
        self.rank_info = rank_info(os.environ)
        self.joined = False  # A child that became a rank when it called init_process_group.
        self.folder = ""
        if self.role.name in (roles.LAUNCHER, roles.RANK, roles.SOLO):
            self._settle(self.role)

    def _settle(self, role: roles.Role) -> None:
        """Choose the run's folder, and pass it on to what this process starts."""
        self.folder = run_folder.folder(role.name, self.rank_info.rank, os.environ)
        if role.name == roles.SOLO:
            os.environ[settings.ORIGIN.name] = self.folder
            return
        os.environ[settings.RUN.name] = self.folder
        if role.name == roles.RANK:
            os.environ[settings.ARMED.name] = "%d:%s" % (os.getpid(), roles.armed_as(os.environ))
        else:
            os.environ.pop(settings.ARMED.name, None)

    def become_helper(self) -> None:
        """Take the role of a fork of an armed process."""
        self.joined = False
        self.role = roles.Role(roles.HELPER, "A fork of an armed process.")

    def become_rank(self, given: Dict[str, Any]) -> None:
        """Take the role of a rank, with the arguments that init_process_group was called with."""
        self.rank_info = rank_info(os.environ)
        if any(word.startswith("from multiprocessing.") for word in self.argv):  # sys.argv has the words of the program by now.
            self.argv = [sys.executable, *(word for word in sys.argv if type(word) is str)]
        if self.rank_info.rank is None:
            self.rank_info.launcher = "multiprocessing"
        rank, world_size = given.get("rank"), given.get("world_size")
        if type(rank) is int and rank >= 0:
            self.rank_info.rank = rank
        if type(world_size) is int and world_size > 0:
            self.rank_info.world_size = world_size
        self.joined = True
        self.role = roles.Role(roles.RANK, "A child that calls init_process_group.")
        self.folder = run_folder.folder(roles.RANK, self.rank_info.rank, os.environ)

    def become_program(self) -> None:
        """Take the role that the environment names, because the program called ddp_probe.activate()."""
        if self.role.name in (roles.HELPER, roles.NOTHING):
            self.rank_info = rank_info(os.environ)  # A fork has inherited what its parent knows from a process group.
            name = roles.SOLO if self.rank_info.rank is None else roles.RANK
            role = roles.Role(name, "The program called ddp_probe.activate().")
            self._settle(role)
            self.role = role  # Last: what is cut short before is done again.

    @property
    def launcher_name(self) -> str:
        """The name of the launcher that this program is; "spawn" for a program that starts ranks itself."""
        return roles.launcher_name(self.program) or "spawn"

    @property
    def run(self) -> str:
        """The run's name."""
        return os.path.basename(self.folder)

    @property
    def rank(self) -> Optional[int]:
        """The rank to write under; a program on its own is rank 0."""
        return 0 if self.rank_info.rank is None and self.role.name == roles.SOLO else self.rank_info.rank
