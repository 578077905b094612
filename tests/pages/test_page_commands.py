"""Each command, option, variable, script and link that a page names exists."""

import json
import re
import textwrap
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Set, Tuple

import page_commands
import pytest
import yaml
from page_blocks import REPO, blocks, pages, text

from ddp_probe.shared import settings
from ddp_probe.shared.accelerators import ACCELERATORS

ALL = sorted({*pages(), "CHANGELOG.md", *(str(path.relative_to(REPO)) for path in (REPO / "docs").rglob("*.md"))})
_LINK = re.compile(r"\]\(([^()\s]+)\)|href=\"([^\"]+)\"")
_OUTSIDE = re.compile(r"[a-z]+:")
# Not variables of the probe: what builds the environments, and the beginning of a name.
_OTHERS = {"DDP_PROBE_PYTHON", "DDP_PROBE_"}


def test_the_pages_name_commands() -> None:
    """More than a hundred command lines are found, so that a pattern that finds none cannot pass."""
    assert sum(len(list(page_commands.typed(text(page)))) for page in ALL) > 100
    assert sum(len(list(page_commands.in_spans(text(page)))) for page in ALL) > 100


@pytest.mark.parametrize("page", ALL)
def test_a_command_line_is_one_that_the_command_takes(page: str) -> None:
    """The parser of each command takes each command line of a page, and knows each option that the page names with it."""
    assert [said for said in map(page_commands.complaint, page_commands.typed(text(page))) if said] == []
    assert [option for words in page_commands.in_spans(text(page)) for option in page_commands.unknown_options(words)] == []


@pytest.mark.parametrize("words", [["report", "--jsn"], ["report", "--format", "yaml"], ["wach"], ["checkpoint"], ["doctor", "--nproc", "many"]])
def test_a_wrong_command_line_is_refused(words: List[str]) -> None:
    """A misspelt option, value or command, a missing path and a number that is none are complaints."""
    assert page_commands.complaint(words)


@pytest.mark.parametrize("page", ALL)
def test_a_variable_is_one_that_the_probe_reads(page: str) -> None:
    """Each DDP_PROBE_ variable is a setting, and each value that a page gives it is one that it takes."""
    known = {setting.name: setting for setting in settings.SETTINGS}
    assert set(re.findall(r"\bDDP_PROBE(?:_[A-Z]*)*\b", text(page))) - _OTHERS <= set(known)
    for name, value in re.findall(r"\b(DDP_PROBE(?:_[A-Z]+)*)=([\w./~-]+(?::\d+)?(?:,[\w-]+)*)(?=[\s`);:]|$)", text(page)):
        if name not in _OTHERS:
            known[name].parse(value.rstrip("."))


@pytest.mark.parametrize("page", ALL)
def test_a_link_leads_somewhere(page: str) -> None:
    """Each link to a file of the repository meets it, and each anchor a heading of its page."""
    assert [link for link in _links(page) if not _is_there(page, link)] == []


def _links(page: str) -> Iterator[str]:
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", text(page), flags=re.DOTALL)
    for found in _LINK.finditer(prose):
        link = found.group(1) or found.group(2)
        if not _OUTSIDE.match(link):
            yield link


