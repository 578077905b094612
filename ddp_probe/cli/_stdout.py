"""A stdout that raises a special error if it cannot be written: on a full disk, or closed.

Such an error must not pass for a fault of a command: it is a BaseException, so that handlers for faults let it through. It cannot lie in errors.py,
whose errors are Exceptions.
"""

import io
import os
import sys
from typing import Any


class UnwritableStdoutError(BaseException):
    """The output of the command reaches nobody."""

    def __init__(self, why: str) -> None:
        super().__init__("ddp_probe: stdout cannot be written: %s." % why)


class _Raw(io.FileIO):
    def write(self, data: Any) -> int:
        try:
            return int(super().write(data) or 0)
        except (BrokenPipeError, BlockingIOError):  # The reader has seen enough, or is slow.
            raise
        except OSError as exc:
            raise UnwritableStdoutError(exc.strerror or str(exc)) from None


class _Closed(io.TextIOBase):
    """Replaces a stdout that the shell has closed."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.buffer = self

    def write(self, _: Any) -> int:
        raise UnwritableStdoutError("it is closed")


_ERRORS = "backslashreplace"
"""A log, a path or a tool's output may hold characters that this locale cannot encode."""


def guard() -> None:
    """Let stdout take every text, and raise that error if it cannot be written.

    A stand-in of a program that calls main() raises its own errors.
    """
    stream: Any = sys.stdout
    if stream is None:
        sys.stdout = _Closed()
    elif stream is sys.__stdout__ and isinstance(stream, io.TextIOWrapper) and stream.fileno() == 1:
        target = io.BufferedWriter(_Raw(1, "wb", closefd=False))
        sys.stdout = io.TextIOWrapper(
            target,
            stream.encoding,
            _ERRORS,
            line_buffering=stream.line_buffering,
            write_through=stream.write_through,
        )
    elif hasattr(stream, "reconfigure"):
        stream.reconfigure(errors=_ERRORS)


def give_up() -> None:
    """Let what is still to be flushed go nowhere, at the exit as well."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
