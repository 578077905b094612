"""Says what a raw line shows: without the marks of terminals, pages, editors and log collectors."""

# ruff: noqa: RUF001  # What editors and programs print.

import json
import re
from itertools import chain
from typing import List, Optional

_PLAIN = re.compile(rb'(?!\s*(?:[`~]|\{"))[\t\n\x20-\x25\x27-\x3b\x3d-\x7e]*\Z')  # Not enclosed, and no &, < or escape, as most lines.
_ODD = re.compile(rb"[^\t\n\x20-\x7e]|<[/a-zA-Z]|&[#a-z]|\[\d{1,3}(?:;\d{1,3})*m")
_ENCLOSED = re.compile(rb'\s*(?:[`~]|\{")')
_LEFT_OVER = re.compile(rb"\[\d{1,3}(?:;\d{1,3})*m")
_ESCAPE = re.compile(
    r"(?:\x1b|\^\[|\\x1b|\\u001b|\\033)(?:\[[0-?]{0,40}[ -/]{0,40}[@-~]|\][^\x07\x1b]{0,400}(?:\x07|\x1b\\)|[()][AB012])"
    r"|\x1b[@-Z\\-_]|\x9b[0-?]{0,40}[ -/]{0,40}[@-~]"
    r"|\[\d{1,3}(?:;\d{1,3})*m"  # A colour code that lost its escape character when the log was copied.
)
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028\u2029\u2060\ufeff]")
_TAGS = "span|div|p|br|pre|code|font|b|i|u|a|td|tr|th|table|tbody|html|body|head|li|ul|ol|strong|em|details|summary|blockquote|kbd|samp|tt"
_TAG = re.compile(r"</?(?:%s)(?:\s[^<>]*)?/?>" % _TAGS, re.I)
_ENTITY = re.compile(r"&(?:lt|gt|quot|apos|amp|nbsp|#\d{2,5}|#x[0-9a-fA-F]{2,4});")
_TYPED = str.maketrans(
    {**dict.fromkeys("\xa0\u2002\u2003\u2009\u202f\u3000", " "), **dict.fromkeys("‘’‚‛＇", "'"), **dict.fromkeys("“”„‟＂", '"'), "（": "(", "）": ")"}
)
_WIDE = re.compile("([：，；！])(?= ?)(.?)")
_NARROW = {"：": ":", "，": ",", "；": ";", "！": "!"}
_WRAPPED = ("log", "message", "msg", "line", "MESSAGE", "text")  # What collectors call the line in their JSON.
_LONGEST_JSON = 1 << 16
_FENCE = re.compile(r"(?:```|~~~)[\w+-]*$")
_STATE = re.compile(r"[\W\d_]+")
_PARTS = 100
_SHOWN = 3  # For a line with many carriage returns: the last states of a progress bar, and text printed over it.


def clean(raw: bytes) -> List[str]:
    """Return the visible lines: one, unless carriage returns or a collector's JSON split it."""
    bare = _LEFT_OVER.search(raw) is None if _PLAIN.match(raw) else _ODD.search(raw) is None and _ENCLOSED.match(raw) is None
    if bare:
        return [raw.decode("ascii").rstrip()]
    return visible(_decoded(raw))


def visible(text: str) -> List[str]:
    """Return the visible lines of a decoded one."""
    bare = text.strip()
    if bare[:1] == "{":
        inner = _unpacked(bare)
        if inner is not None:
            return list(chain.from_iterable(map(visible, inner.rstrip("\n").split("\n"))))
    text = _ESCAPE.sub("", text)
    parts = [_without_marks(part) for part in text.rstrip("\r\n").split("\r")]
    return _seen([part for part in parts if part.strip()]) or [""]


def _decoded(raw: bytes) -> str:
    """Decode bytes: zero bytes are dropped, which turns UTF-16 into ASCII; anything else that is not UTF-8 is read as Latin-1."""
    raw = raw.replace(b"\0", b"")
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raw = raw[2:]
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _unpacked(text: str) -> Optional[str]:
    """Return the line that a collector put into JSON."""
    if text[-1:] != "}" or len(text) > _LONGEST_JSON or not any('"%s"' % name in text for name in _WRAPPED):
        return None
    try:
        decoded = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return next((decoded[name] for name in _WRAPPED if isinstance(decoded.get(name), str)), None)


def _without_marks(text: str) -> str:
    if "<" in text:
        text = _TAG.sub("", text)
    if "&" in text and _ENTITY.search(text):
        import html

        text = html.unescape(text)
    if not text.isascii():
        text = _CONTROL.sub("", text).translate(_TYPED)
        text = _WIDE.sub(_narrow, text)
    else:
        text = _CONTROL.sub("", text)
    return _without_ticks(text.rstrip())


def _narrow(match: "re.Match[str]") -> str:
    after = match.group(2)
    return _NARROW[match.group(1)] + (" " if after and not after.isspace() else "") + after


def _without_ticks(text: str) -> str:
    """Take off a fence, or the ticks around a whole line."""
    bare = text.strip()
    if bare[:1] not in ("`", "~"):
        return text
    if _FENCE.match(bare):
        return ""
    ticks = len(bare) - len(bare.lstrip("`"))
    return text.replace(bare, bare[ticks:-ticks]) if 0 < ticks < 3 and len(bare) > 2 * ticks and bare.endswith("`" * ticks) else text


def _seen(parts: List[str]) -> List[str]:
    """Drop the earlier states of a progress bar; a part that does not resemble its neighbour is not a state."""
    if len(parts) <= _SHOWN:
        return parts
    kinds = [_STATE.sub("", part)[:12] for part in parts]
    return [part for part, kind, after in zip(parts, kinds, kinds[1:]) if kind != after][-_PARTS:] + parts[-1:]
