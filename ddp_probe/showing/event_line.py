"""One event as one line for a person: time, rank, event, its important fields, and the line of the job."""

import math
import os
from typing import Any, Dict, Iterator, List

from ddp_probe.shared import schema, settings
from ddp_probe.showing import safe
from ddp_probe.showing.layout import Link, StyledLine
from ddp_probe.showing.paint import BAD, WARN
from ddp_probe.wording.values import time_of
from ddp_probe.wording.words import size

# Shown elsewhere in the line, or of no use to a person.
_ELSEWHERE = frozenset(("event", "schema", *schema.ENVELOPE)) - {"nth"}
_MARK = "..."
_SITE = 20  # Maximum columns for the job's line in a terminal.


def line(when: float, event: Dict[str, Any], width: int = 0) -> str:
    """Return the line; with a width, it is shortened in the middle so that the job's line stays visible."""
    event = safe.fields(event)
    head = "%s %-5s %s" % (_clock(when), _who(event), " ".join(filter(None, (str(event.get("event")), _phase(event)))))
    site = _site(event.get("site"), short=width > 0)
    details = " ".join(_details(event, short=width > 0))
    if not width:
        return safe.visible("  ".join(part for part in (head, details, site) if part))
    head, details, site = safe.visible(head), safe.visible(details[: 4 * width]), _last_of(safe.visible(site), _SITE)
    room = width - safe.width(head) - 2 - (safe.width(site) + 2 if site else 0)
    return cut("  ".join(part for part in (head, cut(details, room), site) if part), width)


def styled(when: float, event: Dict[str, Any], width: int) -> StyledLine:
    """Return the line for a terminal: failures and warnings stand out, and the job's line is a link."""
    text, site = line(when, event, width), safe.fields(event.get("site"))
    shown = safe.visible(_site(site, short=width > 0))
    shown = _last_of(shown, _SITE) if width else shown
    if not shown or not isinstance(site, dict) or not text.endswith(shown):
        return StyledLine(text, _style(event))
    return StyledLine(text, _style(event), (Link(len(text) - len(shown), len(text), str(site.get("file", ""))),))


def _style(event: Dict[str, Any]) -> str:
    if event.get("event") in ("probe.warning", "probe.fault"):
        return WARN
    return BAD if failed(event) else ""


def failed(event: Dict[str, Any]) -> bool:
    """Return whether an event reports a failure."""
    return event.get("phase") == "error" or any(event.get(name) for name in ("failure", "uncaught", "exit_code", "signal"))


def _last_of(text: str, width: int) -> str:
    """Return the end of a path, which distinguishes it from others."""
    if safe.width(text) <= width:
        return text
    while text and safe.width(text) > width - len(_MARK):
        text = text[1:]
    return _MARK + text


