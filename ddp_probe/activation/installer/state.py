"""Says what is in place for this interpreter, and whether a child of it really is started."""

import os
from typing import Callable, List, NamedTuple, Optional, Tuple

from ddp_probe.activation.installer import activator_files, child, installation, locations
from ddp_probe.shared.errors import ProbeError
from ddp_probe.wording.text import joined, say

_SLOT_IS_TAKEN = say(
    "A tool that puts a sitecustomize of its own first on PYTHONPATH, as opentelemetry-instrument does, takes its place there,"
    " and nothing is recorded."
)


class State(NamedTuple):
    """What is in place."""

    name: str
    """active, absent, shadowed (another sitecustomize wins), outdated (active, of another version), incomplete (active, and what it
    needs to record is missing), or broken."""
    because: str
    files: List[str]
    via: str
    version: str
    shadowed_by: str
    package: str
    installable: bool
    missing: List[str]
    uncompiled: List[str]
    """Those of the files that each start compiles again if PYTHONDONTWRITEBYTECODE is set."""
    shared: List[str] = []
    """Those of the files into which others have written as well."""
    changed: List[str] = []
    """Files that begin as ours do and that somebody has changed: neither install nor uninstall touches them."""


def state() -> State:
    """Look at every folder, then ask a child."""
    return begin()()


def begin() -> Callable[[], State]:
    """Look at every folder and start the child that is to be asked; what is returned waits for it."""
    files = [path for path in _paths() if activator_files.is_ours(path)]
    asked = child.ask_proof() if files else child.ask_all()
    return lambda: _state(files, *((child.proof(asked), None) if files else child.proof_and_surroundings(asked)))


def _state(files: List[str], found: child.Proof, surroundings: Optional[child.Surroundings]) -> State:
    via = activator_files.via_of(files)
    version = next((activator_files.version(path) for path in files), "")
    name, because, winner = _judge(files, found, via, version)
    package = os.path.dirname(os.path.dirname(found.package)) if found.package else ""
    refused = "" if files else _refused(found.missing, surroundings)
    uncompiled = [path for path in activator_files.sources(files) if not activator_files.is_compiled(path)]
    shared = [path for path in files if _is_shared(path)]
    changed = [path for path in _paths() if activator_files.is_changed(path)]
    return State(name, because or refused, files, via, version, winner, package, not refused, found.missing, uncompiled, shared, changed)


def _paths() -> List[str]:
    names = (activator_files.SLOT, activator_files.START, activator_files.LINE, activator_files.ACTIVATOR)
    paths: List[str] = []
    for folder in locations.all_folders():
        paths += [os.path.join(folder, name) for name in names]
    return paths


def _is_shared(path: str) -> bool:
    before, _, after = activator_files.parts(path) or (b"", b"", b"")
    return bool((before + after).strip())


def _judge(files: List[str], found: child.Proof, via: str, version: str) -> Tuple[str, str, str]:
    if not files:
        return "absent", "", ""
    folder = os.path.dirname(files[0])
    if found.by(folder):
        if found.missing:
            return "incomplete", child.nothing_recorded(found.missing), ""
        current = activator_files.current_version()
        if version != current:
            template = "It is of version {version}, this package writes version {current}."
            return "outdated", say(template, version=version, current=current), ""
        return "active", _remark(via, found, folder), ""
    before, _ = child.rivals(folder)
    if via == activator_files.SITECUSTOMIZE and before:
        return "shadowed", say("{path} comes first on the path and wins.", path=before[0]), before[0]
    if not via:
        return "broken", say("An installation was cut short."), ""
    return "broken", found.complaint or say("A child interpreter with DDP_PROBE=1 was not started by it."), ""


def _remark(via: str, found: child.Proof, folder: str) -> str:
    """Say which form can be shadowed, or is."""
    if via == activator_files.SITECUSTOMIZE:
        return _SLOT_IS_TAKEN
    if via == activator_files.BOTH and activator_files.SITECUSTOMIZE not in found.forms:
        template = "Of the two forms the .pth line works: {file} comes first on the path."
        before, _ = child.rivals(folder)
        return say(template, file=before[0] if before else say("another sitecustomize"))
    return ""


def _refused(missing: List[str], surroundings: Optional[child.Surroundings]) -> str:
    if missing:
        return child.nothing_recorded(missing)
    try:
        installation.plan(surroundings=surroundings)
    except ProbeError as exc:
        return joined([exc.what, exc.why])
    return ""