def _is_there(page: str, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (REPO / page).parent / path if path else REPO / page
    if not target.exists():
        return False
    return not anchor or anchor in _anchors(target.read_text(encoding="utf-8"))


def _anchors(page: str) -> Set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", pages())
def test_a_script_or_a_test_is_there(page: str) -> None:
    """Each path into scripts, tests, docs or the package that a page names exists, and each option of a script is in its code."""
    named = set(re.findall(r"(?<![\w/.])(?:scripts|tests|docs|ddp_probe)/[\w./-]*[\w/]", text(page)))
    made = {name for name in named if "NAME" in name or "SLUG" in name or _is_of_scripts_new(name)}
    assert sorted(name for name in named - made if not _exists(name)) == []


def _exists(name: str) -> bool:
    return (REPO / name).exists() or name.startswith("ddp_probe/sitecustomize")


def _is_of_scripts_new(name: str) -> bool:
    """Tell whether a path is one that the examples of scripts/new would write."""
    return any(word in name for word in ("all_reduce", "load_on_cpu", "acme", "checkpoint_save_flushed", "temp_folder", "sizes"))


@pytest.mark.parametrize("name", ["scripts/test", "scripts/new", "scripts/judge_cases", "scripts/render_docs", "scripts/bench"])
def test_an_option_of_a_script_is_in_its_code(name: str) -> None:
    """Each option that a page gives to a script is a word of the script or of its parts."""
    parts = [REPO / name, REPO / "tests" / "schedule.py", REPO / "tests" / "costs.py", *(REPO / "scripts").glob("*_parts/*.py")]
    code = "\n".join(path.read_text(encoding="utf-8") for path in parts)
    lines = [line for page in pages() for line in text(page).splitlines()]
    options = {option for line in lines for found in re.findall(re.escape(name) + r"([^`|#;\n]*)", line) for option in re.findall(r"--[\w-]+", found)}
    assert [option for option in sorted(options) if option not in code] == []


def test_the_layout_of_contributing_is_the_repository(repo: Path) -> None:
    """Each file or folder of the layout in CONTRIBUTING.md is there."""
    (layout,) = [block.text for block in blocks("CONTRIBUTING.md") if block.first.startswith("setup.cfg  ")]
    names = [line.split()[0] for line in layout.splitlines()]
    assert len(names) > 5
    assert [name for name in names if not (repo / name).exists()] == []


def test_the_example_for_ray_is_python() -> None:
    """The line for ray.init compiles, and gives the variables that the page names."""
    (block,) = [block for block in blocks("docs/launchers/ray-train.md") if block.language == "python"]
    compile(block.text, block.page, "exec")
    assert json.dumps("DDP_PROBE") in block.text


def test_the_lines_for_fluent_bit_are_of_its_configuration() -> None:
    """The first block of fluent-bit.md is part of fluent-bit.yaml, which Fluent Bit runs; the second is a filter on the tag that it gives."""
    copied, filters = [block.text for block in blocks("docs/pipelines/fluent-bit.md") if block.language == "yaml"]
    configuration = (REPO / "docs" / "pipelines" / "fluent-bit.yaml").read_text(encoding="utf-8")
    assert copied in textwrap.dedent(re.sub(r"^(?!    ).*\n", "", configuration, flags=re.MULTILINE))
    assert [sorted(each) for each in yaml.safe_load(filters)] == [["match", "name", "regex"]]
    assert yaml.safe_load(filters)[0]["match"] == yaml.safe_load(copied)[0]["rule"].split()[-2]


def test_the_cards_of_the_page_are_those_of_the_records() -> None:
    """Each row of docs/contributing/accelerators.md has the names of a record, and the page has a row for all but cards that a skeleton added."""
    rows = [line for line in text("docs/contributing/accelerators.md").splitlines() if line.startswith("| `")]
    records: Dict[str, Any] = {card.name: card for card in ACCELERATORS}
    assert len(rows) > 10
    for row in rows:
        name, vendor, *cells = [cell.strip() for cell in row.strip("|").split("|")]
        card = records[name.strip("`")]
        wanted: List[Tuple[str, ...]] = [card.modules, card.device_types, card.backends, (card.smi,) if card.smi else ()]
        assert [vendor, *[tuple(re.findall(r"`([^`]+)`", cell)) for cell in cells]] == [card.vendor, *wanted]


def test_a_record_of_another_package_counts(tmp_path: Path, run_python: Callable[..., Any], clean_env: Callable[..., Dict[str, str]]) -> None:
    """The module and the entry point of accelerators.md, put into a folder of Python's path, add the card."""
    module, entry = [block for block in blocks("docs/contributing/accelerators.md") if block.language]
    (tmp_path / "acme_probe.py").write_text(module.text, encoding="utf-8")
    (tmp_path / "acme.dist-info").mkdir()
    (tmp_path / "acme.dist-info" / "entry_points.txt").write_text(_as_installed(entry.text), encoding="utf-8")
    code = """
from ddp_probe.shared import accelerators
from ddp_probe.traced.plugins import Plugins
Plugins("rank")
print(accelerators.by_device_type("acme").vendor)
"""
    path = "%s:%s" % (tmp_path, REPO)
    assert run_python(code, env=clean_env(PYTHONPATH=path), cwd=tmp_path).stdout == "Acme\n"


def _as_installed(text_of_setup: str) -> str:
    """Write entry points as an installer writes them: a section for each group."""
    return re.sub(r"(\S+) =\n\s+(.*)", r"[\1]\n\2", text_of_setup.split("\n", 1)[1])
