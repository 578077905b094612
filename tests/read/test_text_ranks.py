"""Plain logs: the rank of each line, if the log tells it."""

from typing import List, Optional, Tuple

import pytest

from ddp_probe.reading import text
from ddp_probe.reading.model import Failed, TextLog


def _read(log: str) -> TextLog:
    return text.read(log.encode().splitlines(keepends=True), "train.log")


def _told(log: str) -> List[Tuple[Optional[int], str, str]]:
    """Return rank, type and first line of each failure that is certainly one."""
    return [(failed.rank, failed.type, failed.message.strip().split("\n")[0]) for failed in _read(log).failures if failed.uncaught]


def _trail(failed: Failed) -> List[Tuple[int, str, str]]:
    return [(site.line, site.function, failed.source.get((site.file, site.line), "")) for site in failed.frames]


@pytest.mark.parametrize(
    ("form", "ranks"),
    [
        ("[rank%d]: ", (0, 1)),
        ("[rank %d] ", (0, 1)),
        ("[Rank %d] ", (0, 1)),
        ("[rank: %d] ", (0, 1)),
        ("%d: ", (0, 1)),
        ("[%d] ", (0, 1)),
        ("[1,%d]<stderr>:", (0, 1)),
        ("2026-01-01T12:00:00.123456789Z [rank%d]: ", (0, 1)),
        ("node1: [rank%d]: ", (0, 1)),
        ("(TaskRunner pid=77) [rank%d]: ", (0, 1)),
        ("\x1b[36m(Worker pid=7%d, ip=127.0.0.1)\x1b[0m ", (None, None)),
        ("127.0.0.%d: ", (None, None)),
        ("node%d: ", (None, None)),
        ("worker-%d  | ", (None, None)),
        ("[default%d]:", (None, None)),
    ],
)
def test_prefixes(form: str, ranks: Tuple[Optional[int], Optional[int]]) -> None:
    """Interleaved lines of two ranks are separated by their prefixes; if a prefix is not a rank, no rank is claimed."""
    frame = '  File "/train/t.py", line %d, in main'
    lines = ["Traceback (most recent call last):", frame, "    run()", "ValueError: of %d", "  and so on", "[W] a warning"]
    log = "".join(form % rank + (line % rank if "%d" in line else line) + "\n" for line in lines for rank in (0, 1))
    assert _told(log) == [(ranks[0], "ValueError", "of 0"), (ranks[1], "ValueError", "of 1")]
    failures = [failed for failed in _read(log).failures if failed.type]
    assert [failed.frames[0].line for failed in failures] == [0, 1]
    assert [failed.message.count("\n") for failed in failures] == [1, 1]


def test_local_ranks_become_ranks() -> None:
    """torchrun's prefix has the local rank; its summary tells how far that is from the rank."""
    log = "[default1]:ValueError: x\nRoot Cause (first observed failure):\n[0]:\n  rank      : 9 (local_rank: 1)\n"
    assert _told(log)[0] == (9, "ValueError", "x")
    assert _told(log + "  rank      : 1 (local_rank: 1)\n")[0] == (None, "ValueError", "x")


def test_first_words_of_a_line_are_not_a_host() -> None:
    """A file's name or a list's number at the beginning of a line is part of what it says."""
    lines = ["libmccl.so.2: cannot open shared object file", "train.py: error: unrecognized arguments: --x", "7: a line of a list, with an error"]
    log = "\n".join([*lines, "step", "step", "step"])
    assert all(line in _read(log).failures[0].message for line in lines)
    assert _read(log).failures[0].rank is None


def test_two_ranks_without_a_prefix() -> None:
    """Two tracebacks that ran into each other line by line are taken apart by what calls what."""
    log = """\
Traceback (most recent call last):
  File "/train/t.py", line 7, in <module>
Traceback (most recent call last):
    main()
  File "/train/t.py", line 7, in <module>
  File "/train/t.py", line 5, in main
    main()
    left()
  File "/train/t.py", line 6, in main
    right()
  File "/train/t.py", line 2, in left
    raise ValueError("left")
ValueError: left
  File "/train/t.py", line 3, in right
    raise TypeError("right")
TypeError: right
"""
    first, second = _read(log).failures
    assert [function for _, function, _ in _trail(first)] == ["<module>", "main", "left"]
    assert [function for _, function, _ in _trail(second)] == ["<module>", "main", "right"]


def test_two_ranks_of_an_old_python() -> None:
    """Python before 3.9 writes a line's indentation and its text apart: one line has both ranks' indentation, another none."""
    log = """\
Traceback (most recent call last):
Traceback (most recent call last):
  File "/train/t.py", line 27, in <module>
  File "/train/t.py", line 27, in <module>
    main()
  File "/train/t.py", line 22, in main
        wrap(model)
  File "/env/site-packages/torch/d.py", line 573, in wrap
main()
  File "/train/t.py", line 22, in main
    wrap(model)
  File "/env/site-packages/torch/d.py", line 573, in wrap
    raise error
        raise error
ValueError: got device_ids [0]
ValueError: got device_ids [1]
"""
    failures = _read(log).failures
    assert [failed.message for failed in failures] == ["got device_ids [0]", "got device_ids [1]"]
    assert [[site.line for site in failed.frames] for failed in failures] == [[27, 22, 573]] * 2


def test_rank_inside_a_line() -> None:
    """A line of torch's C++ code names its rank; two of them are two passages, and in another group the number is not a rank."""
    log = """\
[E ProcessGroupNCCL.cpp:828] [Rank 6] Watchdog caught collective operation timeout: x
[E ProcessGroupNCCL.cpp:828] [Rank 4] Watchdog caught collective operation timeout: x
[E ProcessGroupNCCL.cpp:828] [PG ID 3 PG GUID 5 Rank 1] Watchdog caught collective operation timeout: x
"""
    assert [rank for rank, _, _ in _told(log)] == [6, 4, None]
