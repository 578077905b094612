"""Links of terminals: which terminals get them, what they lead to, and that the visible text stays the same."""

import io
import os
import re
from pathlib import Path
from typing import Dict, Iterator
from urllib.parse import unquote, unquote_to_bytes, urlsplit

import pytest

from ddp_probe.showing import paint, paths
from ddp_probe.showing.layout import Link, StyledLine

_KNOWN = {"TERM": "xterm-256color", "VTE_VERSION": "7200"}
_HARMLESS = re.compile(r"file://[A-Za-z0-9._~%-]*/[A-Za-z0-9._~%/-]*")
_LINK = re.compile(r"\x1b\]8;;([^\x1b]*)\x1b\\")


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A terminal that is known to have links, and --color auto."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TMUX", "STY", "TERM_PROGRAM", "WT_SESSION", "KITTY_WINDOW_ID", "VTE_VERSION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in _KNOWN.items():
        monkeypatch.setenv(name, value)
    paint.address.cache_clear()
    yield
    paint.choose(paint.AUTO)


@pytest.mark.parametrize(
    ("environ", "known"),
    [
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "xterm-256color", "VTE_VERSION": "7200"}, True),
        ({"TERM": "xterm-256color", "VTE_VERSION": "5000"}, False),
        ({"TERM": "xterm-256color", "VTE_VERSION": "new"}, False),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "vscode"}, True),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "Apple_Terminal"}, False),
        ({"TERM": "xterm-256color", "WT_SESSION": "b0a8"}, True),
        ({"TERM": "xterm-kitty"}, True),
        ({"TERM": "dumb", "VTE_VERSION": "7200"}, False),
        ({"VTE_VERSION": "7200"}, False),
        ({"TERM": "tmux-256color", "VTE_VERSION": "7200"}, False),
        ({"TERM": "xterm-256color", "VTE_VERSION": "7200", "TMUX": "/tmp/tmux-0/default,1,0"}, False),
        ({"TERM": "xterm-256color", "VTE_VERSION": "7200", "STY": "1.pts-0"}, False),
    ],
    ids=str,
)
def test_only_known_terminals_have_links(environ: Dict[str, str], known: bool) -> None:
    """A terminal that is not known to have links gets none, nor does one behind a multiplexer."""
    assert paint.understood(environ) is known


@pytest.mark.parametrize(
    ("stream", "when", "colours", "links"),
    [
        (_Terminal, paint.AUTO, True, True),
        (_Terminal, paint.ALWAYS, True, True),
        (_Terminal, paint.NEVER, False, False),
        (io.StringIO, paint.AUTO, False, False),
        (io.StringIO, paint.ALWAYS, True, False),
        (io.StringIO, paint.NEVER, False, False),
    ],
)
def test_a_pipe_never_gets_links(stream: type, when: str, colours: bool, links: bool) -> None:
    """--color decides about colours in a pipe and in a terminal; links are for a terminal alone, and go with the colours."""
    paint.choose(when)
    assert (paint.colours(stream()), paint.links(stream())) == (colours, links)


def test_color_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR does not stop --color always, and FORCE_COLOR does not stop --color never."""
    monkeypatch.setenv("NO_COLOR", "1")
    paint.choose(paint.ALWAYS)
    assert paint.colours(io.StringIO())
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR")
    paint.choose(paint.NEVER)
    assert not paint.colours(_Terminal())


def test_a_link_leads_to_the_file_and_changes_no_text(tmp_path: Path) -> None:
    """The link has the host and the whole path; without its escape sequences the line is the same, and the indent has neither colour nor link."""
    file = tmp_path / "my train.py"
    file.write_text("", encoding="utf-8")
    line = paths.linked(StyledLine("    at my train.py:17 in main", paint.BAD), "my train.py:17", str(file))
    shown = paint.text([line], _Terminal())
    (target, end) = _LINK.findall(shown)
    assert (unquote(urlsplit(target).path), end) == (str(file), "")
    assert target.startswith("file://" + os.uname().nodename + "/")
    assert shown.startswith("    \x1b[1;31mat \x1b]8;;file://")
    assert _LINK.sub("", shown) == "    \x1b[1;31mat my train.py:17 in main\x1b[0m\n"


def test_a_file_that_is_not_there_has_no_link(tmp_path: Path) -> None:
    """A log of another machine names files that this one does not have: a link would lead nowhere."""
    assert "\x1b]8" not in paint.text([StyledLine("train.py:1", "", (Link(0, 10, str(tmp_path / "train.py")),))], _Terminal())


def test_no_name_of_a_file_leaves_its_link(tmp_path: Path) -> None:
    """The address of a file whose name has every byte that a name may have is of letters, digits and percent signs, and names that file."""
    name = bytes(number for number in range(1, 256) if number != ord("/"))
    file = os.path.join(os.fsencode(str(tmp_path)), name)
    with open(file, "wb"):
        pass
    address = paint.address(os.fsdecode(file))
    assert _HARMLESS.fullmatch(address), address
    assert unquote_to_bytes(urlsplit(address).path) == file


@pytest.mark.parametrize("name", ["a\x00b", "a" * 5000, "\ud800\udfff"], ids=["null", "long", "surrogates"])
def test_a_name_that_no_file_can_have_is_no_error(name: str) -> None:
    """A log may name what no file system takes: the text stays without a link."""
    assert paint.address("/" + name) == ""
