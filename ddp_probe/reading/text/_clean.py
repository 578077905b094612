"""Decodes a log's bytes in any encoding and removes terminal escapes, progress bars and markup."""

import html
import re
from typing import List

_PLAIN = re.compile(rb"[\t\n\x20-\x25\x27-\x3b\x3d-\x7e]*\Z")  # No &, < or escape, as in most lines.
_ODD = re.compile(rb"[^\t\n\x20-\x7e]|<[/a-zA-Z]|&[#a-z]|\[\d{1,3}(?:;\d{1,3})*m")
_LEFT_OVER = re.compile(rb"\[\d{1,3}(?:;\d{1,3})*m")
_ESCAPE = re.compile(
    r"(?:\x1b|\^\[|\\x1b|\\u001b|\\033)(?:\[[0-?]{0,40}[ -/]{0,40}[@-~]|\][^\x07\x1b]{0,400}(?:\x07|\x1b\\)|[()][AB012])"
    r"|\x1b[@-Z\\-_]|\x9b[0-?]{0,40}[ -/]{0,40}[@-~]"
    r"|\[\d{1,3}(?:;\d{1,3})*m"  # A colour code that lost its escape character when the log was copied.
)
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u2028\u2029\ufeff]")
_TAGS = "span|div|p|br|pre|code|font|b|i|u|a|td|tr|th|table|tbody|html|body|head|li|ul|strong|em|details|summary"
_TAG = re.compile(r"</?(?:%s)(?:\s[^<>]*)?/?>" % _TAGS, re.I)
_ENTITY = re.compile(r"&(?:lt|gt|quot|amp|nbsp|#39|#x27);")
_STATE = re.compile(r"[\W\d_]+")
_PARTS = 100
_SHOWN = 3  # For a line with many carriage returns: the last states of a progress bar, and text printed over it.


def clean(raw: bytes) -> List[str]:
    """Return the visible lines: one, unless carriage returns split it."""
    if _PLAIN.match(raw) and not _LEFT_OVER.search(raw):
        return [raw.decode("ascii").rstrip()]
    if not _ODD.search(raw):
        return [raw.decode("ascii").rstrip()]
    text = _ESCAPE.sub("", _decoded(raw))
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


def _without_marks(text: str) -> str:
    if "<" in text:
        text = _TAG.sub("", text)
    if "&" in text and _ENTITY.search(text):
        text = html.unescape(text)
    return _CONTROL.sub("", text).rstrip()


def _seen(parts: List[str]) -> List[str]:
    """Drop the earlier states of a progress bar; a part that does not resemble its neighbour is not a state."""
    if len(parts) <= _SHOWN:
        return parts
    kinds = [_STATE.sub("", part)[:12] for part in parts]
    return [part for part, kind, after in zip(parts, kinds, kinds[1:]) if kind != after][-_PARTS:] + parts[-1:]
