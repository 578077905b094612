"""Reads folds, which each host wrote from its files: together they are one run."""

import glob
import os
from typing import List, Sequence, Tuple

from ddp_probe.reading import fold_file, host_fold, process_files
from ddp_probe.reading.fold_file import InvalidFoldError
from ddp_probe.reading.host_fold import HostFold
from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.reading.process_files import Meter
from ddp_probe.reading.shared_parts import SharedParts
from ddp_probe.shared.errors import UnusableError
from ddp_probe.wording.text import say


def read_folds(paths: Sequence[str], run: Run, shared: SharedParts, meter: Meter) -> Tuple[List[LoggedProcess], int]:
    """Return the processes of all folds, in the order that their files would have in one folder, and the launch that was asked for.

    Each fold stands for a folder. One that cannot be read is noted, and the others are read.
    """
    unfolded: List[LoggedProcess] = []
    launch, bad = 0, 0
    run.read_at = 0.0
    for path in paths:
        try:
            folded, processes = _unfolded(path, shared)
        except UnusableError as exc:
            bad += 1
            if bad == len(paths):
                raise
            run.inventory.unreadable[path] = exc.why
            continue
        unfolded += processes
        run.inventory.add(folded.inventory, path + "/")
        run.read_at, launch = max(run.read_at, folded.made), max(launch, folded.launch)
        meter.add(process_files.size(path))
    run.folders += _sources(paths)
    run.inventory.files.sort(key=os.path.basename)
    return sorted(unfolded, key=lambda process: os.path.basename(process.file)), launch


def _sources(paths: Sequence[str]) -> List[str]:
    """Return the folder of the folds if all that it holds are read, else the folds."""
    folders = {os.path.dirname(path) for path in paths}
    if len(paths) < 2 or len(folders) > 1:
        return list(paths)
    folder = folders.pop()
    there = glob.glob(os.path.join(glob.escape(folder), "*" + fold_file.SUFFIX))
    return [folder or "."] if set(there) == set(paths) else list(paths)


def _unfolded(path: str, shared: SharedParts) -> Tuple[HostFold, List[LoggedProcess]]:
    try:
        folded = host_fold.decode(fold_file.read(path))
        return folded, host_fold.unfold(folded, shared, path + "/")
    except OSError as exc:
        raise UnusableError(
            what=say("{path} cannot be read.", path=path),
            why=exc.strerror or str(exc),
            what_to_do="Check its permissions.",
        ) from exc
    except InvalidFoldError as exc:
        raise _not_usable(path, exc.args[0]) from exc


def _not_usable(path: str, why: str) -> UnusableError:
    what = say("{path} is not a usable fold.", path=path)
    return UnusableError(what=what, why=why, what_to_do="Write it again on its host.")
