"""scripts/code_style finds what makes code hard to read, and its table says how much of that is left."""

from pathlib import Path
from typing import Any, Callable

import pytest

_FINE = """'''A module.'''

import os

# What the names are for.
NAMES = ("a", "b")


def first(values):
    '''Return the first long one.'''
    # A comment inside a function is no seam.
    longer = [value for value in values if value > 1]
    return longer[0] if longer else None
"""
_OFFENCES = {
    "wide lines": "x = %r\n" % ("w" * 110),
    "nested conditionals": "def f(a, b): return 1 if a else (2 if b else 3)\n",
    "double for": "x = [b for a in [[1], [2]] for b in a]\n",
    "double if": "x = {a: 1 for a in range(9) if a if a > 2}\n",
    "one-item for": "x = any(b > 1 for b in [len('text')])\n",
    "seams": "x = 1\n\n\n# Another subject.\n\ny = 2\n",
    "vague names": "def f(each): return each\n",
}


@pytest.fixture
def style(repo: Path, tmp_path: Path, run_python: Callable[..., Any]) -> Callable[..., Any]:
    """Write a package of one room and a table, and count."""
    table = tmp_path / "table.txt"

    def count(module: str, allowed: str = "", *arguments: str) -> Any:
        room = tmp_path / "ddp_probe" / "room"
        room.mkdir(parents=True, exist_ok=True)
        (room / "module.py").write_text(module)
        table.write_text(allowed)
        return run_python([repo / "scripts" / "code_style", "--root", tmp_path, "--table", table, *arguments])

    return count


def test_the_table_is_true(repo: Path, run_python: Callable[..., Any]) -> None:
    """No room has more that is hard to read than scripts/code_style.txt allows, and the table allows no more than there is."""
    done = run_python([repo / "scripts" / "code_style"])
    assert done.returncode == 0, done.stdout


def test_code_that_reads_aloud_passes(style: Callable[..., Any]) -> None:
    """One `for` and one `if`, one conditional and a comment above its line are nothing to find."""
    done = style(_FINE)
    assert done.returncode == 0, done.stdout


def test_tokens_are_counted_for_a_line_of_code(style: Callable[..., Any]) -> None:
    """A comment is no token and an empty line no line of code; a statement counts for each line that it takes."""
    done = style("# Why.\nx = 1\n\ny = (x +\n     2)\n")
    assert [line.split() for line in done.stdout.splitlines() if line.startswith("ddp_probe/room")] == [["ddp_probe/room", "10", "3", "3.33"]]


@pytest.mark.parametrize("offence", sorted(_OFFENCES))
def test_an_offence_is_found_where_it_is(style: Callable[..., Any], offence: str) -> None:
    """Each offence fails the check, once, and --where names its line."""
    done = style(_FINE + "\n" + _OFFENCES[offence])
    assert done.returncode == 1
    assert "ddp_probe/room: %s: 1, and 0 are allowed." % offence in done.stdout
    assert done.stdout.count("are allowed") == 1
    line = (_FINE + "\n").count("\n") + _OFFENCES[offence].count("\n\n\n") * 3 + 1
    places = style(_FINE + "\n" + _OFFENCES[offence], "", "--where", "ddp_probe").stdout
    assert places == "ddp_probe/room/module.py:%d: %s\n" % (line, offence)


def test_what_has_fallen_leaves_the_table(style: Callable[..., Any], tmp_path: Path) -> None:
    """A number that is too high fails the check, and --lower writes the lower one but never a higher one."""
    allowed = "ddp_probe/room: wide lines 3, double for 1\nddp_probe/gone: seams 2\n"
    module = _OFFENCES["double for"] + _OFFENCES["seams"]
    done = style(module, allowed)
    assert done.returncode == 1
    assert "ddp_probe/room: wide lines: 0, and 3 are allowed. Run scripts/code_style --lower" in done.stdout
    assert "ddp_probe/gone: seams: 0, and 2 are allowed." in done.stdout
    assert style(module, allowed, "--lower").returncode == 1
    assert (tmp_path / "table.txt").read_text().splitlines()[1:] == ["ddp_probe/room: double for 1"]
