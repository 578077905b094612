"""The colours of the page have the contrast that WCAG asks for at level AA, in light, in dark and on paper."""

import re
from pathlib import Path
from typing import Dict, Tuple

import pytest

_STYLE = Path(__file__).resolve().parents[2] / "ddp_probe" / "showing" / "html" / "templates" / "style.css"
_LEAST = 4.5
_TEXTS = ("ink", "soft", "link", "bad", "warn", "good")
_GROUNDS = ("ground", "raised", "sunk", "bad-ground")
_OF_CODE = ("added", "removed", "mark", "held")


def _schemes() -> Dict[str, Dict[str, str]]:
    """Return the colours of each scheme; dark and paper change those of light."""
    blocks = re.findall(r":root \{(.*?)\}", _STYLE.read_text(encoding="utf-8"), re.DOTALL)
    light, dark, paper = (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6})\b", block)) for block in blocks)
    return {"light": light, "dark": {**light, **dark}, "paper": {**light, **paper}}


def _luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(pair: Tuple[str, str]) -> float:
    darker, lighter = sorted(map(_luminance, pair))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark", "paper"])
def test_text_stands_out_from_every_ground(scheme: str) -> None:
    """Each colour of text has a contrast of at least 4.5 on each ground, and that of code on each mark in it."""
    colours = _schemes()[scheme]
    pairs = [(text, ground) for text in _TEXTS for ground in _GROUNDS] + [("ink", mark) for mark in _OF_CODE]
    assert [
        (pair, _contrast((colours[pair[0]], colours[pair[1]]))) for pair in pairs if _contrast((colours[pair[0]], colours[pair[1]])) < _LEAST
    ] == []


def test_names_on_bars_can_be_read() -> None:
    """The dark letters on a bar have a contrast of at least 4.5 on the colour of each kind."""
    style = _STYLE.read_text(encoding="utf-8")
    (letters,) = re.findall(r"\.bar text \{[^}]*fill: (#[0-9a-f]{6})", style)
    kinds = dict(re.findall(r"\.(\w+) \{ --kind: (#[0-9a-f]{6})", style))
    assert len(kinds) == 10
    assert {kind: colour for kind, colour in kinds.items() if _contrast((letters, colour)) < _LEAST} == {}
