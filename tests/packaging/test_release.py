"""What the release says about itself: version, changelog, Pythons, addresses, and the page that an index shows."""

import configparser
import email.parser
import re
import runpy
import zipfile
from pathlib import Path
from typing import Any, Dict

import pytest

import ddp_probe

_RELATIVE = re.compile(r"\]\((?!#|[a-z]+:)[^)]*\)")
_ABSOLUTE = re.compile(r"\]\((https://host\.example/owner/name/(blob|tree|raw)/v1\.2\.3/([^)]*))\)")


@pytest.fixture(scope="module")
def setup_py(repo: Path) -> Dict[str, Any]:
    """What setup.py defines."""
    return runpy.run_path(str(repo / "setup.py"), run_name="setup")


def test_the_changelog_has_this_version_with_a_date(repo: Path) -> None:
    """The newest dated heading of the changelog is the version of the package."""
    headings = re.findall(r"^## (\S+) \((\d{4}-\d\d-\d\d)\)$", (repo / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0][0] == ddp_probe.__version__


def test_the_pythons_are_the_ones_from_the_lowest_on(setup_cfg: configparser.ConfigParser) -> None:
    """The classifiers name each Python from the required one on, without a gap."""
    named = re.findall(r"Python :: 3\.(\d+)$", setup_cfg["metadata"]["classifiers"], re.MULTILINE)
    lowest = re.fullmatch(r">=3\.(\d+)", setup_cfg["options"]["python_requires"])
    assert lowest is not None
    assert list(map(int, named)) == list(range(int(lowest[1]), int(lowest[1]) + len(named)))


def test_the_page_of_an_index_has_no_relative_link(wheel: Path, setup_cfg: configparser.ConfigParser) -> None:
    """The built metadata holds the README, with links that are absolute or gone, and names no address that setup.cfg does not."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = email.parser.Parser().parsestr(archive.read(name).decode("utf-8"))
    text = metadata.get_payload()
    assert isinstance(text, str)
    assert text.startswith("# ddp_probe")
    assert _RELATIVE.findall(text) == []
    repository = setup_cfg["release"]["repository"]
    assert [url for url in metadata.get_all("Project-URL", []) if not repository or repository not in url] == []


def test_every_link_of_the_readme_leads_to_a_file_of_the_release(setup_py: Dict[str, Any], repo: Path) -> None:
    """With an address, each relative link of the README becomes one to a file or folder that the checkout has."""
    readme = (repo / "README.md").read_text(encoding="utf-8")
    made = setup_py["description"](readme, "https://host.example/owner/name", "1.2.3")
    links = _ABSOLUTE.findall(made)
    assert _RELATIVE.findall(made) == []
    assert len(links) == len(_RELATIVE.findall(readme)) > 0
    for _, kind, path in links:
        place = repo / path.partition("#")[0]
        assert place.is_dir() if kind == "tree" else place.is_file(), path


def test_the_addresses_are_made_from_one(setup_py: Dict[str, Any]) -> None:
    """An address in setup.cfg gives the four URLs; without one there are none, and the text of a link stays."""
    urls = setup_py["project_urls"]("https://host.example/owner/name", "1.2.3")
    assert sorted(urls) == ["Changelog", "Documentation", "Issues", "Source"]
    assert setup_py["project_urls"]("", "1.2.3") == {}
    assert setup_py["description"]("See [the rules](docs/rules.md), [x](https://x.example) and [below](#b).", "", "1.2.3") == (
        "See the rules, [x](https://x.example) and [below](#b)."
    )
