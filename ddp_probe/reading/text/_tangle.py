"""Separates output that two interpreters wrote into one line: Python writes an exception's name, its colon and its message one after the other."""

import re
from typing import List

_NAME = r"(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}?(?:Error|Exception)"
_NAME_AND_FRAME = re.compile(r'(?P<name>%s(?:: )?)(?P<rest> {2,60}File "[^"]+", line \d+.*)$' % _NAME)
# The second name directly follows the first one, its colon, or its message, without a space.
_TWO_NAMES = re.compile(r"(?P<one>%s)(?P<before>(?:: )?|: .{0,300}?[a-z0-9.)\]])(?P<two>%s)(?P<after>.*)$" % (_NAME, _NAME))


class Tangle:
    """The incomplete part of a line of one source, until the rest arrives."""

    def __init__(self) -> None:
        self._name = ""

    def untangled(self, text: str) -> List[str]:
        """Return the original lines as far as possible; mixed messages of two exceptions are assigned to both."""
        if self._name and (text.startswith(": ") or (self._name.endswith(": ") and not text[:1].isspace())):
            name, self._name = self._name, ""
            return [name + text]
        torn = _NAME_AND_FRAME.match(text)
        if torn:
            self._name = torn.group("name")
            return [torn.group("rest")]
        both = _TWO_NAMES.match(text)
        if both is None:
            return [text]
        words = " ".join(part for part in (both.group("before").strip(": "), both.group("after").strip(": ")) if part)
        return ["%s: %s" % (both.group(name), words) for name in ("one", "two")]
