"""What goes into a bundle: the kinds of files that a run leaves, and the place of each in the archive."""

import fnmatch
import os
import re
from typing import Dict, Iterator, List, NamedTuple, Tuple

from ddp_probe.reading import find, flight_recorder
from ddp_probe.shared import ledger_schema

LOG, LEDGER, STACKS, MODEL, RECORDER, TEXT, SOURCE, OWN = "log", "ledger", "stacks", "model", "recorder", "text", "source", "bundle"


class Kind(NamedTuple):
    """One kind of file."""

    name: str
    one: str  # Its name in the listing.
    many: str
    patterns: Tuple[str, ...]  # Patterns of names in a run's folder.
    cut: bool  # Whole lines may be cut from its middle if it is too large.


KINDS = (
    Kind(LOG, "log", "logs", find.PATTERNS, True),
    Kind(LEDGER, "ledger, as text", "ledgers, as text", tuple("rank*" + suffix for suffix in ledger_schema.SUFFIXES), False),
    Kind(STACKS, "file of stacks", "files of stacks", ("rank*.stacks",), True),
    Kind(MODEL, "list of a model's parameters", "lists of models' parameters", ("models/*.json",), False),
    Kind(RECORDER, "dump of the Flight Recorder, as JSON", "dumps of the Flight Recorder, as JSON", (), False),
    Kind(TEXT, "plain log", "plain logs", (), True),
    Kind(SOURCE, "source file of the job", "source files of the job", (), False),
    Kind(OWN, "page of the bundle", "pages of the bundle", (), False),
)
BY_NAME = {kind.name: kind for kind in KINDS}


_EMPTY = ("ask/", "said/")  # Folders of empty files: requests for stacks, and warnings that were printed.


class BundledFile(NamedTuple):
    """One file of the run, and its place in the bundle."""

    kind: str
    file: str
    place: str


class BundleContents(NamedTuple):
    """What goes in, the paths to give to a reader, and what stays out."""

    parts: List[BundledFile]
    paths: List[str]
    unreadable: Dict[str, str]
    others: List[str]  # Files of the run's folders that are of no kind.


def of(sources: find.Sources) -> BundleContents:
    """Return what a bundle of these files holds."""
    contents = BundleContents([], [], {}, [])
    names: Dict[str, str] = {}
    for folder in map(os.path.abspath, sources.folders):
        names[folder] = _free("run/" + (os.path.basename(folder) or "run"), list(names.values()))
        contents.paths.append(names[folder])
        _folder(folder, names[folder], contents)
    for file in sources.events:
        if os.path.dirname(os.path.abspath(file)) not in names:
            contents.paths.append(_file(file, contents))
    for file in sources.texts:
        place = _free("text/" + os.path.basename(file), contents.paths)
        contents.paths.append(place)
        contents.parts.append(BundledFile(TEXT, file, place))
    inside = {os.path.realpath(folder): place for folder, place in names.items()}
    for path, why in sources.unreadable.items():
        parent = inside.get(os.path.realpath(os.path.dirname(path)), "elsewhere")
        contents.unreadable["%s/%s" % (parent, os.path.basename(path))] = why
    return contents


def _free(place: str, taken: List[str]) -> str:
    """Return an unused place: two hosts may have written folders of the same name."""
    number, free = 1, place
    while free in taken:
        number, free = number + 1, "%s.%d" % (place, number + 1)
    return free


def _folder(folder: str, place: str, contents: BundleContents) -> None:
    recorder = set(flight_recorder.find([folder]).values())
    for name in sorted(_names(folder)):
        path = os.path.join(folder, name)
        kind = RECORDER if path in recorder else kind_of(name)
        if kind:
            contents.parts.append(BundledFile(kind, path, "%s/%s" % (place, name)))
        elif not name.startswith(_EMPTY):
            contents.others.append(name)


def _names(folder: str) -> Iterator[str]:
    """Yield the files of a run's folder and of the folders in it."""
    for entry in os.scandir(folder):
        if not entry.is_dir(follow_symlinks=False):
            yield entry.name
            continue
        try:
            yield from (entry.name + "/" + inner.name for inner in os.scandir(entry.path) if not inner.is_dir(follow_symlinks=False))
        except OSError:  # Somebody else's folder.
            yield entry.name


def kind_of(name: str) -> str:
    """Return the kind of a file by its name in the run's folder; empty if it is of none."""
    if name.endswith(ledger_schema.TEXT_SUFFIX):
        return LEDGER
    return next((kind.name for kind in KINDS if any(fnmatch.fnmatchcase(name, pattern) for pattern in kind.patterns)), "")


def _file(file: str, contents: BundleContents) -> str:
    """Add a single log with the files beside it; return its place."""
    folder = _free("run/files", [os.path.dirname(part.place) for part in contents.parts if os.path.basename(part.place) == os.path.basename(file)])
    base = re.sub(r"\.jsonl$", "", os.path.basename(file))
    for name in sorted(os.listdir(os.path.dirname(file) or ".")):
        is_log = name == os.path.basename(file)
        if is_log or (name.startswith(base + ".") and kind_of(name) in (LEDGER, STACKS)):
            contents.parts.append(BundledFile(LOG if is_log else kind_of(name), os.path.join(os.path.dirname(file), name), "%s/%s" % (folder, name)))
    return "%s/%s" % (folder, os.path.basename(file))
