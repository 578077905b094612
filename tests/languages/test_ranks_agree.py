"""What is said of ranks agrees with their number, in each template and on a page that says it once."""

import re
from types import SimpleNamespace
from typing import Any, List

import pytest
from docs_parts import translations

from ddp_probe.judging.rule import Evidence
from ddp_probe.showing.found import grouped
from ddp_probe.showing.language import CHINESE
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import named

TEMPLATES = sorted({template for template, _ in translations.templates()})
_OF_A_NUMBER = re.compile(r"^rank \{\w+\} (?:is|was|has|does|[a-z]+s)\b")
_OF_ANY = re.compile(
    r"(?<!of )\{(?:who|silent|behind|late|gone|guilty|waits)(?::capital)?\} "
    r"(?:is|was|has|does|[a-z]+s|are|were|have|do)\b(?! all\b| in different)"
)
_OF_HOSTS = (
    "{who} belongs to another launch, or was too late.",
    "{who:capital} is late: its ranks came",
    "{who} has the same files as another host",
)
"""How templates begin that are of one host."""


def _fixed(templates: List[str]) -> List[str]:
    """Return the templates with a verb that is right for one rank or for several only."""
    of_ranks = [template for template in templates if not template.startswith(_OF_HOSTS)]
    return [template for template in of_ranks if _OF_A_NUMBER.search(template) or _OF_ANY.search(template)]


def test_each_template_is_for_one_rank_and_for_several() -> None:
    """A verb behind the place of ranks has two forms, {who:waits|wait}, as a page may say it of many."""
    assert len(TEMPLATES) > 1000
    assert _fixed(TEMPLATES) == []
    assert sum(template.startswith(_OF_HOSTS) for template in TEMPLATES) == len(_OF_HOSTS)


@pytest.mark.parametrize("template", ["rank {rank} waits", "Look where {who} is", "{who:capital} have left"])
def test_a_verb_of_one_form_is_found(template: str) -> None:
    """The patterns find a verb in either number, at the begin of a text and within it."""
    assert _fixed([template]) == [template]


def _said(count: int, text: Any, language: Any = None) -> str:
    """Return what a page says behind the ranks of a group of so many, each with a text of its own rank."""
    files = ["rank%05d.jsonl" % rank for rank in range(count)]
    processes = [SimpleNamespace(file=file, rank=rank, local_rank=rank) for rank, file in enumerate(files)]
    run: Any = SimpleNamespace(processes=processes)
    (group,) = grouped([Evidence(file, 1, None, text(rank)) for rank, file in enumerate(files)], run)
    assert group.ranks == list(range(count))
    return group.says(language) if language is not None else group.says()


def _waits(rank: int) -> Text:
    return say("{who} {who:waits|wait} for the others", who=named([rank]))


def test_one_text_of_several_ranks_agrees_with_them() -> None:
    """The page names rank 0, or ranks 0-3, and then says waits, or wait; in Chinese the verb is the same."""
    assert _said(1, _waits) == "waits for the others"
    assert _said(2, _waits) == _said(4, _waits) == "wait for the others"
    assert _said(1, _waits, CHINESE) == _said(2, _waits, CHINESE) == "在等其他 rank"


def test_a_text_of_another_rank_stays_whole() -> None:
    """A line in the files of two ranks that tells of a third names it, with the verb of one rank."""
    assert _said(2, lambda _: _waits(7)) == "rank 7 waits for the others"
