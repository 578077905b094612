"""The life of this process under the probe: one state machine. Nothing else decides whether the probe is on.

TABLE says what each event does in each state. A transition first enters its new state and then does its work, step by step; each
step can be done twice. So an exception that a signal handler of the job raises in the middle leaves a state that is right, and the
next call of activate(), restore() or init_process_group does the work again before its own.

The session (ddp_probe.traced.armed) is loaded by name, once a module that it watches has been imported. It is handed what it needs.
"""

from __future__ import annotations

import os
import sys

from ddp_probe.activation import targets
from ddp_probe.activation.hooks import ImportHook, stand_in, step_aside, without_collections
from ddp_probe.activation.roles import HELPER, NOTHING
from ddp_probe.activation.this_process import ThisProcess
from ddp_probe.shared import settings, threads  # noqa: F401  # threads: before the job puts others in their place
from ddp_probe.shared.ours import ours, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Callable, Dict, List, Optional, Tuple

OFF, ARMED, CHILD, PROMOTED, RESTORED = STATES = ("off", "armed", "child", "promoted", "restored")
"""off: nothing is patched or awaited. armed: a program that is watched from its start, or a launcher. child: a helper, or the fork of an
armed process; silent. promoted: a child that became a rank, or that armed itself. restored: every original is back."""

START, ACTIVATE, MODULE, GROUP, FORK, RESTORE = EVENTS = ("start", "activate", "module", "group", "fork", "restore")
"""start: the activator runs. activate: ddp_probe.activate(). module: a module that is awaited has been executed. group: the job calls
init_process_group. fork: this is the child of a fork. restore: ddp_probe.restore()."""


class Lifecycle:
    """The state of this process, and what belongs to it: the process's role, the import hook, the session."""

    def __init__(self) -> None:
        self.state = OFF
        self.process: Optional[ThisProcess] = None
        self.session: Any = None
        self._hook: Optional[ImportHook] = None
        self._unfinished: Optional[Callable[[], Any]] = None
        self._loaded = False
        self._before_torch: List[str] = []
        self._forks_watched = False

    def happened(self, event: str, *given: Any) -> Any:
        """Do what the table says of this event in this state."""
        answer = self._work(self._unfinished) if self._unfinished is not None and self._resumes(event) else None
        step = TABLE.get((event, self.state))
        return step(self, *given) if step is not None else answer

    def _resumes(self, event: str) -> bool:
        """Tell whether this event first completes what was cut short; what is to be undone anyway is left as it is."""
        return event in (ACTIVATE, GROUP) or (event == RESTORE and self.state == RESTORED)

    def guarded(self, event: str, *given: Any) -> Any:
        """Do the same, and let no fault of ours reach the job."""
        try:
            return self.happened(event, *given)
        except ours(Exception, SystemExit) as exc:  # SystemExit: a file of the job's that ends the program while we import it does not end it here
            if settings.get(settings.STRICT):
                raise
            complain(exc)
            if self.session is None and self._hook is not None:  # A dependency is missing: it will be missing for the next module as well.
                self._hook.cancel()
            return None

    def start(self) -> None:
        """Arm this process in the role that its environment gives it; a helper waits, and the probe's command is left alone."""
        self._arm(ThisProcess(), late=False)

    def arm(self) -> None:
        """Arm this process whatever its environment says."""
        process = ThisProcess()
        process.become_program()
        self._arm(process, late=True)

    def _arm(self, process: ThisProcess, late: bool) -> None:
        if process.role.name != NOTHING:
            self._enter(CHILD if process.role.name == HELPER else ARMED, lambda: self._begin(process, late))

    def promote_by_group(self, given: Dict[str, Any]) -> None:
        """Turn this child into the rank that init_process_group is called for."""
        self._enter(PROMOTED, lambda: self._promote(lambda process: process.become_rank(given), late=False))

    def promote_by_activate(self) -> None:
        """Turn this child into a program of its own, because it called activate()."""
        self._enter(PROMOTED, lambda: self._promote(ThisProcess.become_program, late=True))

    def watch(self, names: List[str], late: bool) -> None:
        """Load what watches these modules and patch them; late: they were imported before.

        Modules that come before torch wait for it: the first line says which versions, builds and cards this process really has.
        """
        if "torch" not in sys.modules:
            self._before_torch += names
            return
        from ddp_probe.activation.own_imports import own_modules

        early, self._before_torch = self._before_torch, []
        with own_modules():
            session = self.load_session()
            if early:
                session.ready(early, True)
            session.ready(names, late)

    def wait_for_group(self, names: List[str], late: bool) -> None:
        """Put the function in place that tells of init_process_group, and load nothing else."""
        stand_in(sys.modules[names[0]], lambda given: self.guarded(GROUP, given), late)

    def fall_silent(self) -> None:
        """Record nothing in the child of a fork, and keep nothing of the parent's file."""
        self._enter(CHILD, self._silence)

    def restore(self) -> Any:
        """Put every original back; return the certificate, or None if nothing was patched."""
        return self._enter(RESTORED, self._undo)

    def _enter(self, state: str, work: Callable[[], Any]) -> Any:
        """Change the state, then do the work; what cuts it short leaves it for the next call."""
        self._unfinished = work  # First: in the new state with nothing to finish, the work would never be done.
        self.state = state
        return self._work(work)

    def _work(self, work: Callable[[], Any]) -> Any:
        try:
            answer = work()
        except ours(Exception, SystemExit):  # A fault of ours would be met again.
            self._unfinished = None
            raise
        self._unfinished = None
        return answer

    def _begin(self, process: ThisProcess, late: bool) -> None:
        self.process = process
        self._watch_forks()
        self._await_modules()
        if late and self.session is not None:
            self.session.note_missed()

    def _promote(self, become: Callable[[ThisProcess], None], late: bool) -> None:
        assert self.process is not None
        become(self.process)
        step_aside()
        if self.session is not None:
            from ddp_probe.activation.own_imports import own_modules

            with own_modules():
                self.session.begin_again(targets.rows(self.process.role.name))
            self.session.switch.on = True
        self._await_modules()
        if late and self.session is not None:
            self.session.note_missed()

    def _silence(self) -> None:
        if self.session is not None:
            self.session.switch.on = False
        if self.process is not None:
            self.process.become_helper()
        if self.session is not None:
            self.session.fall_silent()

    def _undo(self) -> Any:
        if self._hook is not None:
            self._hook.cancel()
        step_aside()
        certificate = self.session.restore() if self.session is not None else None
        self.session = self.process = self._hook = None
        self._loaded = False
        self._before_torch = []
        return certificate

    def _watch_forks(self) -> None:
        if not self._forks_watched and hasattr(os, "register_at_fork"):
            self._forks_watched = True
            os.register_at_fork(after_in_child=lambda: self.guarded(FORK))

    def _await_modules(self) -> None:
        """Listen for the modules of this role; take at once what was imported before."""
        assert self.process is not None
        if self._hook is not None:
            self._hook.cancel()
        self._hook = ImportHook(targets.modules(self.process.role.name), lambda name, _: self.guarded(MODULE, [name], False))
        self._hook.start()
        there = _imported(self._hook.waiting)
        if there:
            self.guarded(MODULE, there, True)

    def load_session(self) -> Any:
        """Return what watches and writes in this process, loading it first."""
        if not self._loaded:
            without_collections(self._load)
        return self.session

    def _load(self) -> None:
        if self.session is None:
            import importlib

            assert self.process is not None
            armed = importlib.import_module("ddp_probe.traced.armed")
            self.session = armed.ArmedSession(self.process, targets.rows(self.process.role.name), lambda given: self.happened(GROUP, given))
        self.session.switch.on = True
        self.session.begin()
        self._await_more([row.module for row in self.session.further_rows()])
        self._loaded = True

    def _await_more(self, names: List[str]) -> None:
        """Wait for what third parties and remedies need as well; take at once what was imported before."""
        if self._hook is not None and names:
            self._hook.waiting.update(names)
            there = _imported(names)
            if there:
                self.session.ready(there, True)


