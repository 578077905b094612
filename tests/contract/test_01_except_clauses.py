"""Promise 1, in the code: what a signal handler of the job's raises while our code runs passes through each `except` of ours."""

import ast
from pathlib import Path
from typing import Dict, Iterator, Optional

import pytest

import ddp_probe

_PACKAGE = Path(ddp_probe.__file__).parent
# These read what a run has left, or install, in processes of their own; no job runs there.
_ELSEWHERE = (
    "api.py",
    "attaching",
    "checkpoints",
    "cli",
    "doctor",
    "judging",
    "moving",
    "reading",
    "shared/door",
    "shared/meeting",
    "showing",
    "standing",
    "activation/installer",
    "__main__.py",
)
_FULL = "The stack may have no room left to ask whose it is; it is asked as far as there is."
_REASONS = {
    "shared/ours.py": {
        "ValueError": "It is what tells the two kinds apart, while one of the job's is in flight already.",
        "RecursionError": _FULL,
    },
    "shared/overflow.py": {
        "RecursionError": "The first call has made the interpreter note the overflow, and has room then.",
        "ValueError": "sys._getframe says so of a stack that calls through C have filled.",
    },
    "traced/leaving.py": {"RecursionError": _FULL},
    "traced/ledger/barriers.py": {"RecursionError": _FULL},
    "traced/ledger/calls.py": {"RecursionError": _FULL},
    "traced/ledger/optimizers.py": {"RecursionError": _FULL},
    "traced/ledger/phases.py": {"RecursionError": _FULL},
    "traced/ledger/works.py": {"RecursionError": _FULL},
    "traced/patching/code_swap.py": {"RecursionError": _FULL},
    "traced/patching/guard.py": {"RecursionError": _FULL},
    "pytest_plugin.py": {
        "OSError": "pytest ends, and no test runs any more.",
        "several": "A test has ended and its report is made: no code of the test runs.",
    },
    "traced/ending.py": {"BaseException": "The program ends by another exception: this one is reported as ignored, as Python does at exit."},
    "traced/patching/_importlib_bootstrap_frame.py": {"RecursionError": _FULL},
}


def _traced() -> Iterator[str]:
    for path in sorted(_PACKAGE.rglob("*.py")):
        name = path.relative_to(_PACKAGE).as_posix()
        if not name.startswith(_ELSEWHERE):
            yield name


def _plain(source: str) -> Dict[str, int]:
    """Return what is caught, and where, by clauses that neither ask `ours` nor end by raising again what they have caught."""
    found = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ExceptHandler) and not _asks(node.type) and not _raises_again(node.body[-1]):
            found[node.type.id if isinstance(node.type, ast.Name) else "several"] = node.lineno
    return found


def _asks(caught: Optional[ast.expr]) -> bool:
    return isinstance(caught, ast.Call) and isinstance(caught.func, ast.Name) and caught.func.id == "ours"


def _raises_again(last: ast.stmt) -> bool:
    return isinstance(last, ast.Raise) and last.exc is None


@pytest.mark.parametrize("name", list(_traced()))
def test_each_except_asks_whose_exception_it_is(name: str) -> None:
    """In the traced process an except clause is `except ours(...)`, or ends by raising what it caught, or has its reason above."""
    found = _plain((_PACKAGE / name).read_text(encoding="utf-8"))
    assert set(found) == set(_REASONS.get(name, {})), found
