"""What this interpreter was asked to run, read from its own command line before the program has started."""

from __future__ import annotations

import os
import sys

from ddp_probe.shared.ours import ours

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would cost 5 ms at each start of an interpreter
    from typing import List, Optional, Tuple

_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")


class Program:
    """The program of an interpreter: a script, a module (-m), code (-c), or none (a prompt, stdin)."""

    __slots__ = ("args", "kind", "name")

    def __init__(self, kind: str, name: str, args: Tuple[str, ...] = ()) -> None:
        self.kind = kind
        self.name = name
        self.args = args

    @property
    def base(self) -> str:
        """The script's file name without folder and suffix, or the module's name."""
        name = os.path.basename(self.name) if self.kind == "script" else self.name
        return name[:-3] if name.endswith(".py") else name


def command_line() -> List[str]:
    """Return the full command line; while site runs, sys.argv lacks the module's name under -m."""
    original = getattr(sys, "orig_argv", None)  # Python 3.10+
    if original:
        return list(original)
    try:
        with open("/proc/self/cmdline", "rb") as file:
            words = file.read().split(b"\0")[:-1]
        if words:
            return [os.fsdecode(word) for word in words]
    except ours(OSError):
        pass
    return [sys.executable or "python"] + list(getattr(sys, "argv", []))


def program(argv: List[str]) -> Program:
    """Split a Python command line into the interpreter's options and the program."""
    index = 1
    while index < len(argv):
        word = argv[index]
        if word in _WITH_VALUE:
            index += 2
            continue
        if not word.startswith("-") or word == "-":
            return Program("none" if word == "-" else "script", word, tuple(argv[index + 1 :]))
        found = _bundled(word)
        if found is None or word.startswith("--"):
            index += 1
            continue
        letter, value = found
        rest = argv[index + 1 :]
        if not value:
            value, rest = (rest[0] if rest else ""), rest[1:]
        return Program("module" if letter == "m" else "code", value, tuple(rest))
    return Program("none", "")


def _bundled(word: str) -> Optional[Tuple[str, str]]:
    """Find -m or -c inside a bundle of short options such as -um or -ctext; None if there is neither."""
    for place, letter in enumerate(word[1:], start=1):
        if letter in "mc":
            return letter, word[place + 1 :]
        if letter in "WX":  # the rest of the word is that option's value
            return None
    return None
