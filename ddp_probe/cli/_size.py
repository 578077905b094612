"""Reads a number of bytes such as 20M from the command line."""

import re

from ddp_probe.shared.errors import UsageError

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def parsed(text: str, option: str, smallest: int, example: str) -> int:
    """Return the number of bytes that an option names."""
    found = re.fullmatch(r"(\d{1,12})\s*([kmg]?)(?:i?b)?", text.strip().lower())
    count = int(found[1]) * _UNITS[found[2]] if found else 0
    if count < smallest:
        raise UsageError("%s %s is not a valid size." % (option, text), "Write a number of at least %d, such as %s." % (smallest, example))
    return count
