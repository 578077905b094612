"""The two corpora: no secret of the one comes through, and no line of the other is changed."""

from typing import Callable, Iterator, List

import pytest
import schedule
import secret_corpus
from secret_corpus import Planted

from ddp_probe.shared.masks import mask, mask_argv

_FIXED = 1  # The seed of the numbers in docs/contributing/promises.md.
_UNSEEN = 0.992  # A value made at random may lack what tells it from a word. Of 30 seeds the worst had 0.9956, the mean 0.9985.


def _leaks(planted: Iterator[Planted]) -> List[str]:
    return ["%s, %s: %r -> %r" % (each.kind, each.carrier, each.text, each.shown()) for each in planted if each.leaks()]


def test_the_keys_of_vendors_are_masked() -> None:
    """Of the keys of 263 kinds in all their texts one comes through: two numbers with a colon, as an argument after an option that says nothing."""
    leaks = _leaks(secret_corpus.keys(_FIXED))
    assert len({each.kind for each in secret_corpus.keys(_FIXED)}) == 263
    assert [leak.partition(":")[0] for leak in leaks] == ["sidekiq, argv 0"], "\n".join(leaks)


def test_what_stands_in_a_place_of_a_secret_is_masked() -> None:
    """Whatever stands in one of 194 places of a secret is masked: in a list of arguments, a shell's line, a message, JSON."""
    assert len({each.kind for each in secret_corpus.places(_FIXED)}) == 194
    assert _leaks(secret_corpus.places(_FIXED)) == []


@pytest.mark.parametrize("made", [secret_corpus.keys, secret_corpus.places])
def test_values_that_nobody_has_seen_are_masked(made: Callable[[int], Iterator[Planted]]) -> None:
    """With values that this run draws, as many are masked but for those that look like words."""
    drawn = list(made(schedule.seed()))
    leaks = _leaks(iter(drawn))
    assert len(leaks) <= (1 - _UNSEEN) * len(drawn), "\n".join(leaks)


def test_no_ordinary_line_is_changed() -> None:
    """500 lines that tools print stand as they are, each as a text and as one argument."""
    lines = secret_corpus.ordinary()
    assert len(set(lines)) == len(lines) == 500
    assert [mask(line) for line in lines] == lines
    assert [mask_argv(["echo", line])[1] for line in lines] == lines


def test_a_masked_text_is_masked_once() -> None:
    """What is masked is not masked again, so that a bundle says what the run says."""
    texts = [each.shown() for made in (secret_corpus.keys, secret_corpus.places) for each in made(_FIXED) if "argv" not in each.carrier]
    again = [(text, mask(text)) for text in texts if "\0" not in text]
    assert [(once, twice) for once, twice in again if once != twice] == []