TABLE: Dict[Tuple[str, str], Callable[..., Any]] = {
    (START, OFF): Lifecycle.start,
    (ACTIVATE, OFF): Lifecycle.arm,
    (ACTIVATE, CHILD): Lifecycle.promote_by_activate,
    (ACTIVATE, RESTORED): Lifecycle.arm,
    (MODULE, ARMED): Lifecycle.watch,
    (MODULE, CHILD): Lifecycle.wait_for_group,
    (MODULE, PROMOTED): Lifecycle.watch,
    (GROUP, CHILD): Lifecycle.promote_by_group,
    (FORK, ARMED): Lifecycle.fall_silent,
    (FORK, PROMOTED): Lifecycle.fall_silent,
    (RESTORE, ARMED): Lifecycle.restore,
    (RESTORE, CHILD): Lifecycle.restore,
    (RESTORE, PROMOTED): Lifecycle.restore,
}
"""By event and state: what is done. An event that is not here changes nothing in that state."""

lifecycle = Lifecycle()
"""The lifecycle of this process."""


def complain(exc: BaseException) -> None:
    """Say once, in one line, that the probe is not active; the processes that this one starts do not say it again."""
    if settings.get(settings.BROKEN) or sys.stderr is None:
        return
    os.environ[settings.BROKEN.name] = "1"
    text = type(exc).__name__
    with suppress(Exception):  # The package may be incomplete, and the masks with it.
        from ddp_probe.shared.masks import mask

        text = mask(" ".join(("%s: %s" % (text, exc)).split()))
    sys.stderr.write("ddp_probe: not active: %s\n" % text[:300])


def _imported(names: Any) -> List[str]:
    return [name for name in sorted(set(names)) if _is_whole(sys.modules.get(name))]


def _is_whole(module: Optional[ModuleType]) -> bool:
    return module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False)
