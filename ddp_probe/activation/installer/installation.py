"""Puts the activator in place: plans, writes, compiles, proves, and goes back to what was there if the proof fails."""

import contextlib
import errno
import os
import sys
from typing import Dict, List, NamedTuple, Optional, Tuple

from ddp_probe.activation.installer import activator_files, child, locations
from ddp_probe.shared.errors import ProbeError
from ddp_probe.wording.text import joined, say
from ddp_probe.wording.words import quoted

_CHANGED = say("It has been changed since install wrote it, and install does not touch what others wrote.")
_NOT_OURS = say("install did not write this file and does not touch it.")
_PTH_WORKS = say("'python -m ddp_probe install --via pth' works beside it.")
_STATUS_SAYS = say("'python -m ddp_probe status' says what this interpreter finds.")
_BY_ITS_USER = say("Run 'python -m ddp_probe uninstall' as the user who installed it. Until then: leave DDP_PROBE unset.")
_WINS = "{path} comes first on its path and wins."
_BESIDE = "it works beside another sitecustomize"


class Installation(NamedTuple):
    """What an installation consists of."""

    via: str
    because: str
    folder: str
    files: Dict[str, bytes]
    obsolete: List[str]
    home: str
    beside: str = ""  # The sitecustomize of somebody else, if there is one.

    @property
    def in_place(self) -> bool:
        """Tell whether every file is there already, compiled, and none of another way."""
        there = not self.obsolete and all(activator_files.read(path) == data for path, data in self.files.items())
        return there and all(activator_files.is_compiled(path) for path in activator_files.sources(self.files))


class Outcome(NamedTuple):
    """What an installation came to."""

    plan: Installation
    changed: bool
    package: str


def plan(via: str = "auto", surroundings: Optional[child.Surroundings] = None) -> Installation:
    """Decide what to write where; refuse where it cannot work."""
    folder = locations.target_folder()
    rivals, package = surroundings or child.surroundings()
    before, behind = rivals.of(folder)
    via, because = _way(via, folder, before, behind)
    beside = (before + behind)[0] if because == _BESIDE else ""
    home = "" if package else locations.home()
    lies_in = home or os.path.dirname(os.path.dirname(os.path.dirname(package)))
    paths = {os.path.join(folder, name): activator_files.content(name, lies_in) for name in activator_files.names(via)}
    for path in paths:
        _refuse_foreign(path)
    paths = {path: activator_files.with_others(path, data) for path, data in paths.items()}
    return Installation(via, because, folder, paths, _others(folder, list(paths)), home, beside)


def _others(folder: str, paths: List[str]) -> List[str]:
    """Return the files of the other way that are in place."""
    others = [os.path.join(folder, name) for name in (activator_files.LINE, activator_files.START, activator_files.SLOT)]
    return [path for path in others if path not in paths and activator_files.is_ours(path)]


def install(chosen: Installation) -> Outcome:
    """Write what the plan says and prove it; put back what was there where the proof fails."""
    locations.make(chosen.folder)
    with activator_files.alone(chosen.folder):
        return _install(chosen)


def _install(chosen: Installation) -> Outcome:
    _remove_litter(chosen.folder)
    chosen = chosen._replace(obsolete=_others(chosen.folder, list(chosen.files)))  # another install may have come first
    changed = not chosen.in_place
    before = _before(list(chosen.files) + chosen.obsolete)
    try:
        _write(chosen)
        found = child.proof()
        if found.by(chosen.folder) and chosen.via == activator_files.BOTH and activator_files.SITECUSTOMIZE not in found.forms:
            _put_back(before)
            return _install(plan(activator_files.PTH))
        if not found.by(chosen.folder):
            raise _unproven(chosen, found)
        if found.missing:
            template = "Nothing is installed: the probe could record nothing in {python}."
            raise child.missing(found.missing, say(template, python=quoted(sys.executable)))
    except OSError as exc:
        _put_back(before)
        raise _refusal(exc, chosen.folder) from exc
    except BaseException:
        _put_back(before)
        raise
    return Outcome(chosen, changed, os.path.dirname(os.path.dirname(found.package)))


def _before(paths: List[str]) -> Dict[str, Optional[bytes]]:
    """Return what is there, the compiled files first, as _put_back begins at the end."""
    caches = [activator_files.cache(path) for path in activator_files.sources(paths)]
    return {**{path: activator_files.read_compiled(path) for path in caches}, **{path: activator_files.read(path) for path in paths}}


