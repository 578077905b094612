"""A word that a page for a person asks for has the same places for names and numbers in Chinese."""

import re
from pathlib import Path

import pytest
from docs_parts import translations
from texts import CHINESE

import ddp_probe
from ddp_probe.judging.rule import ERROR
from ddp_probe.showing import language

LABELS = language.CHINESE.translations.labels
ASKED = translations.labels()
PLACE = re.compile(r"%(?:\.\d)?[a-z]")
NOT_CHINESE = {"ranks", " on %s"}  # A rank stays a rank; a host or a rank follows a comma.
PUNCTUATION = {", ", "; ", ": ", "."}


def test_the_words_are_found() -> None:
    """The search for words finds those of a report, of a rule's page, and of doctor."""
    assert {"evidence", "what you see", "do: %s", "%d rank", "%d check fails", "%d checks fail", "wrapping"} <= ASKED
    assert ERROR not in ASKED


@pytest.mark.parametrize("word", sorted(ASKED & set(LABELS)))
def test_a_word_says_the_same_in_chinese(word: str) -> None:
    """A word of a page is in Chinese, with the same places in the same order."""
    chinese = LABELS[word]
    assert CHINESE.search(chinese) or word in NOT_CHINESE or word in PUNCTUATION or not re.search("[a-z]", PLACE.sub("", word))
    assert PLACE.findall(chinese) == PLACE.findall(word)


def test_no_word_is_left_over() -> None:
    """Each word of the file is one that the package has, and none is in the file twice."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in Path(ddp_probe.__file__).parent.rglob("*.py"))
    assert [word for word in LABELS if '"%s"' % word not in text and word not in ASKED] == []
    lines = Path(language.path("zh")).read_text(encoding="utf-8").splitlines()
    assert sum(line.startswith('"') for line in lines) == len(LABELS)
