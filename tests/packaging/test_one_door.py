"""Whatever reads opens regular files alone, through one module: no open() of the package goes around it."""

import ast
from pathlib import Path
from typing import Iterator, List, Tuple

import pytest

import ddp_probe

_PACKAGE = Path(ddp_probe.__file__).resolve().parent
_READ = (
    "reading",
    "checkpoints",
    "standing",
    "judging",
    "doctor",
    "showing",
    "moving",
    "attaching",
    "cli",
    "api.py",
    "pytest_plugin.py",
)
_WRITE_MODES = set("wxa")
_WRITE_FLAGS = {"O_WRONLY", "O_RDWR", "O_CREAT", "O_DIRECTORY"}
# What opens a descriptor with flags that its caller gives, or that a name holds: each of them writes.
_BY_NAME = {
    "moving/bundle/stage.py": "_WRITE",
    "moving/gather/keep.py": "_OPEN",
    "showing/printed_file.py": "_FLAGS",
}
_OPENERS = {("reading/bundled.py", "_private")}


def _calls(node: ast.AST, function: str = "") -> Iterator[Tuple[ast.Call, str]]:
    """Yield each call that opens a file, with the function that it is in."""
    if isinstance(node, ast.Call) and _name(node):
        yield node, function
    function = node.name if isinstance(node, ast.FunctionDef) else function
    for child in ast.iter_child_nodes(node):
        yield from _calls(child, function)


def _name(node: ast.Call) -> str:
    called = node.func
    if isinstance(called, ast.Name):
        return called.id if called.id == "open" else ""
    if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
        full = "%s.%s" % (called.value.id, called.attr)
        return full if full in ("os.open", "io.open", "io.FileIO", "gzip.open", "codecs.open", "tokenize.open", "linecache.getlines") else ""
    if isinstance(called, ast.Attribute) and called.attr in ("read_text", "read_bytes"):
        return called.attr
    return ""


def _writes(node: ast.Call, name: str, place: str, function: str) -> bool:
    if name == "open":
        mode = node.args[1] if len(node.args) > 1 else None
        return isinstance(mode, ast.Constant) and bool(_WRITE_MODES & set(str(mode.value)))
    if name == "os.open":
        flags = {each.attr for argument in node.args[1:] for each in ast.walk(argument) if isinstance(each, ast.Attribute)}
        names = {each.id for argument in node.args[1:] for each in ast.walk(argument) if isinstance(each, ast.Name)}
        return bool(flags & _WRITE_FLAGS) or _BY_NAME.get(place) in names or (place, function) in _OPENERS
    return False


def _around(source: str, place: str) -> List[str]:
    found = {node.lineno for node, function in _calls(ast.parse(source)) if not _writes(node, _name(node), place, function)}
    return ["%s:%d" % (place, line) for line in sorted(found)]


def test_no_open_goes_around_the_door() -> None:
    """In all rooms that read, what opens a file to read it is shared/regular_files.py."""
    files = [file for room in _READ for file in ([_PACKAGE / room] if room.endswith(".py") else sorted((_PACKAGE / room).rglob("*.py")))]
    assert len(files) > 200
    assert [line for file in files for line in _around(file.read_text(encoding="utf-8"), str(file.relative_to(_PACKAGE)))] == []


@pytest.mark.parametrize(
    "code",
    [
        "open(path)",
        "open(path, 'rb', buffering=0)",
        "open(path, mode)",
        "os.open(path, os.O_RDONLY | os.O_NONBLOCK)",
        "os.open(path, _FLAGS)",
        "io.open(path)",
        "gzip.open(path, 'rb')",
        "Path(path).read_text()",
        "def f():\n    return [line for line in open(path)]",
    ],
)
def test_an_open_that_reads_is_found(code: str) -> None:
    """Each way to open a file for reading is one that this test finds."""
    assert len(_around(code, "reading/new.py")) == 1


@pytest.mark.parametrize("code", ["open(path, 'w')", "open(path, 'xb', opener=_private)", "os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)"])
def test_an_open_that_writes_is_none(code: str) -> None:
    """What writes is not for the door."""
    assert _around(code, "reading/new.py") == []
