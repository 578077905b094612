"""Which run: each host says which run it found, rank 0 names one, and each host looks for it; and which names from another host become files."""

import os
import re
from typing import Iterable, Iterator, List, NamedTuple, Optional

from ddp_probe.moving.bundle import contents
from ddp_probe.moving.gather.messages import RunOnHost
from ddp_probe.reading import find, flight_recorder, launches
from ddp_probe.shared.errors import ProbeError, UnusableError
from ddp_probe.wording.text import say

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,199}")
_FOLDERS = ("", "models")
_LONGEST_NAME = 100


def accepted(name: str) -> bool:
    """Return whether a file of a run may be kept under this name."""
    folder, _, plain = name.rpartition("/")
    if folder not in _FOLDERS or not _PLAIN.fullmatch(plain) or name.startswith("/"):
        return False
    return bool(contents.kind_of(name)) or (not folder and flight_recorder.is_dump(plain))


def name_of_host(host: str) -> str:
    """Return a host's name as the beginning of a file's name."""
    return re.sub(r"[^A-Za-z0-9_-]+", ".", host)[:_LONGEST_NAME].strip(".") or "host"


def is_run_name(name: str) -> bool:
    """Return whether a run's name is the plain name of a folder."""
    return bool(name) and "/" not in name and "\0" not in name and name not in (".", "..")


SUFFIX = ".gathered"
"""The end of the name of a folder that gather has filled."""

_MOST_RUNS = 64  # At most this many runs of a host are looked at, the newest first.
_MOST_RANKS, _MOST_KEYS = 4096, 64
_LARGEST, _LONGEST = 1 << 30, 1000


class LocalRun(NamedTuple):
    """The run of a host: a run and its folder, or why there is none."""

    run: Optional[RunOnHost]
    folder: str
    why: str


def here(named: str) -> LocalRun:
    """Return the run that a person has named, as this host has it, or else its newest run."""
    try:
        folder, launch = _folder(named)
    except ProbeError as exc:
        return LocalRun(None, "", ("%s %s" % (exc.what, exc.why))[:_LONGEST])
    return LocalRun(_described(folder, launch), folder, "")


def _folder(named: str) -> "tuple[str, int]":
    if not named:
        runs = _runs()
        if not runs:
            raise find.no_run(find.root())
        return runs[0], 0
    sources = find.sources([named])
    if not sources.folders:
        raise UnusableError(
            what=say("{path} is not the folder of a run.", path=named),
            why="gather takes the name or the folder of a run.",
            what_to_do="",
        )
    folder = named if os.path.isdir(named) else sources.folders[0]
    whole = os.path.isdir(folder) and os.path.realpath(folder) in map(os.path.realpath, sources.folders)
    return os.path.abspath(folder if whole else sources.folders[0]), sources.launch


def _runs() -> List[str]:
    return [os.path.abspath(folder) for folder in find.runs(find.root()) if not folder.endswith(SUFFIX)]


def _described(folder: str, launch: int) -> RunOnHost:
    part = launches.glance(folder)
    keys = [list(key) for key in sorted(part.keys)]
    return RunOnHost(
        os.path.basename(folder), sorted(part.ranks)[:_MOST_RANKS], keys[:_MOST_KEYS], min(max(part.world, 0), 1 << 30), part.start, part.end, launch
    )


def best(runs: Iterable[RunOnHost]) -> Optional[RunOnHost]:
    """Return the newest of these runs."""
    return max((run for run in runs if is_run_name(run.name)), key=lambda run: run.start, default=None)


def folder_of(wanted: RunOnHost, local_run: LocalRun) -> str:
    """Return this host's folder of the wanted run: by its name, or of the same launch; empty if there is none."""
    same_name = [local_run.folder] if local_run.run is not None and local_run.run.name == wanted.name else []
    if not same_name and is_run_name(wanted.name):
        same_name = [folder for folder in _runs() if os.path.basename(folder) == wanted.name]
    return next(iter(same_name), "") or next(_of_same_launch(wanted, local_run), "")


def _of_same_launch(wanted: RunOnHost, local_run: LocalRun) -> Iterator[str]:
    part = launches.Part("", frozenset(wanted.ranks), frozenset(map(tuple, wanted.keys)), wanted.world, wanted.start, wanted.end)
    for folder in [*filter(None, [local_run.folder]), *_runs()[:_MOST_RUNS]]:
        if launches.same(part, launches.glance(folder)):
            yield folder
