"""Reads any file line by line; the rest of an overlong line is dropped in pieces, so that it never fills the memory."""

from typing import BinaryIO, Iterator, Tuple

LONGEST = 1 << 20
_PIECE = 1 << 16


def lines(stream: BinaryIO, longest: int = LONGEST, tail: int = 0) -> Iterator[Tuple[int, bytes, bool]]:
    """Yield line number, text, and whether the line is whole. A line longer than `longest` is cut and marked as not whole.

    With `tail`, that many of its last bytes follow after a carriage return: a failure may be printed at the end of a progress bar.
    A last line without a line break is not whole either: it is still being written, or the writer was killed.
    """
    number = 0
    while True:
        line = stream.readline(longest + 1)
        if not line:
            return
        number += 1
        whole = line.endswith(b"\n")
        if not whole and len(line) > longest:
            rest, end = line, b""
            while rest and not rest.endswith(b"\n"):
                rest = stream.readline(_PIECE)
                if tail:
                    end = (rest if len(rest) >= tail else end + rest)[-tail:]
            line = line[:longest] + (b"\r" + end if end else b"")
        yield number, line, whole
