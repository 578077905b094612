"""What an environment has after the package was installed into it from a wheel, from an sdist or as editable."""

import configparser
import json
from pathlib import Path
from typing import Any, Callable, Dict, NamedTuple

import pytest

_ASK = """
import json, os
from importlib.metadata import distribution
from importlib.util import find_spec
found = distribution("ddp-probe")
print(json.dumps({
    "package": list(find_spec("ddp_probe").submodule_search_locations)[0],
    "templates": list(find_spec("ddp_probe.sitecustomize_templates").submodule_search_locations)[0],
    "version": found.version,
    "entry_points": [[point.group, point.name, point.value] for point in found.entry_points],
    "requires": [line for line in found.requires if "extra ==" not in line],
    "needs": found.metadata["Requires-Python"],
}))
"""

_EXAMPLES = """
import json, runpy
from importlib.util import find_spec
package = list(find_spec("ddp_probe").submodule_search_locations)[0]
found = runpy.run_path(package + "/judging/examples.py")["of"]("submodule-left-behind")
print(json.dumps([example.name for example in found]))
"""


class Installed(NamedTuple):
    """One environment that holds the package."""

    way: str
    python: Path
    facts: Dict[str, Any]


@pytest.fixture(scope="module", params=["wheel", "sdist", "editable"])
def installed(
    request: Any, fresh_env: Callable[..., Path], install: Callable[..., None], sources: Path, run_python: Callable[..., Any], tmp_path_factory: Any
) -> Installed:
    """An environment that holds the package, and what its interpreter says about it."""
    python = fresh_env()
    what = ["--editable", str(sources)] if request.param == "editable" else [str(request.getfixturevalue(request.param))]
    install(python, *what)
    done = run_python(_ASK, python=str(python), cwd=tmp_path_factory.mktemp("elsewhere"))
    assert done.returncode == 0, done.stderr
    return Installed(request.param, python, json.loads(done.stdout))


def test_the_templates_are_found_by_path(installed: Installed, sources: Path) -> None:
    """The templates are files in a folder, in the repository itself where the install is editable, inside the package otherwise."""
    folder = Path(installed.facts["templates"])
    assert folder == (sources / "sitecustomize_templates" if installed.way == "editable" else Path(installed.facts["package"]) / folder.name)
    originals = {path.name: path.read_bytes() for path in (sources / "sitecustomize_templates").iterdir() if path.is_file()}
    assert "sitecustomize.py" in originals
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == originals


def test_the_examples_are_found(installed: Installed, sources: Path, run_python: Callable[..., Any], tmp_path: Path) -> None:
    """What reads the examples of a rule finds them all, wherever the package lies."""
    done = run_python(_EXAMPLES, python=str(installed.python), cwd=tmp_path)
    heads = [path.read_text(encoding="utf-8").splitlines()[0] for path in sorted((sources / "tests/rules/submodule-left-behind").iterdir())]
    assert len(heads) > 3
    assert ["name: " + name for name in json.loads(done.stdout)] == heads


def test_the_package_is_typed(installed: Installed) -> None:
    """A type checker finds py.typed beside the package."""
    assert Path(installed.facts["package"], "py.typed").is_file()


def test_the_command_is_there(installed: Installed) -> None:
    """The environment has a ddp-probe command that calls the same function as python -m ddp_probe."""
    assert ["console_scripts", "ddp-probe", "ddp_probe.cli:main"] in installed.facts["entry_points"]
    assert installed.python.with_name("ddp-probe").is_file()


def test_neither_torch_nor_mmengine_is_required(installed: Installed, setup_cfg: configparser.ConfigParser) -> None:
    """The installed package asks for its three libraries, one of them with a helper on 3.8, and never for a framework."""
    names = {line.split(";")[0].split(">")[0].strip(" (").lower().replace("_", "-") for line in installed.facts["requires"]}
    assert names == {"wrapt", "structlog", "msgspec", "typing-extensions"}
    assert installed.facts["needs"] == setup_cfg["options"]["python_requires"]


def test_version_matches(installed: Installed, run_python: Callable[..., Any], tmp_path: Path) -> None:
    """The version that pip knows is the one that the package says."""
    done = run_python("import ddp_probe; print(ddp_probe.__version__)", python=str(installed.python), cwd=tmp_path)
    assert done.stdout.strip() == installed.facts["version"]
