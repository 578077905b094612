"""One name for one thing: a public class of the package is the only one with its name."""

import ast
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Tuple

import pytest

PROBES = "ddp_probe/traced/probes/"
EVENTS = "ddp_probe/shared/schema.py"


class Defined(NamedTuple):
    """A class and where it is defined."""

    file: str
    node: ast.ClassDef

    def is_probe_of_event(self) -> bool:
        """Tell whether this is a probe that writes the event with its own name."""
        written = [node for statement in self.node.body if _assigns(statement, "events") for node in ast.walk(statement)]
        return self.file.startswith(PROBES) and any(isinstance(node, ast.Attribute) and node.attr == self.node.name for node in written)

    def extends_its_namesake(self) -> bool:
        """Tell whether this is the class of the same name with more to it, as what is public of a class is."""
        return any(isinstance(base, ast.Attribute) and base.attr == self.node.name for base in self.node.bases)


def _assigns(statement: ast.stmt, name: str) -> bool:
    return isinstance(statement, ast.Assign) and any(isinstance(target, ast.Name) and target.id == name for target in statement.targets)


def _classes(root: Path) -> Iterator[Tuple[str, Defined]]:
    for path in sorted((root / "ddp_probe").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield node.name, Defined(path.relative_to(root).as_posix(), node)


def _shared(root: Path) -> Dict[str, List[str]]:
    """Return each name that several classes have, with their files; a probe is named after its event, as the two are one thing."""
    found: Dict[str, List[Defined]] = {}
    for name, defined in _classes(root):
        found.setdefault(name, []).append(defined)
    counted = {
        name: [
            each.file
            for each in classes
            if not (each.is_probe_of_event() and any(other.file == EVENTS for other in classes)) and not each.extends_its_namesake()
        ]
        for name, classes in found.items()
    }
    return {name: files for name, files in counted.items() if len(files) > 1}


def test_no_class_name_is_shared(repo: Path) -> None:
    """No public class name is defined twice in the package, but for a probe and the event that it writes, and a class that extends the other."""
    assert _shared(repo) == {}, "Two classes have one name. Rename one of them, to the word that an engineer would use for it."


@pytest.mark.parametrize(
    ("files", "shared"),
    [
        pytest.param(
            {"reading/a.py": "class Row: ...", "showing/watch/b.py": "class Row: ..."},
            {"Row": ["ddp_probe/reading/a.py", "ddp_probe/showing/watch/b.py"]},
            id="two",
        ),
        pytest.param(
            {"shared/schema.py": "class Save: ...", "traced/probes/save.py": "class Save:\n    events = (schema.Save,)"}, {}, id="probe-and-its-event"
        ),
        pytest.param(
            {"shared/schema.py": "class Save: ...", "traced/probes/save.py": "class Save:\n    events = (schema.Load,)"},
            {"Save": ["ddp_probe/shared/schema.py", "ddp_probe/traced/probes/save.py"]},
            id="probe-of-another-event",
        ),
        pytest.param({"reading/a.py": "class Row: ...", "api.py": "from ddp_probe.reading import a\nclass Row(a.Row): ..."}, {}, id="extends"),
        pytest.param({"reading/a.py": "class _Row: ...", "showing/watch/b.py": "class _Row: ..."}, {}, id="private"),
    ],
)
def test_shared_names_are_seen(tmp_path: Path, files: Dict[str, str], shared: Dict[str, List[str]]) -> None:
    """Two public classes of one name are seen, a probe that is named after its event and private classes are left alone."""
    for name, text in files.items():
        path = tmp_path / "ddp_probe" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert _shared(tmp_path) == shared
