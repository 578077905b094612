"""What checks look at: the request, the environment, the files of this host, and what children print; each child runs once."""

import os
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, TypeVar

from ddp_probe.doctor import children
from ddp_probe.doctor.children import ChildAnswer
from ddp_probe.doctor.programs.packages import PACKAGES
from ddp_probe.shared.regular_files import open_text

_T = TypeVar("_T")


class Request(NamedTuple):
    """What a person asked doctor to check."""

    nproc: Optional[int] = None  # Ranks on this host; the number of cards without it.
    backend: str = ""
    device: str = ""  # The device type, as torch calls it.
    command: Tuple[str, ...] = ()  # The launch command to look at.
    seconds: float = 60.0  # Time limit of one child.


class Host:
    """This host, as a job would find it."""

    def __init__(
        self, request: Request, environ: Optional[Mapping[str, str]] = None, *, dev: str = "/dev", sys: str = "/sys", proc: str = "/proc"
    ) -> None:
        self.request = request
        self.environ: Mapping[str, str] = dict(os.environ if environ is None else environ)
        self.dev, self.sys, self.proc = dev, sys, proc
        self._answers: Dict[Any, Any] = {}
        self._begun: Dict[Any, children.Child] = {}

    def once(self, key: Any, look: Callable[[], _T]) -> _T:
        """Return what a look finds; several checks share it."""
        if key not in self._answers:
            self._answers[key] = look()
        answer: _T = self._answers[key]
        return answer

    def knows(self, key: Any) -> bool:
        """Return whether a lookup of this name already has a result."""
        return key in self._answers

    def ask(self, program: str, *arguments: str) -> ChildAnswer:
        """Return what a program of programs/ says in a child."""
        return self.once((program, arguments), lambda: children.answer_of(self._child(program, arguments), self.request.seconds))

    def begin(self, program: str, *arguments: str) -> None:
        """Start a program whose answer will be needed, so that it runs meanwhile."""
        if (program, arguments) not in self._answers:
            self._begun[program, arguments] = self._child(program, arguments)

    def _child(self, program: str, arguments: Tuple[str, ...]) -> children.Child:
        return self._begun.pop((program, arguments), None) or children.started(program, arguments, self.environ)

    def end(self) -> None:
        """End what was started and whose answer was not needed."""
        while self._begun:
            self._begun.popitem()[1].end()

    def ask_together(
        self, key: str, programs: Sequence["tuple[str, Sequence[str], Mapping[str, str]]"], *, after_failure: Optional[float] = None
    ) -> List[ChildAnswer]:
        """Return what programs say that run side by side."""
        return self.once(("together", key), lambda: children.together(programs, self.request.seconds, after_failure=after_failure))

    def read(self, *path: str) -> str:
        """Return the text of a small file, such as one of /proc; empty if it cannot be read."""
        try:
            with open_text(os.path.join(*path), "replace") as file:
                return file.read(1 << 20)
        except OSError:
            return ""


# The packages that a job of this host would import, as a child says that starts as the job does.

KNOWN_PACKAGES = PACKAGES
"""The packages of interest, by import name."""


class Packages(NamedTuple):
    """The child's answer."""

    origins: Dict[str, str]
    installed: Dict[str, List[List[str]]]

    def origin(self, module: str) -> str:
        """Return the file that `import` would take; empty if there is none."""
        return self.origins.get(module, "")

    def places(self, distribution: str) -> List[Tuple[str, str]]:
        """Return version and folder of each installed copy, the effective one first."""
        return [(version, folder) for version, folder in self.installed.get(distribution, [])]

    def version(self, distribution: str) -> str:
        """Return the installed version; empty if it is not installed."""
        return next((version for version, _ in self.places(distribution)), "")


def packages_of(host: Host) -> Packages:
    """Ask a child, because the modules and the path of this command are not those of the job."""
    last = host.ask("packages").last
    return Packages(last.get("origins", {}), last.get("installed", {}))
