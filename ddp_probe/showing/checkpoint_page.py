"""Prints what is said of checkpoints: the verdict first, then what is wrong, what to do, and what the file holds."""

from typing import Dict, Iterator, List, Sequence

from ddp_probe.reading.checkpoints.judged import BROKEN, UNKNOWN, WHOLE, Comparison, Damage, Judged
from ddp_probe.showing import paint, safe
from ddp_probe.showing.layout import StyledLine, wrap

_STYLES = {WHOLE: paint.GOOD, BROKEN: paint.BAD, UNKNOWN: paint.WARN}
_WORDS = {WHOLE: "whole", BROKEN: "broken", UNKNOWN: "not judged"}
_FAULTS, _LISTED = 8, 12
_LABEL = 9


def lines(found: Sequence[Judged], width: int, *, names: bool = False) -> Iterator[StyledLine]:
    """Yield the page."""
    if len(found) > 1:
        yield from _summary(found)
    for judged in found:
        yield from _checkpoint(judged, width, names=names)


def _summary(found: Sequence[Judged]) -> Iterator[StyledLine]:
    counts = [
        "%d %s" % (count, _WORDS[each]) for each in (BROKEN, UNKNOWN, WHOLE) for count in [sum(judged.verdict == each for judged in found)] if count
    ]
    worst = next(each for each in (BROKEN, UNKNOWN, WHOLE) if any(judged.verdict == each for judged in found))
    yield StyledLine("%d checkpoints: %s" % (len(found), ", ".join(counts)), _STYLES[worst])
    yield StyledLine("")


def _checkpoint(judged: Judged, width: int, *, names: bool) -> Iterator[StyledLine]:
    word = "being written" if judged.verdict == UNKNOWN and judged.writers else _WORDS[judged.verdict]
    yield StyledLine("%s: %s" % (safe.line(judged.path, 1000), word), _STYLES[judged.verdict])
    for fault in judged.faults[:_FAULTS]:
        yield from _paragraph(_fault(fault), width)
    if len(judged.faults) > _FAULTS:
        yield StyledLine("  and %d more; --json has them" % (len(judged.faults) - _FAULTS), paint.QUIET)
    if judged.because and judged.because not in [fault.text for fault in judged.faults]:
        yield from _paragraph(judged.because, width)
    if any(fault.unnoticed for fault in judged.faults):
        yield from _paragraph("torch.load does not look for this: it may return wrong values without an error.", width, paint.WARN)
    yield from _rows(judged, width)
    if judged.against is not None:
        yield from _against(judged.against, width)
    if names:
        yield from _names(judged)
    yield StyledLine("")


def _paragraph(text: str, width: int, style: str = "") -> Iterator[StyledLine]:
    for line in wrap(text, width, "  ", "  "):
        yield StyledLine(line, style)


def _fault(fault: Damage) -> str:
    at = [fault.record] if fault.record else []
    at += ["at byte %d" % fault.offset] if fault.offset is not None else []
    return "%s (%s)" % (fault.text, " ".join(at)) if at else fault.text


def _rows(judged: Judged, width: int) -> Iterator[StyledLine]:
    rows = {
        "do": judged.what_to_do,
        "file": _file(judged),
        "holds": _holds(judged),
        "keys": _listed(judged.keys, _LISTED),
        "from": _from(judged),
        "devices": _devices(judged.devices),
        "prefix": _prefixes(judged.prefixes),
        "load": _load(judged),
        "classes": "" if judged.weights_only else _listed(judged.classes, _LISTED),
        "note": " ".join(judged.remarks),
    }
    for label, text in rows.items():
        if text:
            yield from _row(label, text, width)


def _row(label: str, text: str, width: int, style: str = "") -> Iterator[StyledLine]:
    for line in wrap(text, width, ("  %-" + str(_LABEL) + "s") % label, " " * (_LABEL + 2)):
        yield StyledLine(line, style)


