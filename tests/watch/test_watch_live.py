"""In a terminal watch renews its table in place until the job ends or Ctrl-C, and leaves the terminal as it was."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, Tuple

import pytest
from ledger_books import Call, returned

_CODE = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\nfrom ddp_probe.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture
def started(folder: Path, clean_env: Callable[..., Dict[str, str]]) -> Iterator[Callable[..., Tuple["subprocess.Popen[bytes]", int]]]:
    """Start the command in a terminal; return the process and the other end of the terminal."""
    made = []

    def start(term: str = "xterm") -> Tuple["subprocess.Popen[bytes]", int]:
        ours, theirs = pty.openpty()
        command = [sys.executable, "-c", _CODE, "watch", str(folder), "--interval", "0.1"]
        env = clean_env(TERM=term, COLUMNS="80", LINES="24", NO_COLOR="1")
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE, env=env)
        os.close(theirs)
        made.append((process, ours))
        return process, ours

    yield start
    for process, ours in made:
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()
        os.close(ours)


def _until(ours: int, mark: bytes, count: int = 1) -> bytes:
    """Read what is printed until a mark has come so often, or nothing more comes."""
    found, end = b"", time.monotonic() + 60
    while found.count(mark) < count and time.monotonic() < end:
        if select.select([ours], [], [], 1)[0]:
            try:
                part = os.read(ours, 1 << 16)
            except OSError:  # The other end is closed.
                return found
            found += part
    return found


def test_the_table_is_renewed_in_place_and_ctrl_c_leaves_the_last_one(book: Any, started: Any) -> None:
    """Each table begins by going up as many lines as the one before had; after Ctrl-C the terminal is as it was and the code is 130."""
    for rank in range(3):
        book(rank, *([Call(seq=4, group="0-2")] if rank else returned(3, group="0-2")), world=3)
    process, ours = started()
    seen = _until(ours, b"\x1b[J", 2)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    seen += _until(ours, b"no such text")
    pages = seen.replace(b"\r\n", b"\n").split(b"\x1b[J")
    assert {page.split(b"\n")[-1] for page in pages[:-1]} == {b"\x1b[5A\r"}
    assert {page.count(b"\n") for page in pages} == {5}
    assert pages[-1].endswith(b"\n")
    assert b"\x1b[?" not in seen
    assert process.stderr.read() == b""


def test_it_ends_with_the_job(book: Any, started: Any) -> None:
    """When the last process is gone, the last table says so and the command ends by itself."""
    end = '{"event":"process.end","phase":"point","ts":"2026-11-22T05:00:01.000000Z","rank":0,"exit_code":0}'
    book(0, Call(group="0"), world=1)
    process, ours = started()
    _until(ours, b"\x1b[J")
    book(0, *returned(1, group="0"), world=1, since=7, lines=[end])
    assert b"1 rank, all ended" in _until(ours, b"all ended")
    assert process.wait(60) == 0


def test_a_terminal_that_cannot_redraw_gets_one_table(book: Any, started: Any) -> None:
    """With TERM=dumb nothing is renewed and no control code is printed."""
    book(0, Call(group="0"), world=1)
    process, ours = started(term="dumb")
    assert b"\x1b" not in _until(ours, b"no such text")
    assert process.wait(60) == 0
