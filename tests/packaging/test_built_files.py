"""What the built files hold."""

import configparser
import filecmp
import os
import tarfile
import zipfile
from pathlib import Path
from typing import List, Set

import pytest


def _names(wheel: Path) -> Set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def _expected(checkout: Set[str]) -> Set[str]:
    """Every file of the package, whatever it is, every template, and every example of a rule."""
    templates = {"ddp_probe/" + name for name in checkout if name.startswith("sitecustomize_templates/")}
    examples = {name.replace("tests/rules/", "ddp_probe/rule_examples/", 1) for name in checkout if name.startswith("tests/rules/")}
    return {name for name in checkout if name.startswith("ddp_probe/")} | templates | examples


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path, checkout: Set[str]) -> None:
    """Every module, data file, template and example of the checkout is in the wheel; no test, no script and nothing else from the repository is."""
    content = {name for name in _names(wheel) if ".dist-info/" not in name}
    assert content == _expected(checkout)


def test_the_templates_are_in_the_wheel(wheel: Path) -> None:
    """The file that install and run put in place is in the wheel, where the package looks for it."""
    assert "ddp_probe/sitecustomize_templates/sitecustomize.py" in _names(wheel)


def test_the_sdist_builds_the_same_wheel(wheel: Path, wheel_of_sdist: Path) -> None:
    """A wheel built from the source distribution alone holds the same files, byte for byte, as one built from the tree."""
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(wheel_of_sdist) as other:
        files = {name: one.read(name) for name in one.namelist() if ".dist-info/" not in name}
        assert files == {name: other.read(name) for name in other.namelist() if ".dist-info/" not in name}


def test_the_sdist_is_the_checkout(sdist: Path, unpacked: Path, checkout: Set[str], repo: Path) -> None:
    """The source distribution holds every file of the checkout, tests and scripts included, byte for byte, and besides only what setuptools adds."""
    with tarfile.open(sdist) as archive:
        files = {member.name.partition("/")[2] for member in archive if member.isfile()}
    added = {name for name in files if name == "PKG-INFO" or name.startswith("ddp_probe.egg-info/")}
    assert files - added == checkout
    assert [name for name in checkout if not filecmp.cmp(str(unpacked / name), str(repo / name), shallow=False)] == []
    assert [name for name in checkout if os.access(str(unpacked / name), os.X_OK) != os.access(str(repo / name), os.X_OK)] == []


@pytest.mark.parametrize("ending", ["/LICENSE", "/entry_points.txt", "/METADATA"])
def test_the_wheel_carries_its_metadata(wheel: Path, ending: str) -> None:
    """Licence, entry points and metadata are in the wheel's dist-info folder."""
    assert [name for name in _names(wheel) if name.endswith(ending) and ".dist-info/" in name]


def test_every_package_is_listed(setup_cfg: configparser.ConfigParser, repo: Path) -> None:
    """The packages named in setup.cfg are the folders that hold an __init__.py: none forgotten, none gone."""
    folders = {path.parent.relative_to(repo).as_posix().replace("/", ".") for path in repo.glob("ddp_probe/**/__init__.py")}
    listed: List[str] = setup_cfg["options"]["packages"].split()
    assert sorted(listed) == sorted(folders | {"ddp_probe.rule_examples", "ddp_probe.sitecustomize_templates"})


def test_what_recording_needs_is_what_pip_brings(setup_cfg: configparser.ConfigParser) -> None:
    """Each package that install insists on is a dependency of the wheel."""
    from ddp_probe.activation.installer import child

    named = {line.split(">=")[0].strip() for line in setup_cfg["options"]["install_requires"].split("\n") if line.strip()}
    assert set(child.TO_RECORD) <= named
