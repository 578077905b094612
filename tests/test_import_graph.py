"""The import graph of the package holds no circle, and what says so finds each kind of circle."""

import configparser
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict

import pytest

_CONTRACT = "importlinter:contract:no-circles"
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


def test_the_package_is_in_order(repo: Path, run_python: Callable[..., Any]) -> None:
    """No module imports a private module of another package, or its own package if that imports it."""
    done = run_python([repo / "scripts" / "import_graph"], python=sys.executable)
    assert done.returncode == 0, done.stdout


def test_a_package_without_a_circle_passes(graph: Callable[..., Any]) -> None:
    """A package whose __init__ imports its modules, and modules that import each other one way, are no circle."""
    done = graph()
    assert (done.returncode, done.stdout) == (0, "5 modules, 4 imports of each other, 0 complaints.\n")


def test_a_module_that_imports_its_own_package_is_a_circle(graph: Callable[..., Any]) -> None:
    """A module that takes a name from the __init__ that imports it is in a circle with it."""
    done = graph(tools__in__hammer="def late():\n    from ddp_probe.tools import NAME\n")
    assert done.returncode == 1
    line = "  ddp_probe/tools/hammer.py:2: ddp_probe.tools.hammer imports ddp_probe.tools\n"
    assert done.stdout.startswith("A package that imports this module:\n" + line)


_CIRCLES = {
    "two modules": {"tools/hammer": "from .. import shop\n"},
    "in a function": {"tools/hammer": "def late():\n    import ddp_probe.shop\n"},
    "for types": {"tools/hammer": "TYPE_CHECKING = False\nif TYPE_CHECKING:\n    from ..shop import anything\n"},
    "two packages": {
        "ends/__init__": "",
        "ends/left": "import ddp_probe.tools.hammer\n",
        "ends/right": "",
        "tools/other": "from ddp_probe.ends import right\n",
    },
    "deep below": {
        "tools/saw/__init__": "",
        "tools/saw/blade": "import ddp_probe.tools.hammer\n",
        "tools/hammer": "import ddp_probe.tools.saw\n",
    },
}


@pytest.mark.parametrize("changed", [{}, *_CIRCLES.values()], ids=["none", *_CIRCLES])
def test_the_contract_finds_each_circle(repo: Path, tmp_path: Path, changed: Dict[str, str]) -> None:
    """The contract of setup.cfg is broken by a circle of modules or of packages, at any depth, and by nothing else."""
    pytest.importorskip("importlinter", reason="The linters need Python 3.10.")
    _write(tmp_path, {**_FINE, **changed})
    config = configparser.ConfigParser()
    config.read(str(repo / "setup.cfg"))
    contracts = {"importlinter": {"root_package": "ddp_probe"}, _CONTRACT: config[_CONTRACT]}
    config = configparser.ConfigParser()
    config.read_dict(contracts)
    with (tmp_path / "contract.cfg").open("w") as file:
        config.write(file)
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as main; main()"]
    options = ["--config", "contract.cfg", "--no-cache"]
    done = subprocess.run([*command, *options], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "0 broken" in done.stdout) == (int(bool(changed)), not changed), done.stdout + done.stderr


def test_a_private_module_of_another_package_is_found(graph: Callable[..., Any]) -> None:
    """A module, or a package, whose name begins with an underscore is imported only from the package that it lies in."""
    done = graph(shop="from ddp_probe.tools import _handle\n")
    assert done.returncode == 1
    assert "A private module of another package:\n  ddp_probe/shop.py:1: ddp_probe.shop imports ddp_probe.tools._handle\n" in done.stdout
