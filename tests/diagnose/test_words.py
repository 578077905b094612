"""The phrasing that all verdicts share is right for no rank, one rank and many."""

import re
from typing import Iterator

import pytest

from ddp_probe.judging import examples
from ddp_probe.judging.judge import judge
from ddp_probe.judging.rules import modules, rule_of
from ddp_probe.reading.load_run import from_lines
from ddp_probe.shared.schema import Site
from ddp_probe.wording.text import about, fact_of, joined, say
from ddp_probe.wording.words import at, capital, counted, named, ordinal, place, spans

_ONE_AS_MANY = re.compile(
    r"\b[Rr]anks \d+(?![-,\d]| and | or )|(?<![\d.])\b1 (?:ranks|processes|cards|parameters|buffers|elements|orders|files|lines)\b"
)
_MANY_AS_ONE = re.compile(r"\b[Rr]ank \d+-\d|\b[Rr]anks \d[\d, -]* (?:was|is|has|wraps)\b")


@pytest.mark.parametrize(
    ("ranks", "name", "sentence"),
    [
        ([], "a process", "A process was ended"),
        ([3], "rank 3", "Rank 3 was ended"),
        ([3, 3], "rank 3", "Rank 3 was ended"),
        ([0, 1, 2, 5], "ranks 0-2, 5", "Ranks 0-2, 5 were ended"),
    ],
)
def test_ranks_and_their_verb_agree(ranks, name, sentence):
    """No rank and one rank have a singular verb, several have a plural one, and a rank that is told twice is one."""
    assert named(ranks) == name
    assert say("{who:capital} {who:was|were} ended", who=named(ranks)) == sentence


def test_numbers_and_nouns_agree():
    """0 and 2 take the plural, 1 the singular; an irregular plural is given."""
    assert [counted(count, "card") for count in (0, 1, 2)] == ["0 cards", "1 card", "2 cards"]
    assert counted(2, "process", "processes") == "2 processes"
    assert spans([0, 2, 4], 2) == "0, 2 and 1 more group"
    assert spans([0, 2, 4, 6], 2) == "0, 2 and 2 more groups"


def test_a_place_is_told_once():
    """A line that is known has its file and number; one that is not says so, or ends a clause with nothing."""
    assert (place(Site("/t.py", 3)), at(Site("/t.py", 3))) == ("/t.py:3", " at /t.py:3")
    assert (place(None), at(None)) == ("an unknown line", "")


def test_a_capital_leaves_the_rest():
    """The first letter of a sentence is a capital, and the names in it stay as they are."""
    assert capital("init_process_group of NCCL") == "Init_process_group of NCCL"
    assert [ordinal(number) for number in (0, 5, 6)] == ["first", "sixth", "7th"]


def test_a_sentence_becomes_a_clause():
    """A sentence within another one loses its full stop, in Chinese as well; dots within it stay."""
    text = say("{what:clause} ({version}).", what=say("torch.nn of this version has no Mish."), version="1.8.0")
    assert text == "torch.nn of this version has no Mish (1.8.0)."
    chinese = {"torch.nn of this version has no Mish.": "torch.nn 没有 Mish。", text.template: "{what:clause}（{version}）。"}
    assert text.written(lambda template: chinese[template]) == "torch.nn 没有 Mish（1.8.0）。"


def test_chinese_has_no_space_where_english_has_one():
    """Between two Chinese words, and beside a Chinese mark, the space of a template or a list goes; beside a name it stays."""
    chinese = {"an unknown line": "未知的行", "{call} at {line} fails.": "{call} 在 {line} 失败。"}
    text = joined([say("{call} at {line} fails.", call="save", line=line) for line in (place(None), place(Site("/t.py", 3)))])
    assert text == "save at an unknown line fails. save at /t.py:3 fails."
    assert text.written(lambda template: chinese.get(template, template)) == "save 在未知的行失败。save 在 /t.py:3 失败。"


def test_a_text_is_said_of_several_ranks():
    """A text about one rank is said of several by the same template, in the texts that it holds too; other places stay."""
    after = say("; {ranks:its|their} last call was {call}", ranks=named([3]), call="barrier")
    one = say("{ranks:was|were} at {line}{after}", ranks=named([3]), line="t.py:4", after=after)
    assert one == "was at t.py:4; its last call was barrier"
    assert about(one, ranks=named([1, 3])) == "were at t.py:4; their last call was barrier"
    assert about("was seen", ranks=named([1, 3])) == "was seen"


def _sentences(log: str) -> Iterator[str]:
    for finding in judge(from_lines(log)).findings:
        yield from (finding.verdict, finding.remedy, *(item.text for item in finding.evidence if "Error" not in item.text))
    yield from (answer.because for answer in judge(from_lines(log)).undecided)


@pytest.mark.parametrize("module", modules(), ids=lambda module: rule_of(module).slug)
def test_number_and_noun_agree_in_what_a_rule_says(module):
    """In every sentence about every example one rank is not called ranks, and several are not called rank."""
    for example in examples.of(rule_of(module).slug):
        for sentence in _sentences(example.log):
            assert not _ONE_AS_MANY.search(sentence), sentence
            assert not _MANY_AS_ONE.search(sentence), sentence


def test_words_that_fit_two_causes_are_a_question() -> None:
    """Words that fit several causes leave a rule undecided, with what decides; if another cause is found, nothing is asked."""
    gone = "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:41680\n"
    alone = judge(from_lines(gone))
    assert [answer.slug for answer in alone.undecided] == ["first-to-fail"]
    assert "ended first" in alone.undecided[0].next
    assert not alone.findings
    known = judge(from_lines(gone + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 336.00 MiB.\n"))
    assert [finding.slug for finding in known.findings] == ["card-out-of-memory"]
    assert known.undecided == []


def test_facts_are_the_values_of_what_is_said():
    """The facts of a text are its values by name; a clause is an object, or its only value. An empty clause is left out."""
    here, ever = at(Site("t.py", 3)), float("inf")
    text = say("{who:capital} {who:waits|wait}{where}{why} for {seconds:.0f} s", who=named([0, 1]), where=here, why="", seconds=ever)
    assert text == "Ranks 0-1 wait at t.py:3 for inf s"
    assert fact_of(text) == {"who": [0, 1], "where": {"file": "t.py", "line": 3, "function": ""}, "seconds": "inf"}
    assert fact_of(joined([say("a {kind}", kind="b"), ""])) == {"it": [{"kind": "b"}]}
    assert fact_of("no text of ours") == {}
