"""Whatever a log holds, the page shows it as text: no element, no attribute, no script, no link and no direction of text is made of it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hostile_run import HOSTILE, TOKEN, diagnosis_of
from page_reader import PageReader

from ddp_probe.judging.judge import Diagnosis
from ddp_probe.judging.rule import Evidence
from ddp_probe.showing.html import html_page
from ddp_probe.showing.html.page_words import WORDS
from ddp_probe.showing.masker import Masker

_HARMLESS = "word"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Diagnosis:
    """Return the diagnosis of a run in which every text is hostile."""
    return diagnosis_of(tmp_path_factory.mktemp("hostile") / "<b>run", HOSTILE)


@pytest.fixture(scope="module")
def text(hostile: Diagnosis) -> str:
    """Return its page."""
    return html_page.text(hostile)


def test_nothing_of_a_log_becomes_markup(text: str, tmp_path: Path) -> None:
    """Each element has a kind and attributes that the page of a run with harmless texts has too, and the tags are balanced."""
    read, harmless = PageReader(text), PageReader(html_page.text(diagnosis_of(tmp_path / "run", _HARMLESS)))
    assert read.faults == harmless.faults == []
    shapes, expected = ({(tag, tuple(attributes)) for tag, attributes in one.elements} for one in (read, harmless))
    assert shapes <= expected
    assert read.those("img") == []
    assert [name for _, attributes in read.elements for name in attributes if name.startswith("on") or name in ("src", "style")] == []
    assert all(link.startswith("#") for link in read.all("href"))
    assert len(read.those("script")) == 2
    assert len(read.contents["h1"]) == 1
    assert "alert(1)" in read.text
    assert "{{ 7*7 }}" in read.text
    assert "49" not in read.contents["h2"][0]


def test_no_control_or_bidirectional_character_is_left(text: str) -> None:
    """What changes the direction of text, is not visible or controls a terminal is shown as its number."""
    assert [char for char in "\x00\x1b\u202e\u2066\u200b\ufeff\u2028" if char in text] == []
    assert "\\u202e" in PageReader(text).text


def test_secrets_are_masked(text: str) -> None:
    """A credential in a quoted line, a variable or a message is masked as in a bundle."""
    assert TOKEN not in text
    assert '"SOMETOKEN":"***"' in "".join(PageReader(text).contents["pre"])


def test_json_for_the_script_cannot_end_its_element() -> None:
    """The data has no angle bracket and no ampersand, and is read back as what is shown."""
    data = html_page.as_json({"a": [HOSTILE, 1.5, None]}, Masker({}))
    assert data.isascii()
    assert [char for char in "<>&" if char in data] == []
    assert json.loads(data)["a"][0].startswith("</script><script>alert(1)</script>")


def test_a_line_that_is_gone_is_told(hostile: Diagnosis, tmp_path: Path) -> None:
    """A claim whose log is not here any more, or is a pipe, still has its place, and says so."""
    evidence = [Evidence(str(tmp_path / "gone.jsonl"), 7, None, "text"), Evidence(str(tmp_path), 1, None, "other")]
    lost = replace(hostile.findings[0], evidence=evidence)
    read = PageReader(html_page.text(hostile._replace(findings=[lost])))
    assert read.text.count(WORDS["line_absent"]) == 2
