"""Prints docs/contributing/rooms.md: the rooms of the package and who imports whom, from the import graph."""

import ast
import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, Set

from docs_parts.markdown import NOTE, prose

_REPO = Path(__file__).resolve().parent.parent.parent


def rooms_page() -> str:
    """Return docs/contributing/rooms.md."""
    graph = _import_graph().Graph(_REPO)
    rooms = {name: set(imported) for name, imported in graph.between().items() if name in graph.packages and "." in name}
    rooms = {name: {other for other in imported if other in rooms} for name, imported in rooms.items()}
    return "\n".join([NOTE % "the imports and the docstrings of ddp_probe", *_lines(rooms, graph.files)]) + "\n"


def _import_graph() -> Any:
    """Return scripts/import_graph, a program without .py in its name."""
    loader = importlib.machinery.SourceFileLoader("import_graph", str(_REPO / "scripts" / "import_graph"))
    spec = importlib.util.spec_from_loader("import_graph", loader)
    assert spec is not None
    module = sys.modules["import_graph"] = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _lines(rooms: Dict[str, Set[str]], files: Dict[str, Path]) -> Iterator[str]:
    yield "# The rooms of the package"
    yield ""
    yield "Each arrow is an import; one that other arrows imply is left out. `traced` and `reading` never meet: a run's files lie between them."
    yield "[How it works](how-it-works.md) follows one event through these rooms."
    yield ""
    yield "```mermaid"
    yield "flowchart TD"
    for name in sorted(rooms):
        yield from ("    %s --> %s" % (_short(name), _short(other)) for other in sorted(_direct(rooms, name)))
    yield "```"
    yield ""
    yield "| room | what it is |"
    yield "|---|---|"
    for name in sorted(rooms, key=lambda one: (-len(_below(rooms, one)), one)):
        doc = ast.get_docstring(ast.parse(files[name].read_text(encoding="utf-8"))) or ""
        yield "| `%s/` | %s |" % (_short(name), prose(" ".join(doc.partition("\n\n")[0].split())))


def _direct(rooms: Dict[str, Set[str]], name: str) -> Set[str]:
    """Return what a room imports and none of its other rooms leads to."""
    return {other for other in rooms[name] if not any(other in _below(rooms, between) for between in rooms[name])}


def _below(rooms: Dict[str, Set[str]], name: str) -> Set[str]:
    return rooms[name].union(*(_below(rooms, other) for other in rooms[name]))


def _short(name: str) -> str:
    return name.partition(".")[2]
