"""The import graph of the package holds no circle, and the script that says so finds each kind of circle."""

import sys
from pathlib import Path
from typing import Any, Callable, Dict

import pytest

_FINE = {
    "__init__": "VERSION = 1\n",
    "tools/__init__": "from ddp_probe.tools import hammer\n",
    "tools/hammer": "from ddp_probe import VERSION\nfrom ddp_probe.tools import _handle\n",
    "tools/_handle": "import os\n",
    "shop": "import ddp_probe.tools.hammer\n",
}


def _write(folder: Path, files: Dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / "ddp_probe" / (name + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def graph(repo: Path, tmp_path: Path, run_python: Callable[..., Any]) -> Callable[..., Any]:
    """Write a small package with some files changed, and judge it."""

    def judge(**changed: str) -> Any:
        _write(tmp_path, {**_FINE, **{name.replace("__in__", "/"): text for name, text in changed.items()}})
        return run_python([repo / "scripts" / "import_graph", tmp_path])

    return judge


def test_the_package_has_no_circle(repo: Path, run_python: Callable[..., Any]) -> None:
    """The package has no circle and no import of another package's private module but those that scripts/import_graph lists."""
    done = run_python([repo / "scripts" / "import_graph"], python=sys.executable)
    assert done.returncode == 0, done.stdout


def test_a_package_without_a_circle_passes(graph: Callable[..., Any]) -> None:
    """A package whose __init__ imports its modules, and modules that import each other one way, are no circle."""
    done = graph()
    assert (done.returncode, done.stdout) == (0, "5 modules, 4 imports of each other, 0 complaints.\n")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("import ddp_probe.shop\n", 1),
        ("from ddp_probe import shop\n", 1),
        ("from .. import shop\n", 1),
        ("from ..shop import anything\n", 1),
        ("TYPE_CHECKING = False\nif TYPE_CHECKING:\n    from ddp_probe import shop\n", 3),
        ("def late():\n    import ddp_probe.shop\n", 2),
    ],
)
def test_a_circle_is_told_with_its_lines(graph: Callable[..., Any], text: str, line: int) -> None:
    """An import at the top, in a function or below TYPE_CHECKING closes a circle, which is told with a line for each import of it."""
    done = graph(tools__in__hammer=text)
    assert done.returncode == 1
    assert "\n  ddp_probe/tools/hammer.py:%d: ddp_probe.tools.hammer imports ddp_probe.shop\n" % line in "\n" + done.stdout
    assert "\n  ddp_probe/shop.py:1: ddp_probe.shop imports ddp_probe.tools" in done.stdout


def test_a_module_that_imports_its_own_package_is_a_circle(graph: Callable[..., Any]) -> None:
    """A module that takes a name from the __init__ that imports it is in a circle of two."""
    done = graph(tools__in__hammer="from ddp_probe.tools import NAME\n")
    assert done.returncode == 1
    assert "A circle of 2 imports:\n  ddp_probe/tools/__init__.py:1: ddp_probe.tools imports ddp_probe.tools.hammer\n" in done.stdout


def test_packages_in_a_circle_are_found(graph: Callable[..., Any]) -> None:
    """Two packages that import each other are a circle even if no module of them is in one."""
    ends = {"ends__in____init__": "", "ends__in__left": "import ddp_probe.tools.hammer\n", "ends__in__right": ""}
    assert graph(**ends).returncode == 0
    done = graph(**ends, tools__in__other="from ddp_probe.ends import right\n")
    assert done.returncode == 1
    assert done.stdout.startswith("A circle of 2 packages:\n  ddp_probe/ends/left.py:1: ddp_probe.ends.left imports ddp_probe.tools")
    assert "\n  ddp_probe/tools/other.py:1: ddp_probe.tools.other imports ddp_probe.ends" in done.stdout


def test_a_private_module_of_another_package_is_found(graph: Callable[..., Any]) -> None:
    """A module, or a package, whose name begins with an underscore is imported only from the package that it lies in."""
    done = graph(shop="from ddp_probe.tools import _handle\n")
    assert done.returncode == 1
    assert "A private module of another package:\n  ddp_probe/shop.py:1: ddp_probe.shop imports ddp_probe.tools._handle\n" in done.stdout