def _against(comparison: Comparison, width: int) -> Iterator[StyledLine]:
    """Yield what differs, and the lines of Python that make it fit."""
    kind = "the parameters of the model in %s" if comparison.is_model else "%s"
    words = "fits" if comparison.fits else "does not fit"
    yield from _row(
        "against", "%s %s: %d names are the same" % (words, kind % comparison.other, comparison.same), width, "" if comparison.fits else paint.BAD
    )
    parts = [("missing", comparison.missing), ("only here", comparison.unexpected if not comparison.is_model or comparison.missing else [])]
    for label, items in parts:
        if items:
            yield from _row("", "%d %s: %s" % (len(items), label, _listed(items, _LISTED)), width)
    for name, here, there in comparison.shapes[:_LISTED]:
        yield from _row("", "%s has %s, and %s there" % (name, list(here), list(there)), width)
    if len(comparison.shapes) > _LISTED:
        yield from _row("", "and %d more in another shape" % (len(comparison.shapes) - _LISTED), width)
    if comparison.buffers and not comparison.missing:
        yield from _row("", "%d names are not parameters; buffers of the model are not on its list" % comparison.buffers, width)
    if comparison.renaming:
        yield from _row("change", "One renaming explains all %d. These lines load the file under the other names:" % comparison.explains, width)
        for line in ("state = " + comparison.load, "state = " + comparison.renaming, "model.load_state_dict(state)"):
            yield StyledLine("    " + safe.line(line), paint.ADDED)  # One line each, so that they can be copied.


def _file(judged: Judged) -> str:
    parts = [judged.kind] if judged.kind else []
    parts += [amount(judged.size)] if judged.size is not None else []
    parts += ["changed %s ago" % _age(judged.age)] if judged.age is not None else []
    return ", ".join(parts)


def amount(size: int) -> str:
    """Return a number of bytes as a person reads it."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return "%.1f %s" % (size / factor, unit)
    return "%d bytes" % size


def _age(seconds: float) -> str:
    for unit, factor in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * factor:
            return "%d %s" % (seconds // factor, unit)
    return "%.0f s" % max(seconds, 0)


def _holds(judged: Judged) -> str:
    if not judged.tensors:
        return "no tensors" if judged.tensors == 0 else ""
    count = "1 tensor" if judged.tensors == 1 else "%d tensors" % judged.tensors
    types = ", ".join("%s %s" % (name, amount(size)) for name, size in sorted(judged.dtypes.items(), key=lambda item: -item[1]))
    return "%s, %s: %s" % (count, "%s elements" % format(judged.elements or 0, ","), types)


def _from(judged: Judged) -> str:
    parts = ["%s %s" % item for item in judged.versions.items()] + ["%s %d" % item for item in judged.progress.items()]
    return ", ".join(parts)


def _devices(devices: Dict[str, int]) -> str:
    cards = [name for name in devices if name not in ("cpu", "meta", "")]
    if not cards:
        return ", ".join(sorted(name for name in devices if name))
    return "%s; a host without %s needs map_location" % (", ".join(sorted(name for name in devices if name)), "it" if len(cards) == 1 else "them")


def _prefixes(prefixes: Dict[str, int]) -> str:
    if not prefixes:
        return ""
    parts = ["%d names begin with %s" % (count, prefix) if prefix else "%d with none of a wrapper" % count for prefix, count in prefixes.items()]
    return ("mixed: " if len(prefixes) > 1 else "") + ", ".join(parts)


def _load(judged: Judged) -> str:
    known = judged.weights_only
    if known is None or judged.verdict != WHOLE:
        return ""
    if known.accepted:
        return "torch.load(weights_only=True) accepts it"
    refused = ": " + _listed(known.refused, _LISTED) if known.refused else ""
    return "torch.load(weights_only=True) refuses it, %s%s" % (known.because, refused)


def _listed(items: List[str], limit: int) -> str:
    more = len(items) - limit
    return ", ".join(safe.line(item, 100) for item in items[:limit]) + (" and %d more" % more if more > 0 else "")


def _names(judged: Judged) -> Iterator[StyledLine]:
    for tensor in judged.names:
        device = "  " + tensor.device if tensor.device not in ("", "cpu") else ""
        yield StyledLine("    %s  %s %s%s" % (safe.line(tensor.name, 500), tensor.dtype, list(tensor.shape), device))
