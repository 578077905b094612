"""Writes the report to the summary page of a step of GitHub Actions, as inert Markdown.

It is one block of preformatted text, in which GitHub reads neither Markdown nor mentions; with its angle brackets and
ampersands escaped, nothing of a log can end that block.
"""

import html
import os
import sys

from ddp_probe.judging.judge import Diagnosis
from ddp_probe.showing import safe, terminal

VARIABLE = "GITHUB_STEP_SUMMARY"
_WIDTH = 100
_WHOLE = 150_000  # Characters: GitHub drops the whole summary of a step beyond 1 MiB, and a character takes at most six bytes.


def append_summary(diagnosis: Diagnosis) -> None:
    """Append the report to the file that the variable names, if it is set. A file that cannot be written is reported on stderr."""
    path = os.environ.get(VARIABLE)
    if not path:
        return
    try:
        with open(path, "a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(summary_text(diagnosis))
    except OSError as exc:
        sys.stderr.write("%s is not written: %s: %s\n" % (VARIABLE, safe.line(path), exc.strerror))


def summary_text(diagnosis: Diagnosis) -> str:
    """Return the report as Markdown."""
    report = "\n".join(safe.line(line.text) for line in terminal.lines(diagnosis, _WIDTH))
    left = len(report) - _WHOLE
    shown = report if left <= 0 else "%s\n... and %d more characters" % (report[:_WHOLE], left)
    return "### ddp_probe: %s\n\n<pre>\n%s\n</pre>\n\n" % (diagnosis.verdict, html.escape(shown))
