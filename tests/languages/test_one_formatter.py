"""Bytes are written by one formatter, in one unit system: wording/values.py."""

import ast
import re
from pathlib import Path
from typing import List

import pytest

import ddp_probe
from ddp_probe.wording.words import size

_PACKAGE = Path(str(ddp_probe.__file__)).parent
_FORMATTED = re.compile(r"(?:%[\d.]*[dfgs]|\{[a-z_]+(?::[^{}]*)?\}) ?(?:[KMGT]i?B|kB)\b")
_DECIMAL = re.compile(r"^ ?(?:kB|[MGT]B)$")
_RATES = (
    " MB over {count} ranks took {milliseconds:.1f} ms with {backend} {on}.",
    "which is {growth:.2f} MiB a step, {where}.",
)
"""What is no number of bytes: bytes a second, as links are sold, and bytes a step."""
_LEFT = (
    "{held:.1f} MiB on {device}; it works on {home}",
    "rank {rank} holds up to {held:.1f} MiB there, first seen at '{when}'.",
    "the control group's {limit:.1f} GiB",
)
"""What rules still format themselves; none may be added."""


def _formats(path: Path) -> List[str]:
    """Return the texts of a module in which a number is followed by a unit of bytes, and decimal units."""
    formats: List[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
        if _FORMATTED.search(text) or _DECIMAL.match(text):
            formats.append(text)
    return formats


def test_no_other_module_formats_bytes() -> None:
    """No text has a place for a number before a unit of bytes, but for rates and three that are listed."""
    texts: List[str] = []
    for path in sorted(_PACKAGE.rglob("*.py")):
        if path != _PACKAGE / "wording" / "values.py":
            texts += _formats(path)
    rest = [text for text in texts if not text.endswith(_RATES)]
    assert [text for text in rest if not text.endswith(_LEFT)] == []
    assert len(rest) == len(_LEFT)


@pytest.mark.parametrize(
    ("count", "written"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1023 bytes"),
        (1024, "1 KiB"),
        (5 << 20, "5 MiB"),
        (3 << 29, "1.5 GiB"),
        (1 << 40, "1.0 TiB"),
    ],
)
def test_a_size_has_the_largest_unit_that_it_fills(count: int, written: str) -> None:
    """No size is zero of a unit."""
    assert str(size(count)) == written
