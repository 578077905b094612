"""Reads a number of bytes such as 20M from the command line."""

import re

from ddp_probe.shared.errors import UsageError
from ddp_probe.wording.text import say

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def size_of(text: str, option: str, smallest: int, example: str) -> int:
    """Return the number of bytes that an option names."""
    match = re.fullmatch(r"(\d{1,12})\s*([kmg]?)(?:i?b)?", text.strip().lower())
    count = int(match[1]) * _UNITS[match[2]] if match else 0
    if count < smallest:
        raise UsageError(
            say("{option} {size} is not a valid size.", option=option, size=text),
            say(
                "Write a number of at least {smallest}, such as {example}.",
                smallest=smallest,
                example=example,
            ),
        )
    return count
