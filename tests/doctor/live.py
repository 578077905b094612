"""What tests of the live checks share: the checks by slug, a clock that waits for a cause, and what is left running."""

import os
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

from ddp_probe.doctor import children
from ddp_probe.doctor.check import Result
from ddp_probe.doctor.checks import modules
from ddp_probe.doctor.examine import examine
from ddp_probe.doctor.host import Host

FAULTY = Path(__file__).resolve().parent / "programs" / "faulty"
PLUGIN = Path(__file__).resolve().parent.parent / "accelerator" / "plugin"
LIVE = [module for module in modules() if module.CHECK.id.startswith("DOC6")]
SECONDS = 280.0
"""The time limit of a child in tests: nothing but a fault may ever reach it."""


def on_cards(gcu_env: Dict[str, str], clean_env: Callable[..., Dict[str, str]], **variables: str) -> Dict[str, str]:
    """Return the environment of a job on simulated cards with faults."""
    return clean_env(**{**gcu_env, "PYTHONPATH": "%s%s%s" % (FAULTY, os.pathsep, gcu_env["PYTHONPATH"]), **variables})


def run(host: Host) -> Dict[str, Result]:
    """Return the answers of all live checks by slug."""
    return {result.check.slug: result for result in examine(host, LIVE)}


def statuses(results: Dict[str, Result]) -> Dict[str, str]:
    """Return the status of each check."""
    return {slug: result.answer.status for slug, result in results.items()}


def left_running(doctor: int = 0) -> List[str]:
    """Return the programs that a process, this one without an argument, has started for its checks and that still run."""
    mark = "%s=%d" % (children.PARENT, doctor or os.getpid())
    return [command for command, environ in _programs() if mark in environ]


def _programs() -> Iterator[Tuple[str, List[str]]]:
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command, environ = ((entry / name).read_bytes().decode(errors="replace").split("\0") for name in ("cmdline", "environ"))
        except OSError:
            continue
        yield " ".join(command), environ


class Clock:
    """The time limit comes when a cause is there, and not before: a busy machine may take as long as it needs for the rest."""

    def __init__(self, monkeypatch: Any, cause: Callable[[List[children.Child]], bool]) -> None:
        self.started: List[children.Child] = []
        self._cause, self._over = cause, False
        original = children.Child.__init__

        def begin(child: children.Child, *args: Any) -> None:
            original(child, *args)
            self.started.append(child)

        monkeypatch.setattr(children.Child, "__init__", begin)
        monkeypatch.setattr(children, "_clock", self.now)

    def now(self) -> float:
        """Return the time."""
        self._over = self._over or (bool(self.started) and self._cause(self.started))
        return time.monotonic() + (SECONDS if self._over else 0)


def stage(child: children.Child) -> str:
    """Return the stage that a child has begun last."""
    return next((str(said["stage"]) for said in reversed(child.said()) if "stage" in said), "")
