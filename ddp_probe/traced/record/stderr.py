"""What a person sees while the job runs: one write a line to stderr, never to stdout, and never a failure of it."""

import os
import sys
from typing import Any, Optional

from ddp_probe.shared import schema
from ddp_probe.shared.ours import suppress
from ddp_probe.traced.record.chain import text_logger


def say(text: str) -> None:
    """Write one line."""
    if sys.__stderr__ is None:  # the program was started without it; number 2 may be one of its files
        return
    with suppress(OSError):
        _logger.write(text)


class _Stderr:
    """The end of the chain: one write a line."""

    def write(self, line: bytes) -> None:
        os.write(2, line)


_logger = text_logger(_Stderr())


def tell(event: schema.Event, phase: str, rank: Optional[int], more: Any) -> None:
    """Write one short line about an event."""
    parts = [who(rank), str(type(event).__struct_config__.tag), phase]
    if more.get("seconds") is not None:
        parts.append("%.3f s" % more["seconds"])
    failure = more.get("failure") or event.failure
    if failure is not None:
        parts.append(str(failure.type))
    if event.site is not None:
        parts.append("%s:%s" % (event.site.file, event.site.line))
    say(" | ".join(part for part in parts if part))


def who(rank: Optional[int]) -> str:
    """Return how a line names this process."""
    return "pid %d" % os.getpid() if rank is None else "rank %s" % rank


def trouble(rank: Optional[int], path: str, exc: Exception, *, opened: bool) -> None:
    """Say why nothing can be written, and what to change where nothing could be written at all."""
    why: str = type(exc).__name__
    if isinstance(exc, OSError) and exc.errno is not None:
        why = os.strerror(exc.errno)
        path = path if exc.filename is None else os.fsdecode(exc.filename)
    remedy = " Set DDP_PROBE_DIR to a folder that can be written to." if isinstance(exc, OSError) and not opened else ""
    say("%s cannot write %s: %s. Training goes on; events are lost from here.%s" % (who(rank), path, why, remedy))
