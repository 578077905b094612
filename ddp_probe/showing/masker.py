"""Masks what is shared with others: the fields of events, texts line by line, paths. It counts where it masked, and never keeps what.

Events, ledgers and models stay JSON, and a text keeps its lines, so that a report over the bundle names the same lines. What needs no mask keeps
its bytes. Besides what looks like a secret, the values that this host's environment has under the names of secrets are masked wherever they stand.
"""

import json
import re
from collections import Counter
from typing import Any, Dict, List, Mapping, Optional

from ddp_probe.shared.masks import MASK, mask, mask_argv, mask_value, secret_name

_COMMANDS = ("argv", "parent", "command", "orig_argv")
_ARGUMENTS = 200  # mask_argv takes as many.
_SHORTEST = 8  # Characters of a value of the environment; a shorter one may be a common word.
_REMEMBERED = 1 << 16
_KEY_BEGINS, _KEY_ENDS = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY"), re.compile(r"-----END [A-Z ]*PRIVATE KEY")


class Masker:
    """Masks everything of one bundle."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.masked: Counter[str] = Counter()  # Counted by place.
        self.already: Counter[str] = Counter()  # Masked by the probe when it was written.
        self._known = _known(environ)
        self._memory: Dict[str, str] = {}
        self._changed = False

    def text(self, text: str, where: str) -> str:
        """Return a text of one line, or of a few, masked."""
        masked = self._memory.get(text)
        if masked is None:
            masked = self._mask(text)
            if len(self._memory) < _REMEMBERED:
                self._memory[text] = masked
        return self._counted(text, masked, where)

    def page(self, text: str) -> str:
        """Return a text of the bundle's pages masked; most of it was counted at its source."""
        return self._mask(text)

    def fields(self, rows: List[Dict[str, Any]]) -> Any:
        """Return rows of a page masked field by field."""
        return self._fields(rows, "doctor's table")

    def event(self, line: bytes) -> bytes:
        """Return a line of a log, of a ledger or of a model, masked field by field; a line that is not JSON is masked as text."""
        try:
            decoded = json.loads(line.decode("utf-8"))
            self._changed = False
            event = decoded.get("event") if isinstance(decoded, dict) else None
            masked = self._fields(decoded, self.text(event, "an event's name") if isinstance(event, str) else "a list")
        except (ValueError, RecursionError):
            return self.line(line, "a line that is not JSON")
        if not self._changed:
            return line
        return json.dumps(masked, separators=(",", ":")).encode("ascii") + (b"\n" if line.endswith(b"\n") else b"")

    def ledger_text(self, text: str) -> str:
        """Return a text of a ledger: a line of the job, a group, or a name."""
        try:
            group = json.loads(text) if text.startswith("{") else None
        except (ValueError, RecursionError):
            group = None
        if isinstance(group, dict):
            self._changed = False
            masked = self._fields(group, "a ledger")
            return json.dumps(masked, separators=(",", ":")) if self._changed else text
        return "\n".join(self.text(part, "a ledger") for part in text.split("\n"))

    def lines(self, data: bytes, where: str) -> bytes:
        """Return a text masked line by line; of a private key every line."""
        shown: List[bytes] = []
        inside = False
        for line in data.splitlines(keepends=True):
            text = line.decode("utf-8", "surrogateescape")
            begins = _KEY_BEGINS.search(text) is not None
            if inside and not begins:
                self.masked[where] += 1
                inside = _KEY_ENDS.search(text) is None
                shown.append(MASK.encode() + line[len(line.rstrip(b"\r\n")) :])
                continue
            inside = begins and _KEY_ENDS.search(text) is None
            shown.append(self.line(line, where))
        return b"".join(shown)

    def line(self, line: bytes, where: str) -> bytes:
        """Return one line, masked as text; its line break stays."""
        body = line.rstrip(b"\r\n")
        text = body.decode("utf-8", "surrogateescape")
        masked = self.text(text, where)
        return line if masked == text else masked.encode("utf-8", "surrogateescape") + line[len(body) :]

    def _mask(self, text: str) -> str:
        return mask(self._known.sub(MASK, text) if self._known is not None else text)

    def _counted(self, before: str, after: str, where: str) -> str:
        if after != before:
            self.masked[where] += 1
            self._changed = True
        elif MASK in before:
            self.already[where] += 1
        return after

    def _fields(self, value: Any, where: str) -> Any:
        """Return a value in which each string is masked."""
        if isinstance(value, str):
            return self.text(value, where)
        if isinstance(value, list):
            return [self._fields(item, where) for item in value]
        if not isinstance(value, dict):
            return value
        return {self.text(name, where): self._field(name, item, where) for name, item in value.items()}

    def _field(self, name: str, value: Any, where: str) -> Any:
        """Return the value of a field; its name and what it is decide how it is masked."""
        if isinstance(value, list) and name in _COMMANDS and all(isinstance(item, str) for item in value):
            return self._command(value, "%s %s" % (where, name))
        if isinstance(value, dict) and value and all(isinstance(item, str) for item in value.values()):
            return self._values(value, "%s %s" % (where, name))
        if isinstance(value, str) and secret_name(name):
            return self._counted(value, mask_value(name, value), where)
        return self._fields(value, "%s %s" % (where, name) if isinstance(value, str) and " " not in where else where)

    def _values(self, values: Dict[str, str], where: str) -> Dict[str, str]:
        """Return variables or arguments by name."""
        masked = {}
        for name, value in values.items():
            hidden = mask_value(name, value) if secret_name(name) else self.text(value, where)
            masked[self.text(name, where)] = self._counted(value, hidden, where) if secret_name(name) else hidden
        return masked

    def _command(self, items: List[str], where: str) -> List[str]:
        first = [self._known.sub(MASK, item) if self._known is not None else item for item in items[:_ARGUMENTS]]
        # A long argument is cut by mask_argv; it has been cut before, when it was written.
        shown = [
            self._mask(argument) if len(argument) > len(hidden) and hidden.endswith("...") else hidden
            for argument, hidden in zip(first, mask_argv(first))
        ]
        return [self._counted(argument, hidden, where) for argument, hidden in zip(items, shown)] + [
            self.text(item, where) for item in items[_ARGUMENTS:]
        ]


def _known(environ: Mapping[str, str]) -> "Optional[re.Pattern[str]]":
    """Return what finds the values that this host's environment has under the names of secrets."""
    values = {value for name, value in environ.items() if secret_name(name) and mask_value(name, value) == MASK and _is_unusual(value)}
    return re.compile("|".join(map(re.escape, sorted(values, key=len, reverse=True)))) if values else None


def _is_unusual(value: str) -> bool:
    mixed = any(letter.isdigit() for letter in value) and any(letter.isalpha() for letter in value)
    return len(value) >= _SHORTEST and (mixed or len(value) >= 2 * _SHORTEST)
