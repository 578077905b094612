"""Prints what is said of checkpoints: the verdict first, then what is wrong, what to do, and what the file holds."""

from typing import Dict, Iterator, List, Sequence

from ddp_probe.checkpoints.judged import BROKEN, UNKNOWN, WHOLE, Comparison, Damage, Judged
from ddp_probe.showing import paint, safe
from ddp_probe.showing.language import ENGLISH, Language
from ddp_probe.showing.layout import StyledLine, wrap
from ddp_probe.wording.words import size

_STYLES = {WHOLE: paint.GOOD, BROKEN: paint.BAD, UNKNOWN: paint.WARN}
_WORDS = {WHOLE: "whole", BROKEN: "broken", UNKNOWN: "not judged"}
_FAULTS, _LISTED = 8, 12
_LABEL = 9


def lines(
    checkpoints: Sequence[Judged],
    width: int,
    *,
    names: bool = False,
    say: Language = ENGLISH,
) -> Iterator[StyledLine]:
    """Yield the page."""
    if len(checkpoints) > 1:
        yield from _summary(checkpoints, say)
    for judged in checkpoints:
        yield from _checkpoint(judged, width, say, names=names)


def _summary(checkpoints: Sequence[Judged], say: Language) -> Iterator[StyledLine]:
    verdicts = [judged.verdict for judged in checkpoints]
    counts = {verdict: verdicts.count(verdict) for verdict in (BROKEN, UNKNOWN, WHOLE)}
    there = [verdict for verdict, count in counts.items() if count]
    parts = ["%d %s" % (counts[verdict], say(_WORDS[verdict])) for verdict in there]
    yield StyledLine(say("%d checkpoints: %s") % (len(checkpoints), say(", ").join(parts)), _STYLES[there[0]])
    yield StyledLine("")


def _checkpoint(judged: Judged, width: int, say: Language, *, names: bool) -> Iterator[StyledLine]:
    word = "being written" if judged.verdict == UNKNOWN and judged.writers else _WORDS[judged.verdict]
    yield StyledLine(safe.line(judged.path, 1000) + say(": ") + say(word), _STYLES[judged.verdict])
    for fault in judged.faults[:_FAULTS]:
        yield from _paragraph(_fault(fault, say), width)
    if len(judged.faults) > _FAULTS:
        yield StyledLine("  " + say("and %d more; --json has them") % (len(judged.faults) - _FAULTS), paint.QUIET)
    if judged.because and judged.because not in [fault.text for fault in judged.faults]:
        yield from _paragraph(say.text(judged.because), width)
    if any(fault.unnoticed for fault in judged.faults):
        yield from _paragraph(say("torch.load does not look for this: it may return wrong values without an error."), width, paint.WARN)
    yield from _rows(judged, width, say)
    if judged.against is not None:
        yield from _against(judged.against, width, say)
    if names:
        yield from _names(judged)
    yield StyledLine("")


def _paragraph(text: str, width: int, style: str = "") -> Iterator[StyledLine]:
    for line in wrap(text, width, "  ", "  "):
        yield StyledLine(line, style)


def _fault(fault: Damage, say: Language) -> str:
    at = [fault.record] if fault.record else []
    at += [say("at byte %d") % fault.offset] if fault.offset is not None else []
    text = say.text(fault.text)
    return "%s (%s)" % (text, " ".join(at)) if at else text


def _rows(judged: Judged, width: int, say: Language) -> Iterator[StyledLine]:
    rows = {
        say("do"): say.text(judged.what_to_do),
        say("file"): _file(judged, say),
        say("holds"): _holds(judged, say),
        say("keys"): _listed(judged.keys, _LISTED, say),
        say("from"): _from(judged),
        say("devices"): _devices(judged.devices, say),
        say("prefix"): _prefixes(judged.prefixes, say),
        say("load"): _load(judged, say),
        say("classes"): "" if judged.weights_only else _listed(judged.classes, _LISTED, say),
        say("note"): " ".join(say.text(remark) for remark in judged.remarks),
    }
    for label, text in rows.items():
        if text:
            yield from _row(label, text, width)


def _row(label: str, text: str, width: int, style: str = "") -> Iterator[StyledLine]:
    for line in wrap(text, width, "  " + label + " " * (_LABEL - safe.width(label)), " " * (_LABEL + 2)):
        yield StyledLine(line, style)


