"""Writes what a command remarks on stderr, in the reader's language: stdout has only what was asked for."""

import sys

from ddp_probe.showing import language, safe


def remark(text: str, by: str = "ddp_probe: ") -> None:
    """Write one line, which begins with the name of this package."""
    translated = language.chosen(sys.stderr).text(text)
    sys.stderr.write("%s%s\n" % (by, safe.line(translated)))
