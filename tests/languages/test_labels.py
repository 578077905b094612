"""A word that a page for a person asks for has the same places for names and numbers in Chinese."""

import re

import pytest
from docs_parts import translations
from texts import CHINESE

from ddp_probe.judging.rule import ERROR
from ddp_probe.showing import language

LABELS = language.CHINESE.translations
ASKED = translations.labels()
PRINTF_PLACE = re.compile(r"%(?:\.\d)?[a-z]")  # These are filled in by position.
NAMED_PLACE = re.compile(r"\{\w+(?::\w+)?\}")
A_RANK = {"ranks", "Rank", "Ranks", "Rank %s:", "rank {ranks}", "ranks {ranks}"}  # A rank stays a rank.
NOT_CHINESE = {*A_RANK, "%d x %s", " on %s"}  # A host or a rank follows a comma.
PUNCTUATION = {", ", "; ", ": ", "."}


def test_the_words_are_found() -> None:
    """The search for words finds those of a report, of a rule's page, and of doctor."""
    assert {"evidence", "what you see", "do: %s", "%d rank", "%d check fails", "%d checks fail", "wrapping"} <= ASKED
    assert ERROR not in ASKED


@pytest.mark.parametrize("word", sorted(ASKED & set(LABELS)))
def test_a_word_says_the_same_in_chinese(word: str) -> None:
    """A word of a page is in Chinese, with the same places; those without a name are in the same order."""
    chinese = LABELS[word]
    has_words = re.search("[a-z]", NAMED_PLACE.sub("", PRINTF_PLACE.sub("", word)))
    assert CHINESE.search(chinese) or word in NOT_CHINESE or word in PUNCTUATION or not has_words
    assert PRINTF_PLACE.findall(chinese) == PRINTF_PLACE.findall(word)
    assert set(NAMED_PLACE.findall(chinese)) == set(NAMED_PLACE.findall(word))