def _against(comparison: Comparison, width: int, say: Language) -> Iterator[StyledLine]:
    """Yield what differs, and the lines of Python that make it fit."""
    other = say("the parameters of the model in %s") % comparison.other if comparison.is_model else comparison.other
    words = say("fits %s: %d names are the same" if comparison.fits else "does not fit %s: %d names are the same")
    yield from _row(say("against"), words % (other, comparison.same), width, "" if comparison.fits else paint.BAD)
    if comparison.missing:
        missing = _listed(comparison.missing, _LISTED, say)
        yield from _row("", say("%d missing: %s") % (len(comparison.missing), missing), width)
    if comparison.unexpected and (comparison.missing or not comparison.is_model):
        unexpected = _listed(comparison.unexpected, _LISTED, say)
        yield from _row("", say("%d only here: %s") % (len(comparison.unexpected), unexpected), width)
    for name, here, there in comparison.shapes[:_LISTED]:
        yield from _row("", say("%s has %s, and %s there") % (name, list(here), list(there)), width)
    if len(comparison.shapes) > _LISTED:
        yield from _row("", say("and %d more in another shape") % (len(comparison.shapes) - _LISTED), width)
    if comparison.buffers and not comparison.missing:
        yield from _row("", say("%d names are not parameters; buffers of the model are not on its list") % comparison.buffers, width)
    if comparison.renaming:
        renamed = say("One renaming explains all %d. These lines load the file under the other names:") % comparison.explains
        yield from _row(say("change"), renamed, width)
        for line in ("state = " + comparison.load, "state = " + comparison.renaming, "model.load_state_dict(state)"):
            yield StyledLine("    " + safe.line(line), paint.ADDED)  # One line each, so that they can be copied.


def _file(judged: Judged, say: Language) -> str:
    parts = [say.text(judged.kind)] if judged.kind else []
    parts += [str(size(judged.size))] if judged.size is not None else []
    parts += [say("changed %s ago") % _age(judged.age)] if judged.age is not None else []
    return say(", ").join(parts)


def _age(seconds: float) -> str:
    for unit, factor in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * factor:
            return "%d %s" % (seconds // factor, unit)
    return "%.0f s" % max(seconds, 0)


def _holds(judged: Judged, say: Language) -> str:
    if not judged.tensors:
        return say("no tensors") if judged.tensors == 0 else ""
    largest_first = sorted(judged.dtypes.items(), key=lambda item: -item[1])
    types = ", ".join("%s %s" % (name, size(held)) for name, held in largest_first)
    form = say("%d tensor, %s elements: %s" if judged.tensors == 1 else "%d tensors, %s elements: %s")
    return form % (judged.tensors, format(judged.elements or 0, ","), types)


def _from(judged: Judged) -> str:
    parts = ["%s %s" % item for item in judged.versions.items()] + ["%s %d" % item for item in judged.progress.items()]
    return ", ".join(parts)


def _devices(devices: Dict[str, int], say: Language) -> str:
    cards = [name for name in devices if name not in ("cpu", "meta", "")]
    if not cards:
        return ", ".join(sorted(name for name in devices if name))
    form = "%s; a host without it needs map_location" if len(cards) == 1 else "%s; a host without them needs map_location"
    return say(form) % ", ".join(sorted(name for name in devices if name))


def _prefixes(prefixes: Dict[str, int], say: Language) -> str:
    if not prefixes:
        return ""
    parts = []
    for prefix, count in prefixes.items():
        parts.append(say("%d names begin with %s") % (count, prefix) if prefix else say("%d with none of a wrapper") % count)
    return (say("mixed: ") if len(prefixes) > 1 else "") + say(", ").join(parts)


def _load(judged: Judged, say: Language) -> str:
    weights_only = judged.weights_only
    if weights_only is None or judged.verdict != WHOLE:
        return ""
    if weights_only.accepted:
        return say("torch.load(weights_only=True) accepts it")
    refused = say(": ") + _listed(weights_only.refused, _LISTED, say) if weights_only.refused else ""
    return say("torch.load(weights_only=True) refuses it, %s") % say.text(weights_only.because) + refused


def _listed(items: List[str], limit: int, say: Language) -> str:
    more = len(items) - limit
    return ", ".join(safe.line(item, 100) for item in items[:limit]) + (say(" and %d more") % more if more > 0 else "")


def _names(judged: Judged) -> Iterator[StyledLine]:
    for tensor in judged.names:
        device = "  " + tensor.device if tensor.device not in ("", "cpu") else ""
        yield StyledLine("    %s  %s %s%s" % (safe.line(tensor.name, 500), tensor.dtype, list(tensor.shape), device))
