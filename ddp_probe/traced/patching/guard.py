"""One guard around everything of ours that runs in the job: a fault is counted and reported, and never reaches the job."""

import threading
from typing import Any, Callable, Dict, List, Optional, Set

from ddp_probe.shared import settings
from ddp_probe.shared.ours import is_a_handlers_overflow, must_pass, ours, raise_as_raised
from ddp_probe.shared.overflow import FRAGILE, crowded, forgotten

_LIMIT = 5


class Thread:
    """What one thread is doing: inside our code, reporting a fault, or inside open calls of outermost observers."""

    __slots__ = ("busy", "telling", "open")

    def __init__(self) -> None:
        self.busy = False
        self.telling = False
        self.open: Set[str] = set()


class _Here(threading.local):
    def __init__(self) -> None:
        self.thread = Thread()


here = _Here()


class Guard:
    """Runs our code under a name. Only Exception is held back; KeyboardInterrupt and SystemExit belong to the job."""

    def __init__(self, limit: int = _LIMIT) -> None:
        self.limit = limit
        self.on_fault: Optional[Callable[[str, BaseException, int], None]] = None
        self.counts: Dict[str, int] = {}
        self._off: Set[str] = set()

    def off(self, name: str) -> bool:
        """Tell whether this name has failed too often to be run again."""
        return name in self._off

    def run(self, name: str, fn: Callable[..., Any], *args: Any) -> Any:
        """Return what fn returns, or None if it failed or its name is switched off."""
        result: List[Any] = []
        self.attempt(name, lambda: result.append(fn(*args)))
        return result[0] if result else None

    def attempt(self, name: str, fn: Callable[..., Any], *args: Any) -> bool:
        """Tell whether fn ran to its end."""
        if name in self._off:
            return False
        thread = here.thread
        outer = thread.busy
        thread.busy = True
        try:
            fn(*args)
            return True
        except RecursionError as exc:
            try:
                passes = self._overflow(name, exc)
            except RecursionError:
                passes = FRAGILE and not forgotten()
            if passes:
                raise
            return False
        except ours(Exception) as exc:
            if self._fault(name, exc):
                raise
            return False
        except BaseException as exc:
            raise_as_raised(exc)
            raise
        finally:
            thread.busy = outer

    def forget(self) -> None:
        """Reset all counts and switch every name on."""
        self.counts.clear()
        self._off.clear()

    def _fault(self, name: str, exc: BaseException) -> bool:
        """Count a fault and report it; True if DDP_PROBE_STRICT wants it raised."""
        count = self.counts[name] = self.counts.get(name, 0) + 1
        if count >= self.limit:
            self._off.add(name)
        try:
            self._tell(name, exc, count)
        except RecursionError as overflow:
            if must_pass(overflow):
                raise
        except ours(Exception):
            pass
        try:
            return bool(settings.get(settings.STRICT))
        except RecursionError as overflow:
            if must_pass(overflow):
                raise
            return False

    def _overflow(self, name: str, exc: RecursionError) -> bool:
        """Count a recursion in our code as a fault, but not a stack that the job has filled; True if the error must be raised."""
        if is_a_handlers_overflow(exc):
            return True
        if not crowded(exc):
            return self._fault(name, exc)
        return FRAGILE and not forgotten()

    def _tell(self, name: str, exc: BaseException, count: int) -> None:
        thread = here.thread
        if self.on_fault is None or thread.telling:
            return
        thread.telling = True
        try:
            self.on_fault(name, exc, count)
        finally:
            thread.telling = False


guard = Guard()
