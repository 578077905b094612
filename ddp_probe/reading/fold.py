"""Writes the fold of a run: what the reader keeps of the processes of this host. `report` reads the folds of all hosts as one run.

A fold stands for a folder: FOLD/rank00003.node1.77.jsonl is a log that was folded, and the files beside that log are read by such a path.
"""

import os
import shlex
from itertools import chain
from typing import BinaryIO, Dict, Iterator, Optional, Sequence

from ddp_probe.reading import find, flight_recorder, fold_file, host_fold, process_files, rank_stacks, whole_ledger
from ddp_probe.reading.fold_file import FoldMember
from ddp_probe.reading.inventory import Inventory
from ddp_probe.reading.load_run import without_collector
from ddp_probe.reading.process_files import Meter, Progress
from ddp_probe.reading.shared_parts import SharedParts
from ddp_probe.shared.errors import UnusableError
from ddp_probe.shared.regular_files import open_bytes
from ddp_probe.wording.text import say

_MODELS = "models"
_LAST_NUMBER = 8  # Bytes of the last field of the last record: its upper bytes are zeros, and belong to it.


def write(paths: Sequence[str], target: BinaryIO, progress: Optional[Progress] = None, cores: int = 0) -> int:
    """Fold the run at these paths, the newest run if there are none; return the number of its processes."""
    sources = find.sources(paths)
    if sources.texts or sources.folds:
        _refuse((sources.texts or sources.folds)[0], is_text=bool(sources.texts))
    with without_collector():
        inventory, meter = Inventory(), Meter(sources.events, progress)
        inventory.unreadable.update(sources.unreadable)
        processes = process_files.read(sources.events, inventory, SharedParts(), meter, cores)
        folders = sources.folders or list(dict.fromkeys(map(os.path.dirname, sources.events)))
        places = _Places(folders)
        folded = host_fold.fold(processes, inventory, folders, sources.launch, places.of)
    held = places.held([process.file for process in processes], [process.ledger_file for process in processes])
    members = chain.from_iterable(_contents(name, path) for name, path in held)
    fold_file.write(target, host_fold.encode(folded), members)
    return len(processes)


def _refuse(path: str, *, is_text: bool) -> None:
    raise UnusableError(
        what=say("{path} cannot be folded.", path=path),
        why="It was not written by the probe." if is_text else "It is a fold already.",
        what_to_do=say(
            "Name a run's folder, or read the file as it is: python -m ddp_probe report {path}",
            path=shlex.quote(path),
        ),
    )


class _Places:
    """The names that files have in a fold: those in the run's folder, with a number before it if there are several folders."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = list(folders)
        self._prefixes: Dict[str, str] = {folder: "%d/" % number if number else "" for number, folder in enumerate(folders)}

    def of(self, path: str) -> str:
        """Return the name of a file."""
        folder, name = os.path.split(path)
        if not path:
            return ""
        if folder not in self._prefixes:
            self._prefixes[folder] = "%d/" % len(self._prefixes) if self._prefixes else ""
        return self._prefixes[folder] + name

    def held(self, logs: Sequence[str], ledgers: Sequence[str]) -> Iterator[Sequence[str]]:
        """Yield the files that a rule may look into, each with its name in the fold."""
        for path in (*(rank_stacks.dump_of(log) for log in logs), *filter(None, ledgers)):
            yield self.of(path), path
        for folder in self._folders:
            models = os.path.join(folder, _MODELS)
            names = sorted(os.listdir(models)) if os.path.isdir(models) else []
            for name in names:
                yield "%s%s/%s" % (self._prefixes[folder], _MODELS, name), os.path.join(models, name)
        for dump in flight_recorder.find(self._folders).values():
            yield self.of(dump), dump


def _contents(name: str, path: str) -> Iterator[FoldMember]:
    """Yield what a fold holds of a file; a ledger without what its process is writing, and without the end of its ring if that is empty."""
    try:
        if not os.path.isfile(path):
            return
        if path.endswith(".ledger"):
            data = whole_ledger.settled(path).rstrip(b"\0") + bytes(_LAST_NUMBER)
        else:
            with open_bytes(path) as file:
                data = file.read(min(os.fstat(file.fileno()).st_size, fold_file.LARGEST))  # read() makes room for all that it is asked for.
        yield FoldMember(name, data, os.stat(path).st_mtime)
    except OSError:
        return
