"""Decides, in every interpreter of a job, whether and as what it is armed; standard library only.

What watches and writes is loaded by name, and only once torch or mmengine has really been imported.
"""

from __future__ import annotations

import os
import sys

from ddp_probe import settings
from ddp_probe.ours import ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Dict, List, Optional

    from ddp_probe.activation._import_hook import ImportHook
    from ddp_probe.activation._process import Process

started = False
"""The probe is on in this process, in whatever role."""

process: Optional[Process] = None
_listener: Optional[ImportHook] = None
_session: Any = None
_forks_watched = False


def start() -> None:
    """Arm this process as its environment and role ask; the activator calls this at every start of an interpreter."""
    if not started and settings.get(settings.PROBE):
        _guarded(_start, False)


def arm() -> None:
    """Arm this process whatever its environment says, also late."""
    if not started or (process is not None and process.role.name in ("helper", "nothing")):
        _guarded(_start, True)


def _guarded(step: Any, *args: Any) -> None:
    try:
        step(*args)
    except ours(Exception, SystemExit) as exc:  # the probe never raises into the job; a file that leaves while it is imported does not end it
        if settings.get(settings.STRICT):
            raise
        complain(exc)
        if _session is None and _listener is not None:  # a dependency is missing: it will be for the next module as well
            _listener.cancel()


def complain(exc: BaseException) -> None:
    """Say once, in one line, that the probe could not be armed; what this process starts stays silent."""
    if settings.get(settings.BROKEN) or sys.stderr is None:
        return
    os.environ[settings.BROKEN.name] = "1"
    text = " ".join(("%s: %s" % (type(exc).__name__, exc)).split())
    sys.stderr.write("ddp_probe: not active: %s\n" % text[:300])


def _start(asked: bool) -> None:
    global started, process, _listener, _forks_watched
    from ddp_probe.activation import targets
    from ddp_probe.activation._import_hook import ImportHook
    from ddp_probe.activation._process import Process

    started = True
    if process is None:
        process = Process()
    if asked:
        process.arm_anyway()
    if process.role.name == "nothing":
        return
    if _listener is not None:
        _listener.cancel()
    _listener = ImportHook(targets.modules(process.role.name), _executed)
    _listener.start()
    if asked and _session is not None:  # a fork of an armed process asks for itself
        from ddp_probe.activation._installed import own_modules

        with own_modules():
            _session.promoted()
    if not _forks_watched and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forked)
        _forks_watched = True
    _catch_up()
    if asked and _session is not None:
        _session.note_missed()


def _catch_up() -> None:
    """Take what had been imported before we came."""
    there = [name for name in sorted(_listener.waiting if _listener is not None else ()) if _is_whole(sys.modules.get(name))]
    if there:
        _guarded(_ready, there, True)


def _is_whole(module: Optional[ModuleType]) -> bool:
    return module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False)


def _executed(name: str, _module: ModuleType) -> None:
    _guarded(_ready, [name], False)


def _ready(names: List[str], late: bool) -> None:
    """Modules that were waited for are there: load what watches them, in the role that this process has."""
    if process is None or not started:
        return
    if process.role.name == "helper":
        from ddp_probe.activation import _promotion

        _promotion.stand_in(sys.modules[names[0]], _promote_guarded)
        return
    from ddp_probe.activation._installed import own_modules

    with own_modules():
        session().ready(names, late)


def session() -> Any:
    """Return what watches and writes in this process, loading it first; by name, so that nothing here depends on it."""
    if _session is None or not _session.begun:
        from ddp_probe.activation._collector import without_collections

        without_collections(_load)
    return _session


def _load() -> None:
    global _session
    if _session is None:
        import importlib

        _session = importlib.import_module("ddp_probe.probes").Session(process)
    if not _session.begun:
        _session.begin()
        _listen_also([row.module for row in _session.further_rows()])


def _listen_also(names: List[str]) -> None:
    """Wait for what third parties and remedies need as well; take at once what is there already."""
    if _listener is None or _session is None or not names:
        return
    _listener.waiting.update(names)
    there = [name for name in sorted(set(names)) if _is_whole(sys.modules.get(name))]
    if there:
        _session.ready(there, True)


def _promote_guarded(given: Dict[str, Any]) -> None:
    _guarded(promote, given)


def promote(given: Dict[str, Any]) -> None:
    """Turn this helper into the rank that init_process_group is being called for, and arm it."""
    global _listener
    if process is None:
        return
    from ddp_probe.activation import targets
    from ddp_probe.activation._import_hook import ImportHook

    process.promote(given)
    from ddp_probe.activation._installed import own_modules

    with own_modules():
        session().promoted()
    if _listener is not None:
        _listener.cancel()
    _listener = ImportHook(targets.modules(process.role.name), _executed)
    _listener.start()
    _catch_up()


def _forked() -> None:
    """In the child of a fork: fall silent until it calls init_process_group."""
    if process is not None and started:
        _guarded(_fall_silent)


def _fall_silent() -> None:
    assert process is not None
    armed = process.role.name in ("rank", "solo", "launcher")
    process.demote()
    if armed and _session is not None:
        _session.forked()


def stop() -> Any:
    """Undo everything; return the certificate, or None where nothing had been patched."""
    global started, _listener, _session, process
    from ddp_probe.activation import _promotion

    if _listener is not None:
        _listener.cancel()
    _listener = None
    _promotion.step_aside()
    certificate = _session.restore() if _session is not None else None
    started, _session, process = False, None, None
    return certificate
