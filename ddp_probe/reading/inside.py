"""Finds an exception nested in another one: a worker's or child's traceback in its message, or the exception that it was raised from."""

import re

from ddp_probe.reading.job_line import job_line
from ddp_probe.shared.schema import Site

_TRACEBACK = "Traceback (most recent call last)"
_FRAME = re.compile(r'^\s*File "([^"\n]{1,1000})", line (\d{1,9}), in ([^\n]{1,200})$', re.MULTILINE)
_LAST = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:: [^\n]*)?$", re.MULTILINE)
_LONGEST = 200


def inside(message: str, cause_message: str = "", cause: str = "") -> str:
    """Return the nested exception in one line, with the line of the job that raised it; empty if there is none."""
    if _TRACEBACK in message:
        last = _LAST.findall(message)
        frames = [Site(file, int(number), function) for file, number, function in _FRAME.findall(message)]
        site = job_line(frames)
        return _cut(last[-1]) + (", at %s:%d" % (site.file, site.line) if site is not None else "") if last else ""
    first = next((line.strip() for line in cause_message.splitlines() if line.strip()), "")
    return "from %s: %s" % (cause.rpartition(".")[2], _cut(first)) if first and first not in message else ""


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1].rstrip() + "…"