def _write(chosen: Installation) -> None:
    for path, data in chosen.files.items():
        _put(path, data)
    for path in chosen.obsolete:
        activator_files.take_out(path)
        activator_files.remove_caches(path)
    for path in activator_files.sources(chosen.files):
        if not activator_files.is_compiled(path):
            activator_files.write_compiled(path)


def _way(via: str, folder: str, before: List[str], behind: List[str]) -> Tuple[str, str]:
    """Choose both forms if nobody else has a sitecustomize: people look for ours there, and no later one shadows the line in the .pth file."""
    if via == "auto":
        if before or behind:
            return activator_files.PTH, _BESIDE
        return activator_files.BOTH, "sitecustomize.py, and a .pth line for starts in which another sitecustomize comes first"
    if before and via == "sitecustomize":
        raise _shadowed(os.path.join(folder, activator_files.SLOT), before[0])
    return via, "as asked"


def _shadowed(path: str, winner: str) -> ProbeError:
    if os.path.realpath(path) == os.path.realpath(winner):
        return _foreign(path)
    return ProbeError(
        what=say("Nothing is installed: this interpreter would not run {path}.", path=path),
        why=say(_WINS, path=winner),
        what_to_do=joined([_PTH_WORKS, locations.or_run()]),
    )


def _refuse_foreign(path: str) -> None:
    if activator_files.is_foreign(path):
        raise _foreign(path)


def _foreign(path: str) -> ProbeError:
    remedy = _PTH_WORKS if path.endswith(activator_files.SLOT) else say("Move the file away.")
    return ProbeError(
        what=say("Nothing is installed: {path} is in the way.", path=path),
        why=_CHANGED if activator_files.is_changed(path) else _NOT_OURS,
        what_to_do=joined([remedy, locations.or_run()]),
    )


def _unproven(chosen: Installation, found: child.Proof) -> ProbeError:
    before, _ = child.rivals(chosen.folder)
    if found.complaint:
        why = say("A child interpreter with DDP_PROBE=1 says: {complaint}", complaint=found.complaint)
    elif found.started and found.activator:
        why = say("A child interpreter with DDP_PROBE=1 was started by {path}.", path=found.activator)
    elif found.started:
        why = say("A child interpreter with DDP_PROBE=1 was started by something else.")
    elif chosen.via == activator_files.SITECUSTOMIZE and before:
        why = say(_WINS, path=before[0])
    else:
        why = say("A child interpreter with DDP_PROBE=1 was not started by it.")
    template = "Nothing is installed: this interpreter does not run what was written to {folder}."
    return ProbeError(
        what=say(template, folder=chosen.folder),
        why=why,
        what_to_do=joined([_STATUS_SAYS, locations.or_run()]),
    )


def _put(path: str, data: Optional[bytes]) -> None:
    """Make a file hold this, or be gone."""
    if data is None:
        if os.path.lexists(path):
            os.unlink(path)
    elif activator_files.read(path) != data:
        activator_files.write(path, data)


def _put_back(before: Dict[str, Optional[bytes]]) -> None:
    for path in reversed(list(before)):  # what starts us was written last and goes first
        with contextlib.suppress(OSError):  # the disk that refused the file may refuse this too; uninstall finds the rest
            _put(path, before[path])
    for folder in {os.path.dirname(path) for path in before}:
        activator_files.remove_folder(folder)


def _remove_litter(folder: str) -> None:
    try:
        activator_files.remove_temporary(folder)
    except OSError as exc:
        raise _refusal(exc, folder) from exc


def _refusal(exc: OSError, folder: str) -> ProbeError:
    if exc.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return locations.read_only(folder)
    return ProbeError(
        what=say("Nothing is installed in {folder}.", folder=folder),
        why=say("Writing fails: {error}.", error=quoted(exc)),
        what_to_do=joined([say("Fix this, then reinstall."), locations.or_run()]),
    )


# Removes what install wrote, wherever this interpreter reads at start; nothing beyond the standard library.


def uninstall() -> List[str]:
    """Remove every file of ours, also what an interrupted install left; return what went."""
    try:
        removed: List[str] = []
        for folder in locations.all_folders():
            removed += _remove(folder)
        return removed
    except OSError as exc:
        raise ProbeError(
            what=say("The activator is still in place: {path}.", path=quoted(exc.filename)),
            why=say("Removing it fails: {error}.", error=quoted(exc.strerror)),
            what_to_do=_BY_ITS_USER,
        ) from exc


def _remove(folder: str) -> List[str]:
    with activator_files.alone(folder):
        return activator_files.remove(folder)
