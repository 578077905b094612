"""Makes text from a log safe to print: it must not control the reader's terminal, and no secret that was logged is shown again."""

import functools
import unicodedata
from typing import Any, Callable

from ddp_probe.shared.errors import ProbeError
from ddp_probe.shared.masks import mask
from ddp_probe.showing.language import Language

# Control and format characters (escapes, bidirectional overrides, zero-width), line separators, surrogates, and private-use characters.
_HARMFUL = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
_STACKED = 4  # Maximum combining marks on one character; more would cover the lines above.


def line(text: str, limit: int = 0) -> str:
    """Return the text on one line with only visible characters, masked; a text over the limit is cut and says by how much."""
    if limit and len(text) > limit:
        return "%s ... (%d more characters)" % (visible(masked(text[: 2 * limit])[:limit]), len(text) - limit)
    return visible(masked(text))


def fields(value: Any) -> Any:
    """Return an event, or what is printed as JSON, with each string masked separately: beside its name, a digest looks like a secret."""
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, dict):
        return {name: item if name == "ts" else fields(item) for name, item in value.items()}
    return [fields(item) for item in value] if isinstance(value, list) else value


def visible(text: str) -> str:
    """Return the text on one line with only visible characters: for what is masked already, and for the reader's own source."""
    if text.isascii() and text.isprintable():
        return text
    return _marks("".join(_shown(char) for char in text))


def error(exc: ProbeError, say: Language, shown: Callable[[str], str] = visible) -> str:
    """Return an error as it is printed, in the reader's language.

    A name in it may hold an escape sequence, or a line break: a collector would take what follows for a line.
    """
    return say(exc.form) % tuple(shown(say.text(part)) for part in exc.parts())


masked = functools.lru_cache(maxsize=4096)(mask)  # A page says the same of many ranks.


def _shown(char: str) -> str:
    if char in "\n\r\t":
        return " "
    if unicodedata.category(char) not in _HARMFUL:
        return char
    number = ord(char)
    return ("\\x%02x" if number < 0x100 else "\\u%04x" if number < 0x10000 else "\\U%08x") % number


def _marks(text: str) -> str:
    kept, stacked = [], 0
    for char in text:
        stacked = stacked + 1 if unicodedata.combining(char) else 0
        if stacked <= _STACKED:
            kept.append(char)
    return "".join(kept)


def width(text: str) -> int:
    """Return the width of the text in a terminal, in columns."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)
