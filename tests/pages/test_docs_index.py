"""docs/README.md has a row for every page."""

import re
from pathlib import Path

from page_blocks import REPO, pages, text


def test_every_page_has_a_row() -> None:
    """Each page and each folder of docs is in one of the tables, and a printed page is in the second."""
    first, second = text("docs/README.md").split("| reference, printed")
    named = {"hand": set(re.findall(r"^\| \[[^]]*\]\(([^)]+)\)", first, re.MULTILINE)), "printed": set(re.findall(r"\[[^]]*\]\(([^)]+)\)", second))}
    docs = REPO / "docs"
    by_hand = {page[len("docs/") :] for page in pages() if page.startswith("docs/") and page.count("/") == 1} - {"README.md"}
    folders = {"%s/README.md" % path.name for path in docs.iterdir() if path.is_dir()}
    assert named["hand"] == (by_hand | folders | {"performance.md"})
    others = {path.name for path in docs.iterdir() if path.suffix in (".md", ".json")}
    assert named["printed"] == others - by_hand - {"README.md", "performance.md", "performance.json"}


def test_the_picture_is_in_light_and_dark() -> None:
    """The picture is an SVG without a script or an outside address, has a title for readers of screens, and gives each colour twice."""
    picture = Path(REPO / "docs" / "how-it-works.svg").read_text(encoding="utf-8")
    light, dark = picture.split("prefers-color-scheme: dark")
    assert "<title" in picture
    assert "<desc" in picture
    assert re.findall(r"<script|<image|xlink|url\((?!#)|https?://(?!www\.w3\.org/2000/svg)", picture) == []
    styles = {name for name, rules in re.findall(r"^    \.?(\w+) \{([^}]*)\}", light, re.MULTILINE) if "#" in rules}
    assert styles == set(re.findall(r"^      \.?(\w+) \{", dark, re.MULTILINE))
