"""Paths as a person wants them: relative to where one stands, each of them in full once; after that its name is enough."""

import os
import re
from typing import Dict, Match, Set

from ddp_probe.report import inventory

# A Python file by its absolute path, alone or with a line. What else a log quotes is the log's business.
_SOURCE = re.compile(r"(?<![\w/.:-])/[^\s'\"(),;:]+\.py\b")


class Paths:
    """What one page has named so far."""

    def __init__(self) -> None:
        self._named: Dict[str, str] = {}  # A file's name to the path that it stands for.
        self._told: Set[str] = set()

    def __call__(self, text: str) -> str:
        """Return the text with its paths told shortly."""
        return _SOURCE.sub(self._short, text)

    def name(self, path: str) -> str:
        """Return the path the first time it is named, then the file's name; a name that another file has taken is told in full again."""
        name = os.path.basename(path)
        if path in self._told and self._named[name] == path:
            return name
        self._told.add(path)
        self._named.setdefault(name, path)
        return inventory.near(path)

    def _short(self, found: "Match[str]") -> str:
        return self.name(found.group())
