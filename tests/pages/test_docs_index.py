"""The docs have two halves, docs/ and docs/contributing/: the README of each has a row for every page."""

import re
from pathlib import Path
from typing import List, Set, Tuple

import pytest
from page_blocks import REPO, pages, text


def _rows(page: str) -> Tuple[Set[str], Set[str]]:
    """Return what the tables of an index link to: by hand, and in the table of reference."""
    tables = [line for line in text(page).splitlines() if line.startswith("| ")]
    heads = [number for number, line in enumerate(tables) if line.startswith("| reference, printed")]
    assert len(heads) == 1
    by_hand, printed = tables[: heads[0]], tables[heads[0] :]
    return _links(by_hand), _links(printed)


def _links(rows: List[str]) -> Set[str]:
    return set(re.findall(r"\[[^]]*\]\(([^)]+)\)", "\n".join(rows)))


@pytest.mark.parametrize("folder", ["docs", "docs/contributing"])
def test_every_page_has_a_row(folder: str) -> None:
    """Each page and each folder of a half is in a table of its index, and what is printed in the last one."""
    hand, printed = _rows(folder + "/README.md")
    paths = list((REPO / folder).iterdir())
    there = {path.name for path in paths if path.suffix == ".md" or path.name in ("report.json", "schema.json")}
    written = {page[len(folder) + 1 :] for page in pages() if page.rpartition("/")[0] == folder}
    written |= {"performance.md"} & there
    folders = {"%s/README.md" % path.name for path in paths if path.is_dir()}
    assert hand == (written | folders) - {"README.md", "contributing/README.md"}
    assert printed == there - written
    assert len(hand) > 7
    assert len(printed) > 3


def test_the_index_leads_to_the_other_half() -> None:
    """The index of each half links to that of the other, once."""
    users = text("docs/README.md")
    assert users.count("](contributing/") == users.count("](contributing/README.md)") == 1
    assert text("docs/contributing/README.md").count("](../README.md)") == 1


def _words(page: str) -> int:
    """Count the words of a page outside its blocks. Rows of tables that begin with code are reference."""
    fenced, prose = False, []
    for line in text(page).splitlines():
        fence = line.lstrip().startswith("```")
        fenced ^= fence
        if not fenced and not fence and not line.startswith(("    ", "| `", "|---")):
            prose.append(line)
    return len(" ".join(prose).split())


def test_the_half_of_users_is_short() -> None:
    """The README and the hand-written pages of docs/ have at most 8 000 words, and the first page 500."""
    docs = [page for page in pages() if page.startswith("docs/") and not page.startswith("docs/contributing/")]
    counts = {page: _words(page) for page in ["README.md", *docs]}
    assert len(counts) > 30
    assert min(counts.values()) > 20, counts
    assert sum(counts.values()) <= 8000, counts
    assert counts["docs/start.md"] <= 500


def test_the_picture_is_in_light_and_dark() -> None:
    """The picture is an SVG without a script or an outside address, has a title for readers of screens, and gives each colour twice."""
    picture = Path(REPO / "docs" / "contributing" / "how-it-works.svg").read_text(encoding="utf-8")
    light, dark = picture.split("prefers-color-scheme: dark")
    assert "<title" in picture
    assert "<desc" in picture
    assert re.findall(r"<script|<image|xlink|url\((?!#)|https?://(?!www\.w3\.org/2000/svg)", picture) == []
    styles = {name for name, rules in re.findall(r"^    \.?(\w+) \{([^}]*)\}", light, re.MULTILINE) if "#" in rules}
    assert styles == set(re.findall(r"^      \.?(\w+) \{", dark, re.MULTILINE))
