"""The places at which text enters a file: each is listed with what makes it safe, so that a new one is thought about."""

import ast
from pathlib import Path
from typing import Dict, Iterator, Tuple

import ddp_probe

PACKAGE = Path(ddp_probe.__file__).resolve().parent
_PRINTED = "what a program printed: masked line by line"
_OURS = "text of ours, or of this installation"
_COPY = "a copy of what is masked already, byte for byte"
_PAGE = "a page or a form of a report: each field has passed the masks"
_CALLERS = "what others write through it: each of them is listed"
_LOG = "an event or a stack: rendered through the masks"
DOORS: Dict[str, str] = {
    "showing/printed_file.py": _PRINTED,
    "pytest_plugin.py": _OURS,
    "activation/installer/activator_files.py": _OURS,
    "cli/_launched.py": _OURS,
    "cli/fold.py": _COPY,
    "moving/bundle/make.py": _COPY,
    "moving/bundle/stage.py": _COPY,
    "moving/gather/keep.py": _COPY,
    "moving/gather/sender.py": _COPY,
    "reading/bundled.py": _COPY,
    "reading/fold_file.py": _COPY,
    "cli/runs.py": _PAGE,
    "cli/stacks.py": _PAGE,
    "showing/forms.py": _PAGE,
    "shared/whole_file.py": _CALLERS,
    "showing/github_summary.py": _PAGE,
    "showing/watch_metrics.py": _PAGE,
}


def _openings(path: Path) -> Iterator[ast.Call]:
    """Yield the calls that open a file for writing, by open, os.fdopen, whole_file or a method of a path."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and _writes(*_called(node)):
            yield node


def _called(node: ast.Call) -> Tuple[str, str]:
    """Return the name of a call and its mode."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    given = [*node.args[1:2], *(each.value for each in node.keywords if each.arg == "mode")]
    modes = [value.value for value in given if isinstance(value, ast.Constant)]
    return name, str(modes[0]) if modes else ""


def _writes(name: str, mode: str) -> bool:
    return name in ("write_text", "write_bytes", "whole_file") or (name in ("open", "fdopen") and mode.strip("bt+") in ("w", "a", "x"))


def test_each_place_where_text_enters_a_file_is_listed() -> None:
    """No module outside a traced process opens a file for writing unless the table says what makes its text safe; a rank has one writer."""
    places = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if any(_openings(path))}
    places = {place for place in places if not place.startswith("traced/")}
    assert places == set(DOORS)


def test_what_is_printed_enters_by_one_door() -> None:
    """Text that a program printed is written by one module."""
    assert [place for place, why in DOORS.items() if why == _PRINTED] == ["showing/printed_file.py"]
