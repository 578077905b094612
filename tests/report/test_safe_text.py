"""Nothing that a log holds reaches the reader's terminal as an order."""

import unicodedata
from pathlib import Path

import pytest

from ddp_probe.judging.judge import judge
from ddp_probe.reading.load_run import load
from ddp_probe.showing import forms, safe
from ddp_probe.showing.layout import CELL, LONGEST, columns, sentence, wrap


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("a\r\nb\tc", "a  b c"),
        ("one\u2028two", "one\\u2028two"),
        ("user\u202egpj.exe", "user\\u202egpj.exe"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("half \udc80", "half \\udc80"),
        ("tag \U000e0041", "tag \\U000e0041"),
        ("[red]markup[/red] :smile:", "[red]markup[/red] :smile:"),
        ("模型 café", "模型 café"),
    ],
)
def test_what_steers_a_terminal_is_spelled_out(text: str, shown: str) -> None:
    """Escapes, bidirectional overrides, invisible characters and line breaks are shown by number or as blanks; letters stay."""
    assert safe.line(text) == shown


def test_every_character_is_harmless() -> None:
    """Of all of Unicode no control or format character is left."""
    everything = "".join(map(chr, range(0x110000)))
    kept = set(safe.line(everything))
    assert {unicodedata.category(char) for char in kept}.isdisjoint({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def test_marks_do_not_climb() -> None:
    """Of a hundred combining marks on one letter four are left."""
    assert safe.line("a" + "\u0301" * 100 + "b") == "a" + "\u0301" * 4 + "b"


def test_a_long_text_is_cut_and_says_so() -> None:
    """A text beyond the limit ends with the number of characters that are missing."""
    assert safe.line("x" * 50, 10) == "x" * 10 + " ... (40 more characters)"
    assert sum(map(len, wrap("word " * 10**6, 80))) < 2 * LONGEST


def test_a_line_break_in_a_log_makes_no_line_of_the_report() -> None:
    """A message that holds a report's words after a line break stays inside its own sentence."""
    assert [line.text for line in sentence("failed\n\nclear: all is well", 80)] == ["failed  clear: all is well"]


def test_a_path_is_never_broken() -> None:
    """A path longer than the line is printed unbroken on its own line."""
    path = "/a/very/long/path/with spaces/" + "x" * 90 + ".py:41"
    lines = wrap("at %s in main" % path, 40, "  ", "    ")
    assert any(line.strip().endswith("x" * 90 + ".py:41") for line in lines)
    assert all(len(line) <= 40 or "/" in line for line in lines)


def test_blanks_at_a_break_are_dropped() -> None:
    """If a line is broken between two spaces, the next one begins with its word."""
    assert wrap("x" * 20 + "  word", 20, "", "  ") == ["x" * 20, "  word"]


def test_columns_stand_under_each_other() -> None:
    """Wide letters count double, and a cell is harmless and of bounded length."""
    lines = columns([["模型", "a"], ["x\x1b", "b"], ["y" * 500, "c"]])
    assert len({safe.width(line) for line in lines}) == 1
    assert "\x1b" not in "".join(lines)
    assert len(lines[2]) < CELL + 40


SECRET = "hunter2planted"
_LOG = """\
[rank1]: Traceback (most recent call last):
[rank1]:   File "/train/%(token)s/train.py", line 7, in main
[rank1]:     fetch("https://bob:%(secret)s@hub.example/x.pth?token=%(secret)s")
[rank1]: RuntimeError: wrong password: %(secret)s, curl -u bob:%(secret)s, \u5bc6\u7801\uff1a%(secret)s, %(token)s
"""


@pytest.mark.parametrize("form", ["terminal", "brief", "json", "github", "junit"])
def test_a_secret_of_somebodys_log_is_shown_in_no_form(tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str) -> None:
    """A plain log with passwords in a traceback is judged, and its passwords are printed by no form, as they are on the page of --html."""
    token = "ghp_ABCDEFGHIJ1234567890"
    (tmp_path / "err.log").write_text(_LOG % {"secret": SECRET, "token": token})
    forms.show(judge(load([str(tmp_path / "err.log")])), form)
    shown = capsys.readouterr().out
    assert "wrong password: ***" in shown
    assert SECRET not in shown
    assert token not in shown
