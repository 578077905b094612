"""The bar is for a terminal, and only for a reading that takes long."""

import io
import os
import time

from ddp_probe.showing.progress import Bar, Steps


def test_it_draws_on_a_terminal_after_a_second_and_takes_itself_away() -> None:
    """Nothing is drawn in the first second; then a line is, and clear() leaves blanks where it was."""
    leader, follower = os.openpty()
    with os.fdopen(follower, "w") as stream:
        bar = Bar(stream)
        bar(10, 100)
        bar.clear()
        time.sleep(1.1)
        bar(50, 100)
        bar.clear()
        drawn = ""
        while not drawn.endswith("\r" + " " * 70 + "\r"):  # the kernel hands a terminal's output over in pieces
            drawn += os.read(leader, 1000).decode()
    os.close(leader)
    assert drawn.startswith("\rreading  [###############---------------]  50 %")
    assert drawn.count("reading") == 1
    assert drawn.endswith("\r" + " " * 70 + "\r")


def test_what_takes_seconds_at_once_is_named_at_once() -> None:
    """doctor's first check is drawn before a second has passed, and so is one that follows at once."""
    leader, follower = os.openpty()
    with os.fdopen(follower, "w") as stream:
        steps = Steps(stream, at_once=True)
        steps(1, 27, "packages")
        steps(2, 27, "torch-imports")
        drawn = ""
        while "torch-imports" not in drawn:
            drawn += os.read(leader, 1000).decode()
    os.close(leader)
    assert "1 of 27: packages" in drawn


def test_it_is_silent_elsewhere() -> None:
    """In a pipe or a file nothing is written, however long it takes."""
    stream = io.StringIO()
    bar = Bar(stream)
    time.sleep(1.1)
    bar(50, 100)
    bar.clear()
    assert stream.getvalue() == ""
