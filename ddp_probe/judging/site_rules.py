"""A site's own rules: where they are, which files are refused, and what they add to the findings of ours.

They are in the folder of DDP_PROBE_RULES, and in packages that name one by an entry point in the group
`ddp_probe.rules`. The reader alone loads them, and only for a run in which something failed.
"""

import os
import sys
from functools import lru_cache
from importlib.machinery import PathFinder
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ddp_probe.judging.site_rule_file import ENDING, RefusedFile, SiteRule, read
from ddp_probe.reading.model import Run
from ddp_probe.shared import settings
from ddp_probe.shared.entry_points import entry_points
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted

_GROUP = "ddp_probe.rules"
_MOST = 200  # Files of all folders.
_NOTED = 3  # Refusals that a page names.


class SiteRules(NamedTuple):
    """The rules of a site, and the files that are refused."""

    rules: Tuple[SiteRule, ...] = ()
    refused: Tuple[RefusedFile, ...] = ()


class _SeenFile(NamedTuple):
    """A file, and what changes when it is written; without a size it cannot be read."""

    path: str
    size: int = -1
    changed: int = 0
    error: str = ""


def loaded() -> SiteRules:
    """Return the rules of this site; a file is read again when it has changed."""
    return _load(state())


def named(slug: str) -> Optional[SiteRule]:
    """Return the rule with this name."""
    return next((rule for rule in loaded().rules if rule.RULE.slug == slug), None)


def of(paths: Sequence[str]) -> SiteRules:
    """Return the rules of these folders and files."""
    return _load(_seen(paths))


def chinese() -> Dict[str, str]:
    """Return the Chinese texts of all rules, by the English ones."""
    texts: Dict[str, str] = {}
    for rule in loaded().rules:
        texts.update(rule.chinese)
    return texts


def note_refused(run: Run, refused: Sequence[RefusedFile]) -> None:
    """Say in the inventory which files of the site are refused."""
    template = "Not a rule of the site: {place}: {why}"
    notes = [say(template, place=quoted(file.place), why=file.why) for file in refused[:_NOTED]]
    if len(refused) > _NOTED:
        notes.append(say("{count} more files of the site are not valid rules.", count=len(refused) - _NOTED))
    run.inventory.notes += [note for note in notes if note not in run.inventory.notes]


def state() -> Tuple[_SeenFile, ...]:
    """Return the files of this site with what changes when they are written."""
    return _seen(folders())


def folders() -> List[str]:
    """Return the folders of this site: that of the setting, and those of packages. Nothing is imported."""
    own = settings.get(settings.RULES)
    return list(dict.fromkeys([*([own] if own else []), *_of_packages(tuple(map(str, sys.path)))]))


@lru_cache(maxsize=1)
def _of_packages(_: Tuple[str, ...]) -> Tuple[str, ...]:
    """Return the folders that packages on sys.path name; to look for them takes a millisecond."""
    values = [value.strip() for _, _, value in entry_points([_GROUP])]
    return tuple(_folder_of(value) or value for value in values)


def _folder_of(package: str) -> str:
    """Return the folder of a package, or of one inside it; empty if it is not installed."""
    top, *inner = package.split(".")
    spec = PathFinder.find_spec(top)
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    return os.path.join(places[0], *inner) if places else ""


def _seen(places: Sequence[str]) -> Tuple[_SeenFile, ...]:
    seen: List[_SeenFile] = []
    for place in places:
        seen += _in_place(place)
    return tuple(seen)


def _in_place(place: str) -> Iterator[_SeenFile]:
    try:
        names = sorted(os.listdir(place)) if os.path.isdir(place) else [""]
        for name in names:
            path = os.path.join(place, name) if name else place
            if path.endswith(ENDING):
                status = os.stat(path)
                yield _SeenFile(path, status.st_size, status.st_mtime_ns)
            elif not name:
                yield _SeenFile(path, error="No such folder, and no file of TOML")
    except (OSError, ValueError) as exc:
        yield _SeenFile(place, error=str(getattr(exc, "strerror", "") or exc))


@lru_cache(maxsize=2)
def _load(seen: Tuple[_SeenFile, ...]) -> SiteRules:
    rules: Dict[str, SiteRule] = {}
    refused: List[RefusedFile] = []
    for file in seen[:_MOST]:
        if file.size < 0:
            why = say("It cannot be read: {why}.", why=quoted(file.error))
            refused.append(RefusedFile(file.path, 0, why))
            continue
        answer = read(file.path)
        if isinstance(answer, RefusedFile):
            refused.append(answer)
        elif answer.RULE.slug in rules:
            other = rules[answer.RULE.slug].file
            refused.append(RefusedFile(file.path, 0, say("{file} has this name.", file=quoted(other))))
        else:
            rules[answer.RULE.slug] = answer
    if len(seen) > _MOST:
        why = say("It is beyond the first {most} files.", most=_MOST)
        refused.append(RefusedFile(seen[_MOST].path, 0, why))
    return SiteRules(tuple(rules.values()), tuple(refused))
