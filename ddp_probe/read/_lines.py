"""Reads a file line by line whatever is in it: a line without end is dropped piece by piece, never held."""

from typing import BinaryIO, Iterator, Tuple

LONGEST = 1 << 20
_PIECE = 1 << 16


def lines(stream: BinaryIO, longest: int = LONGEST, tail: int = 0) -> Iterator[Tuple[int, bytes, bool]]:
    """Yield number, text and whether it is whole; a line longer than `longest` comes as its first bytes, and not whole.

    With `tail`, so many of its last bytes follow after a carriage return: a failure is printed at the end of a progress bar.
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
