"""The listing of a bundle: what it holds, what was masked, what was left out."""

import os
from typing import Dict, Iterator, List, Sequence

from ddp_probe.reading.bundled import HeldFile, Manifest
from ddp_probe.showing import safe
from ddp_probe.showing.language import ENGLISH, Language
from ddp_probe.showing.layout import StyledLine, item, sentence
from ddp_probe.showing.paint import STRONG, WARN
from ddp_probe.wording.text import Text
from ddp_probe.wording.text import say as text_of
from ddp_probe.wording.words import counted, listed, size

_NAMED = 3  # How many files are named if there are more than two more.
_SHOWN = 12  # Rows of one part of the listing; --json has all of them.


def lines(
    manifest: Manifest,
    kinds: Sequence["tuple[str, str, str]"],
    width: int,
    say: Language = ENGLISH,
) -> Iterator[StyledLine]:
    """Yield the listing; each kind is its name, and what one and several files of it are called."""
    run = manifest.run or say("without a name")
    yield from sentence(say("run %s: what the bundle holds") % run, width, style=STRONG)
    for kind, single, many in kinds:
        files = [file for file in manifest.files if file.kind == kind]
        if files:
            yield from _kind(files, single if len(files) == 1 else many, width, say)
    yield StyledLine("")
    yield from _masked(manifest, width, say)
    yield from _left_out(manifest, width, say)


def _kind(files: List[HeldFile], name: str, width: int, say: Language) -> Iterator[StyledLine]:
    bytes_of_all = sum(file.bytes for file in files)
    text = text_of(
        "{count} {kind}, {size}: {names}",
        count=len(files),
        kind=text_of(name),
        size=size(bytes_of_all),
        names=_some([file.path for file in files]),
    )
    yield from item(say.text(text), width)


def _masked(manifest: Manifest, width: int, say: Language) -> Iterator[StyledLine]:
    yield StyledLine(say("what was masked"), STRONG)
    now, before = text_of("for this bundle"), text_of("by the probe, when it was written")
    for counts, when in ((manifest.masked, now), (manifest.already_masked, before)):
        if not counts:
            yield from item(say.text(text_of("nothing {when}", when=when)), width)
        for place, count in _most(counts):
            values = text_of("{values} in {place}, {when}", values=counted(count, "value"), place=place, when=when)
            yield from item(say.text(values), width)
        if len(counts) > _SHOWN:
            more = len(counts) - _SHOWN
            template = "more in {more} other places, {when}; --json lists them"
            yield from item(say.text(text_of(template, more=more, when=when)), width)
    yield from item(say("names of users, hosts and folders are not masked"), width)


def _left_out(manifest: Manifest, width: int, say: Language) -> Iterator[StyledLine]:
    cut = [file for file in manifest.files if file.bytes_left_out]
    if not (cut or manifest.left_out or manifest.unreadable):
        return
    yield StyledLine("")
    yield StyledLine(say("what is not in it"), WARN)
    for kind in dict.fromkeys(file.kind for file in cut):
        files = [file for file in cut if file.kind == kind]
        template = "{size} from the middle of {names}"
        if kind == "source":
            template = "{size} of {names}: lines into which the report does not look"
        bytes_of_all = sum(file.bytes_left_out for file in files)
        text = text_of(template, size=size(bytes_of_all), names=_some([file.path for file in files]))
        yield from item(say.text(text), width)
    reasons: Dict[str, List[str]] = {}
    for path, why in (*manifest.left_out.items(), *manifest.unreadable.items()):
        reasons.setdefault(why, []).append(path)
    for why, paths in list(reasons.items())[:_SHOWN]:
        yield from item(say.text(text_of("{names}: {why}", names=_some(paths), why=say(why))), width)
    more = sum(map(len, list(reasons.values())[_SHOWN:]))
    if more:
        yield from item(say("%d more files; --json lists them") % more, width)


def _some(paths: List[str]) -> Text:
    names = [safe.line(os.path.basename(path), 80) for path in paths]
    return listed(names, len(names) if len(names) <= _NAMED + 2 else _NAMED)


def _most(counts: Dict[str, int]) -> List["tuple[str, int]"]:
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:_SHOWN]
