"""The pictures of the README are what the commands print today."""

import shutil
from pathlib import Path
from typing import Any, Callable
from xml.etree import ElementTree

import pytest
from page_blocks import blocks, text

_PICTURES = ("docs/watch.svg", "docs/report-page.svg")


def test_the_pictures_are_drawn_anew_to_the_same_bytes(run_python: Callable[..., Any], repo: Path) -> None:
    """scripts/draw_pictures --check finds both as it draws them under this Python."""
    done = run_python([repo / "scripts" / "draw_pictures", "--check"])
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_a_stale_picture_is_named_and_then_drawn(run_python: Callable[..., Any], repo: Path, tmp_path: Path) -> None:
    """--check exits 1, names the picture alone that differs, and writes nothing; without it the picture is as it was."""
    for name in ("scripts/draw_pictures", "scripts/own_python.py", *_PICTURES):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(str(repo / name), str(tmp_path / name))
    for name in ("ddp_probe", "tests"):
        (tmp_path / name).symlink_to(repo / name)
    page = tmp_path / "docs" / "report-page.svg"
    right = page.read_text(encoding="utf-8")
    page.write_text(right.replace("Cause found", "Cause lost"), encoding="utf-8")
    script = tmp_path / "scripts" / "draw_pictures"
    checked = run_python([script, "--check"])
    assert (checked.returncode, checked.stdout) == (1, "docs/report-page.svg is stale. Run scripts/draw_pictures.\n"), checked.stderr
    assert "Cause lost" in page.read_text(encoding="utf-8")
    assert run_python([script]).returncode == 0
    assert page.read_text(encoding="utf-8") == right


@pytest.mark.parametrize("name", _PICTURES)
def test_a_picture_is_small_and_stands_alone(repo: Path, name: str) -> None:
    """A browser can parse it, it loads nothing, runs nothing, and is smaller than 60 kB."""
    path = repo / name
    assert path.stat().st_size < 60_000
    tags = {element.tag.rpartition("}")[2] for element in ElementTree.parse(str(path)).iter()}
    assert tags & {"script", "image", "use", "link"} == set()
    assert "url(http" not in path.read_text(encoding="utf-8")


def test_the_picture_of_watch_has_the_words_of_the_page_about_hangs(repo: Path) -> None:
    """The picture and the block of docs/hangs.md, which a test prints anew, are the same run."""
    (shown,) = [block.text for block in blocks("docs/hangs.md") if block.text.startswith("$ python -m ddp_probe watch")]
    drawn = [element.text or "" for element in ElementTree.parse(str(repo / "docs/watch.svg")).iter() if element.tag.endswith("}text")]
    assert "".join(drawn).replace(" ", "") == "".join(shown.split())


@pytest.mark.parametrize("page", ["README.md", "README_zh-CN.md"])
def test_the_readme_shows_both(page: str) -> None:
    """Both pictures stand in the README of each language, with words for those who do not see them."""
    for name in _PICTURES:
        before, found, _ = text(page).partition("](%s)" % name)
        assert found
        assert len(before.rpartition("![")[2]) > 10
