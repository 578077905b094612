"""The launches that the tests of the remedies compare: which program, over how many ranks, with which remedies."""

import ast
from pathlib import Path
from typing import Any, Dict, List, NamedTuple

HERE = Path(__file__).resolve().parent
JOBS = HERE.parent / "jobs"
PROGRAMS = HERE / "programs"
SEEDED = PROGRAMS / "seeded.py"


class Run(NamedTuple):
    """One launch."""

    program: str  # Of the job collection, or of this folder's programs.
    ranks: int  # 0: plain python.
    fix: str = ""  # DDP_PROBE_FIX
    cards: bool = False


class Ended(NamedTuple):
    """How a launch ended."""

    status: int
    output: str
    folder: Path
    ranks: List[Dict[str, Any]]
    events: List[Dict[str, Any]]

    def of(self, event: str, rank: int) -> List[Dict[str, Any]]:
        """Return the events of one kind by one rank."""
        return [found for found in self.events if found["event"] == event and found.get("rank") == rank]

    def applied(self, rank: int) -> List[str]:
        """Return the remedies that were applied on one rank, each once, in the order of their first time."""
        return list(dict.fromkeys(found["remedy"] for found in self.of("remedy.applied", rank)))


def source(program: str) -> Path:
    """Return where a program lies."""
    found = JOBS / (program + ".py")
    return found if found.exists() else PROGRAMS / (program + ".py")


def checks(program: str) -> List[str]:
    """Return the names of a program's checks; each of them has a docstring that states what it shows."""
    body = ast.parse((PROGRAMS / (program + ".py")).read_text(encoding="utf-8")).body
    found = [node for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("check_")]
    assert found
    assert all(ast.get_docstring(node) for node in found)
    return [node.name for node in found]
