"""Errors, and the tree of stacks, are said in the reader's language; what a program says is quoted."""

import argparse
import re
from pathlib import Path
from typing import List

import pytest

from ddp_probe.cli import _parse, main
from ddp_probe.reading import find
from ddp_probe.showing import safe, stack_page
from ddp_probe.showing.language import CHINESE, ENGLISH
from ddp_probe.showing.watch import ask

RECORDED = Path(__file__).resolve().parent.parent / "recorded"
_HUNG = RECORDED / "new" / "07_divergent_checkpoint_branch"
_WORDS = re.compile(r"[A-Za-z][a-z]+(?:,? [a-z'-]{2,}){2,}")
_COMMAND = re.compile(r"'[^'\n]*'|python -m ddp_probe [^\n，。；）]*|-- [a-z.]+ [a-z.]+")


@pytest.mark.parametrize(
    "arguments",
    [
        ["nothing-like-it"],
        ["--nothing"],
        ["report", "--strct"],
        ["report", "nothing-there"],
        ["report", "--cores", "x"],
        ["report", "--cores", "-1"],
        ["report", "--format", "xml"],
        ["report", "--json", "--brief"],
        ["report", "--cores"],
        ["logs", "/etc/passwd"],
        ["run"],
        ["run", "torchrun", "train.py"],
        ["attach", "--looks", "1"],
        ["watch", "--interval", "0"],
        ["watch", "--prometheus", "x"],
        ["explain", "no-such-rule"],
        ["explain", "DDP999"],
        ["checkpoint"],
        ["checkpoint", "nothing-there"],
        ["doctor", "--nproc", "0"],
        ["gather", "--max-bytes", "3x"],
        ["runs", "nothing-there"],
    ],
    ids=" ".join,
)
def test_an_error_is_chinese(
    arguments: List[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A wrong command line, or a path that is not there, is explained without an English sentence."""
    monkeypatch.setenv("DDP_PROBE_LANG", "zh")
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert "处理：" in said
    assert _WORDS.findall(_COMMAND.sub("…", said)) == []


def _messages() -> List[str]:
    """Return what argparse of this Python says of each kind of mistake."""
    messages: List[str] = []

    class _Noting(argparse.ArgumentParser):
        def error(self, message: str) -> None:  # type: ignore[override]
            messages.append(message)
            raise SystemExit

    parser = _Noting()
    parser.add_argument("--number", type=int)
    parser.add_argument("--choice", choices=("one", "two"))
    parser.add_argument("--several", nargs="+")
    parser.add_argument("--flag", action="store_true")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--here", action="store_true")
    group.add_argument("--there", action="store_true")
    needed = _Noting()
    needed.add_argument("path")
    one_of = _Noting()
    one_of.add_mutually_exclusive_group(required=True).add_argument("--either")
    lines = ("--other", "--number x", "--number", "--choice three", "--several", "--flag=1", "--here --there")
    for reader, line in [*((parser, line) for line in lines), (needed, ""), (one_of, "")]:
        with pytest.raises(SystemExit):
            reader.parse_args(line.split())
    return messages


def test_what_argparse_says_has_a_template() -> None:
    """Each mistake that argparse names is said in Chinese, and in English as argparse says it."""
    messages = _messages()
    assert len(messages) == 9
    for message in messages:
        text = _parse._as_text(message)
        assert str(text) == "%s%s." % (message[:1].upper(), message[1:])
        assert CHINESE.has(text), message


def test_an_error_keeps_its_words_in_english() -> None:
    """In English an error is what it says of itself."""
    error = find.no_run("/nothing/there")
    assert safe.error(error, ENGLISH) == str(error)
    assert safe.error(error, CHINESE) != str(error)


def test_a_secret_in_an_error_is_masked_in_each_language() -> None:
    """An error that names a secret has it masked, whatever the language."""
    error = find.no_run("/runs/password=hunter2secret")
    assert all("hunter2secret" not in safe.error(error, say) for say in (ENGLISH, CHINESE))


def test_the_tree_of_stacks_is_chinese() -> None:
    """The tree names ranks, counts and times in Chinese; functions and files stay."""
    collected = ask.collect([str(_HUNG)], lambda _: True, 0.0)
    tree = stack_page.lines(collected, 200, all_threads=True, say=CHINESE)
    for page in (tree, stack_page.raw(collected, 200, CHINESE)):
        text = "\n".join(line.text for line in page)
        assert "rank 0" in text
        assert _WORDS.findall(text) == []
