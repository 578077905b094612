"""Promise 1, the places at which Python prints an exception and goes on: docs/contributing/interruptions.md lists each of ours."""

import ast
import re
from pathlib import Path
from typing import Dict, Iterator, List, Set, Tuple

import pytest

import ddp_probe

_PACKAGE = Path(ddp_probe.__file__).parent
_NONE = "tracing, profiling, `gc.callbacks`, `sys.unraisablehook`, audit hooks, `faulthandler`"
_NAMES: Dict[str, str] = {
    "weakref.ref": "callback of a weak reference",
    "weakref.WeakValueDictionary": "callback of a weak reference",
    "weakref.WeakKeyDictionary": "callback of a weak reference",
    "weakref.WeakSet": "callback of a weak reference",
    "weakref.finalize": "callback of a weak reference",
    "weakref.proxy": "callback of a weak reference",
    "def __del__": "`__del__`",
    "sys.excepthook =": "`sys.excepthook`",
    "threading.excepthook =": "`threading.excepthook`",
    "atexit.register": "`atexit`",
    "util.Finalize": "`multiprocessing.util.Finalize`",
    "os.register_at_fork": "`os.register_at_fork`, in the child",
    "threads.start_new_thread": "a thread",
    "_thread.start_new_thread": "a thread",
    "threading.Thread": "a thread",
    "threading.Timer": "a thread",
    "sys._current_frames": "a look at the frames of another thread",
    "signal.signal": "a handler of ours",
    "signal.set_wakeup_fd": "a handler of ours",
    "sys.settrace": _NONE,
    "sys.setprofile": _NONE,
    "threading.settrace": _NONE,
    "threading.setprofile": _NONE,
    "gc.callbacks": _NONE,
    "sys.unraisablehook =": _NONE,
    "sys.addaudithook": _NONE,
    "faulthandler.dump_traceback_later": _NONE,
    "faulthandler.dump_traceback": _NONE,
    "faulthandler.register": _NONE,
    "faulthandler.enable": _NONE,
}
"""What makes such a place, with ` =` if it is assigned, by the kind that the page gives it."""
_ELSEWHERE = {"shared/door.py"}
"""Threads of `gather`, which runs in a launcher's command and in no traced process."""

_WEAKREF = ast.dump(ast.parse("weakref", mode="eval").body)
_PLAIN = ast.dump(ast.parse("weakref.ref", mode="eval").body)


def _made(tree: ast.Module) -> Iterator[str]:
    """Yield what a file has of the names above."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield "def " + node.name
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield "%s.%s%s" % (node.value.id, node.attr, " =" if isinstance(node.ctx, ast.Store) else "")


def _in_code() -> Set[Tuple[str, str]]:
    found = set()
    for folder in ("traced", "activation", "shared"):
        for path in sorted((_PACKAGE / folder).rglob("*.py")):
            name = path.relative_to(_PACKAGE).as_posix()
            kinds = {_NAMES[made] for made in _made(ast.parse(path.read_text(encoding="utf-8"))) if made in _NAMES}
            found |= {(kind, name) for kind in kinds if name not in _ELSEWHERE}
    return found


def _page(repo: Path) -> str:
    return (repo / "docs" / "contributing" / "interruptions.md").read_text(encoding="utf-8")


def _on_page(repo: Path) -> List[Tuple[str, str]]:
    """Return each kind of the second table, with each file that its row names."""
    rows = _page(repo).partition("\n## Where Python prints")[2].partition("\n## ")[0].split("\n")
    cells = [[cell.strip() for cell in row.split("|")[1:3]] for row in rows if row.startswith("| ")]
    return [(kind, file) for kind, place in cells for file in re.findall(r"`([a-z_/]+\.py)`", place)]


def test_each_place_is_on_the_page(repo: Path) -> None:
    """Each place in the code at which Python would print what a handler raises has its row on the page, and no row names a file without one."""
    in_code = {(kind, file.partition("traced/")[2] or file) for kind, file in _in_code()}
    assert in_code == {(kind, file.partition("traced/")[2] or file) for kind, file in _on_page(repo)}
    assert len(in_code) > 8


def _callbacks(tree: ast.Module) -> List[str]:
    """Return each use of the module weakref that makes more than a reference without a callback."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    plain = [call.func for call in calls if len(call.args) == 1 and not call.keywords and ast.dump(call.func) == _PLAIN]
    uses = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and ast.dump(node.value) == _WEAKREF]
    return ["line %d: weakref.%s" % (node.lineno, node.attr) for node in uses if node not in plain]


def test_references_to_groups_have_no_callback() -> None:
    """Where a process group goes, no code of ours runs: the ledger holds it by a plain reference."""
    text = (_PACKAGE / "traced" / "ledger" / "groups.py").read_text(encoding="utf-8")
    assert "weakref.ref(" in text
    assert _callbacks(ast.parse(text)) == []


@pytest.mark.parametrize("text", ["weakref.ref(group, print)", "weakref.ref(group, callback=print)", "weakref.WeakValueDictionary()"])
def test_a_reference_with_a_callback_is_found(text: str) -> None:
    """A callback is seen, however it is given, and so is a dictionary that has its own."""
    assert len(_callbacks(ast.parse(text))) == 1


@pytest.mark.parametrize(
    "line", ["weakref.finalize(work, print)", "gc.callbacks.append(print)", "sys.excepthook = print", "faulthandler.dump_traceback_later(1)"]
)
def test_a_place_that_is_new_is_found(line: str) -> None:
    """A line that makes such a place is seen, whether it calls or assigns."""
    assert set(_made(ast.parse(line))) & set(_NAMES)


def test_the_tests_that_the_page_names_are_there(repo: Path) -> None:
    """Each file of tests that the page names exists."""
    named = set(re.findall(r"`(tests/[a-z0-9_/]+\.py)`", _page(repo)))
    assert len(named) > 8
    assert [name for name in sorted(named) if not (repo / name).is_file()] == []
