"""README_zh-CN.md says what README.md says: the same commands, blocks, links and tables."""

import re
from typing import List

from page_blocks import blocks, text

ENGLISH, CHINESE = "README.md", "README_zh-CN.md"


def _without_comments(page: str) -> List[str]:
    return [re.sub(r"\s+# .*$", "", block.text, flags=re.MULTILINE) for block in blocks(page)]


def _commands(page: str) -> List[str]:
    """Return the first cell of each row of the table of commands."""
    return re.findall(r"^\| `([^`]*)`", text(page), re.MULTILINE)


def _prose(page: str) -> str:
    """Return a page without its blocks."""
    return re.sub(r"^    .*$", "", text(page), flags=re.MULTILINE)


def test_the_blocks_are_the_same() -> None:
    """Each block has the same lines, apart from comments of shell lines; what is printed is the same to the last character."""
    assert len(_without_comments(ENGLISH)) > 4
    assert _without_comments(CHINESE) == _without_comments(ENGLISH)


def test_the_tables_have_the_same_commands() -> None:
    """Each command has a row in both tables, in the same order."""
    assert len(_commands(ENGLISH)) > 8
    assert _commands(CHINESE) == _commands(ENGLISH)


def test_the_links_are_the_same() -> None:
    """Both pages link to the same places in the same order, and each to the other in its first lines."""
    links = {page: [link for link in re.findall(r"\]\(([^)]+)\)", _prose(page)) if not link.startswith("README")] for page in (ENGLISH, CHINESE)}
    assert sorted(links[CHINESE]) == sorted(links[ENGLISH])
    assert CHINESE in "".join(text(ENGLISH).split("\n")[:4])
    assert ENGLISH in "".join(text(CHINESE).split("\n")[:4])


def test_the_names_are_the_same() -> None:
    """What is set in backticks, such as options and variables, is the same in both pages."""
    names = {page: sorted(set(re.findall(r"`([^`\n]+)`", _prose(page)))) for page in (ENGLISH, CHINESE)}
    assert [name for name in names[ENGLISH] if name not in names[CHINESE]] == []
    assert [name for name in names[CHINESE] if name not in names[ENGLISH]] == []


def test_the_sections_are_as_many() -> None:
    """Both pages have the same number of sections, and as many points in each."""
    shapes = {page: [part.count("\n- ") for part in text(page).split("\n## ")] for page in (ENGLISH, CHINESE)}
    assert shapes[CHINESE] == shapes[ENGLISH]


def test_the_chinese_page_is_in_mainland_chinese() -> None:
    """The page has no character of traditional Chinese, and full-width punctuation after Chinese."""
    traditional = "們個這來為說還過對時間動開關麼發現問題檔設備環運行權軟體網路記憶"
    simplified = "们个这来为说还过对时间动开关么发现问题档设备环运行权软体网路记忆"
    assert {one for one, other in zip(traditional, simplified) if one != other} & set(text(CHINESE)) == set()
    assert re.findall(r"[\u4e00-\u9fff][,;:?!](?!\w)", _prose(CHINESE)) == []