def cut_inside(text: str, width: int) -> str:
    """Return the text cut in its middle to this width: both ends of a command tell it from others. Without a width, it is whole."""
    if not width or safe.width(text) <= width:
        return text
    begin = cut(text, (width + len(_MARK)) // 2)
    return begin + _last_of(text, width - safe.width(begin) + len(_MARK))[len(_MARK) :]


def cut(text: str, width: int) -> str:
    """Return the text cut to this width; three dots mark the cut."""
    if safe.width(text) <= width:
        return text
    room = width - len(_MARK)
    if room <= 0:
        return ""
    kept = ""
    for char in text:
        if safe.width(kept) + safe.width(char) > room:
            break
        kept += char
    return kept.rstrip() + _MARK


def _clock(when: float) -> str:
    """Return the time of day, with milliseconds."""
    thousandths = ".%03d" % (int(when * 1000) % 1000) if math.isfinite(when) else ""
    return time_of(when, settings.get(settings.TZ), "%H:%M:%S" + thousandths, is_short=True) or "--:--:--.---"


def _who(event: Dict[str, Any]) -> str:
    if str(event.get("event")).startswith("launcher.") or event.get("rank") is None:
        return "L" if "ts" in event else "job"  # The job's line, which has no rank in it.
    return "r%s" % event["rank"]


def _phase(event: Dict[str, Any]) -> str:
    phase = str(event.get("phase", ""))
    return "" if phase == "point" else phase


def _site(site: Any, *, short: bool) -> str:
    if not isinstance(site, dict):
        return ""
    file = str(site.get("file", ""))
    return "%s:%s" % (os.path.basename(file) if short else file, site.get("line", 0))


def _details(event: Dict[str, Any], *, short: bool) -> Iterator[str]:
    failure = event.get("failure")
    if isinstance(failure, dict):
        yield _failure(failure, short=short)
    if isinstance(event.get("seconds"), (int, float)):
        yield "%.3f s" % event["seconds"]
    kind = schema.EVENTS.get(str(event.get("event")))
    matters = kind.shown.fields if short and kind is not None else None
    for name in event if matters is None else matters:
        if name in event and name not in _ELSEWHERE:
            yield _detail(name, event[name], short=short)


def _detail(name: str, value: Any, *, short: bool) -> str:
    if name == "placement" and isinstance(value, dict):
        return _placement(value, short=short)
    if short and name == "devices" and isinstance(value, list):
        return ", ".join(_memory(card) for card in value if isinstance(card, dict)) or "no device"
    if short and name == "cards" and isinstance(value, list):
        return ", ".join(_load(card) for card in value if isinstance(card, dict))
    if short and name == "targets" and isinstance(value, list):
        called = [target for target in value if isinstance(target, dict) and target.get("calls")]
        return "%d targets, of which the job has called %d" % (len(value), len(called))
    if short and name == "system" and isinstance(value, dict):
        return "rss %s" % _size(value.get("rss"))
    if short and name == "file" and isinstance(value, dict):
        return "%s%s" % (value.get("path", ""), " (incomplete)" if value.get("complete") is False else "")
    if short and name in ("wrapper", "model") and isinstance(value, str):
        return value.rpartition(".")[2]
    return "%s=%s" % (name, _value(value))


def _failure(failure: Dict[str, Any], *, short: bool) -> str:
    kind, message = str(failure.get("type", "")), " ".join(str(failure.get("message", "")).split())
    at = _site(failure.get("raised_at"), short=short)
    return "%s: %s%s" % (kind.rpartition(".")[2] if short else kind, message, " (raised at %s)" % at if at and not short else "")


def _placement(placement: Dict[str, Any], *, short: bool) -> str:
    devices = placement.get("devices")
    where = ", ".join(str(device) for device in devices) if isinstance(devices, dict) else "?"
    text = "%s parameters on %s" % (placement.get("parameters", 0), where)
    return text if short else "placement=[%s, digest %s]" % (text, placement.get("digest", "?"))


def _memory(device: Dict[str, Any]) -> str:
    text = "%s %s" % (device.get("device", "?"), _size(device.get("allocated")))
    return text if device.get("allocated_peak") is None else "%s, peak %s" % (text, _size(device["allocated_peak"]))


def _load(card: Dict[str, Any]) -> str:
    text = "%s: %s %%" % (card.get("index", "?"), card.get("utilisation", "?"))
    slow = card.get("throttled")
    return text + (" slowed down (%s)" % " ".join(map(str, slow)) if isinstance(slow, list) and slow else "")


def _size(count: Any) -> str:
    return str(size(count if isinstance(count, (int, float)) else 0))


def _value(value: Any, depth: int = 0) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, dict):
        return "{%s}" % (", ".join(_pairs(value, depth)) if depth < 4 else _MARK)
    if isinstance(value, list):
        return "[%s]" % (", ".join(_value(item, depth + 1) for item in value) if depth < 4 else _MARK)
    return str(value)


def _pairs(value: Dict[str, Any], depth: int) -> List[str]:
    return ["%s: %s" % (name, _value(item, depth + 1)) for name, item in value.items()]
