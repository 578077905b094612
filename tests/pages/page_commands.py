"""The commands of the probe that a text names, and what its own parser says of each."""

import re
import shlex
from typing import Any, Iterator, List

from ddp_probe.cli import _parse, commands, find
from ddp_probe.shared.errors import UsageError

# Up to what a shell or a sentence ends it with; 2>&1 is a shell's.
_TYPED = re.compile(r"(?:(?<![\w/])|/)(?:-m ddp_probe|ddp-probe)(?= )((?: +(?!#|\d>)(?:\"[^\"]*\"|'[^'\n]*'|[^\s`|;&<>()'\"])+)*)")
_QUOTED = re.compile(r"'(python -m ddp_probe [^'\n]*)'")  # in a message
_ELLIPSES = ("…", "...")
_SPAN = re.compile(r"`([^`\n]+)`")
_NUMBER = re.compile(r"[A-Z]")  # N, S: a number of the reader's.


def typed(text: str) -> Iterator[List[str]]:
    """Yield the words of each command that a text gives in full, after the name of the probe."""
    for found in _TYPED.finditer(_QUOTED.sub(r"\1;", text)):
        words = list(_until_sentence_ends(shlex.split(found.group(1))))
        if words and words[0] not in _ELLIPSES and not words[0].isupper():
            yield words


def _until_sentence_ends(words: List[str]) -> Iterator[str]:
    for word in words:
        bare = re.sub(r"(?<=[\w…])[.,:]$", "", word)
        yield bare
        if bare != word:
            return


def in_spans(text: str) -> Iterator[List[str]]:
    """Yield the words of each command that a page names between backticks without the name of the probe, such as `report --json`."""
    names = {command.name for command in commands()}
    for found in _SPAN.finditer(text):
        words = found.group(1).replace("[", "").replace("]", "").split()
        if words and words[0] in names:
            yield words


def parser(name: str) -> Any:
    """Return the parser of a command."""
    return _parse.parser(find(name))


def complaint(words: List[str]) -> str:
    """Return what the command's own parser says against a whole command line; empty if it takes it."""
    own = words[1 : words.index("--")] if "--" in words else words[1:]
    try:
        parser(words[0]).parse_args(["1" if _NUMBER.fullmatch(word) else word for word in own if word not in _ELLIPSES])
    except UsageError as exc:
        return "%s: %s" % (" ".join(words), exc)
    return ""


def unknown_options(words: List[str]) -> List[str]:
    """Return the options of a command, given in part, that its parser does not know."""
    own = words[1 : words.index("--")] if "--" in words else words[1:]
    return ["%s %s" % (words[0], word) for word in own if word.startswith("--") and word not in parser(words[0])._option_string_actions]
