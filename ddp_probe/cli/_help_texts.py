"""The help of a command in the reader's language: which texts it consists of, and how Chinese lines are broken."""

import argparse
import functools
import re
from typing import Any, Iterator, List, Optional

from ddp_probe.showing import layout, safe
from ddp_probe.showing.language import ENGLISH, Language

WIDTH = 78
HEADINGS = ("usage: ", "positional arguments", "options", "optional arguments")
"""What argparse writes above a list; the name of the list of options depends on the version of Python."""
_LABEL = re.compile(r"\s*(?:\S+(?:,? \S+)*\s{2,})?")
_COMMAND_LINE = re.compile(r"  +(?:python|torchrun|srun) ")


def texts(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield each paragraph of a command's page and the meaning of each argument."""
    for page in (parser.description, parser.epilog):
        for text in paragraphs(page or ""):
            if not _is_code(text):
                yield text
    for action in parser._actions:
        if action.help and action.help != argparse.SUPPRESS:
            yield action.help


def paragraphs(page: str) -> List[str]:
    """Return what empty lines separate."""
    return page.strip("\n").split("\n\n") if page else []


def _is_code(text: str) -> bool:
    return all(_COMMAND_LINE.match(line) for line in text.split("\n"))


def translate(parser: argparse.ArgumentParser, say: Language) -> None:
    """Put the texts of another language into a parser whose help is about to be printed."""
    parser.description = "\n\n".join(say(text) for text in paragraphs(parser.description or ""))
    parser.epilog = "\n\n".join(say(text) for text in paragraphs(parser.epilog or ""))
    for action in parser._actions:
        if action.help and action.help != argparse.SUPPRESS:
            action.help = say(action.help)
    for group in parser._action_groups:
        group.title = say(group.title or "")
    parser.formatter_class = functools.partial(_Formatter, say=say)


def broken(page: str, width: int = WIDTH) -> str:
    """Return a page with lines of this width; what follows a label in a list is below the text beside the label."""
    lines: List[str] = []
    for line in page.split("\n"):
        match = _LABEL.match(line)
        label = match[0] if match else ""
        lines += layout.wrap(line[len(label) :], width, label, " " * safe.width(label))
    return "\n".join(lines)


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Breaks lines between Chinese characters."""

    def __init__(self, *args: Any, say: Language = ENGLISH, **options: Any) -> None:
        super().__init__(*args, **options)
        self._say = say

    def _fill_text(self, text: str, width: int, indent: str) -> str:  # noqa: ARG002  # argparse passes it.
        return broken(text, min(width, WIDTH))

    def _split_lines(self, text: str, width: int) -> List[str]:
        return layout.wrap(text, width)

    def format_help(self) -> str:
        """Return the page; argparse puts a colon of its own behind a heading."""
        page = super().format_help()
        for heading in [self._say(title) for title in HEADINGS[1:]]:
            page = page.replace("\n%s:\n" % heading, "\n%s%s\n" % (heading, self._say(": ").rstrip()))
        return page

    def add_usage(self, usage: Optional[str], actions: Any, groups: Any, prefix: Optional[str] = None) -> None:
        """Write the usage below the word for it."""
        super().add_usage(usage, actions, groups, prefix or self._say(HEADINGS[0]))
