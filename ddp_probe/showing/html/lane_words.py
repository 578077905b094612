"""What the lanes say in words: on their bars, when one points at a bar, and in the table."""

import os
from typing import Dict, List, Optional, Sequence

from ddp_probe.shared.schema import Site
from ddp_probe.showing.html.axis import TimeScale, seconds
from ddp_probe.showing.html.bundling import PlacedSpan
from ddp_probe.showing.html.words import WORDS
from ddp_probe.showing.timeline import Span


def label(one: PlacedSpan) -> str:
    """Return what is written on a bar; if a finding points at it, with the line of the job."""
    span = one.span
    return "%s  %s" % (name(one), _short(span.site)) if span.guilty and span.site is not None else name(one)


def name(one: PlacedSpan) -> str:
    """Return the name of a bar."""
    return one.span.name if one.size == 1 else WORDS["bar_many"] % (one.size, WORDS["kind_" + one.span.kind])


def title(one: PlacedSpan, scale: TimeScale) -> str:
    """Return all that is known of a bar."""
    span = one.span
    how = WORDS["bar_open"] if not span.ended else WORDS["bar_failed"] if span.failed else ""
    parts = [name(one), WORDS["bar_time"] % (seconds(span.end - span.begin), seconds(span.begin - scale.begin)), how, span.detail]
    parts += ["%s:%d" % (span.site.file, span.site.line)] if span.site is not None and span.site.file else []
    return "; ".join(text for text in parts if text)


def last(span: Span, scale: TimeScale) -> str:
    """Return what a process did last."""
    how = WORDS["last_open"] % span.name if not span.ended else WORDS["last_failed"] % span.name if span.failed else span.name
    place = WORDS["last_at"] % _short(span.site) if span.site is not None and span.site.file else ""
    return how + place + WORDS["last_from"] % seconds(span.begin - scale.begin)


def _short(site: Optional[Site]) -> str:
    return "%s:%d" % (os.path.basename(site.file), site.line) if site is not None else ""


def spent(spans: Sequence[Span]) -> str:
    """Return how often and how long a process was in each kind."""
    times: Dict[str, List[float]] = {}
    for span in spans:
        times.setdefault(span.kind, []).append(span.end - span.begin)
    return "; ".join(_spent(WORDS["kind_" + kind], those) for kind, those in times.items())


def _spent(kind: str, times: List[float]) -> str:
    if len(times) == 1:
        return WORDS["spent_once"] % (kind, seconds(times[0]))
    return WORDS["spent_often"] % (kind, len(times), seconds(sum(times)))
