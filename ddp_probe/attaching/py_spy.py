"""Reads the Python stacks of a process with py-spy, from outside; and says why that is not allowed, with the command that would allow it.

py-spy reads the memory of the process while it runs (--nonblocking): nothing is stopped, so nothing can be left stopped, whoever is killed. Only
--native stops the process, as the C functions cannot be read otherwise. Nothing here reads another process's memory itself.
"""

import json
import os
import re
import shlex
import shutil
import sys
import sysconfig
import threading
import time
from typing import Any, Dict, List, NamedTuple, Tuple

from ddp_probe.attaching import proc
from ddp_probe.attaching.privileges import refusal
from ddp_probe.reading import proc_files
from ddp_probe.shared.child_process import ChildOutput, ChildProcess
from ddp_probe.shared.errors import UnusableError
from ddp_probe.shared.masks import mask
from ddp_probe.shared.schema import Site, ThreadStack

_TRIES, _LIMIT = 3, 60.0
_OUTERMOST, _INNERMOST, _MOST_NATIVE = 24, 40, 16
_TICK = 0.0002
_OURS = re.compile(r"[/\\]ddp_probe[/\\](?:activation|traced)[/\\]")  # The probe's wrappers are not lines of the job.
_REFUSED = ("ermission denied", "not permitted", "os error 1)", "os error 13)")
_INSTALL = "%s -m pip install 'ddp-probe[attach]'"


class Dump(NamedTuple):
    """The stacks of one process, or why they are not known."""

    threads: List[ThreadStack]
    native: List[str] = []
    paused: float = 0.0
    problem: str = ""
    allow: str = ""


def program() -> str:
    """Return py-spy, that of this interpreter first; empty if it is not installed."""
    own = os.path.join(sysconfig.get_path("scripts"), "py-spy")
    return own if os.access(own, os.X_OK) else shutil.which("py-spy") or ""


def refuse_native() -> None:
    """Refuse to look for C functions without py-spy."""
    if not program():
        raise UnusableError(what="--native needs py-spy.", why="It is not installed.", what_to_do=_INSTALL % shlex.quote(sys.executable))


def read(pid: int, *, native: bool) -> Dump:
    """Return the stacks of a process; one that runs may change while it is read, and is read again then."""
    tool = program()
    if not tool:
        return Dump([], problem="py-spy is not installed", allow=_INSTALL % shlex.quote(sys.executable))
    errors = ""
    # A thread in the kernel's D state would be stopped only when it comes back, perhaps long after py-spy has gone.
    pauses = native and not _cannot_stop(pid)
    for _ in range(_TRIES):
        done, paused = _run([tool, "dump", "--json", "--pid", str(pid), "--native" if pauses else "--nonblocking"], pid, pauses)
        if done.code is None:
            return Dump([], problem="py-spy %s" % done.why)
        if done.code == 0:
            threads, functions = _threads(done.out, pid)
            if threads:
                return Dump(threads, functions, paused)
        errors = done.err.decode("utf-8", "replace")
        if any(word in errors for word in _REFUSED):
            why, allow = refusal(pid)
            return Dump([], problem=why, allow=allow)
    return Dump([], problem=_reason(pid, errors))


def _cannot_stop(pid: int) -> bool:
    states = [proc_files.text("%d/task/%s/stat" % (pid, thread)).rpartition(")")[2].split()[:1] for thread in _tasks(pid)]
    return any(state in (["D"], ["T"], ["t"]) for state in states)


def _tasks(pid: int) -> List[str]:
    try:
        return os.listdir("%s/%d/task" % (proc_files.ROOT, pid))
    except OSError:
        return []


def _run(words: List[str], pid: int, pauses: bool) -> Tuple[ChildOutput, float]:
    """Run py-spy in a separate session, so that what ends us does not end it in the middle, and see for how long the process is stopped."""
    child = ChildProcess(words, os.environ, may_be_killed=not pauses)
    seen: List[float] = []
    over = threading.Event()
    watch = threading.Thread(target=_see_pauses, args=(pid, over, seen), daemon=True)
    if pauses:
        watch.start()
    try:
        printed = child.wait(_LIMIT)
        return printed, _paused(watch, over, seen) if printed.code is not None else 0.0
    finally:
        over.set()


def _see_pauses(pid: int, over: threading.Event, seen: List[float]) -> None:
    while not over.is_set():
        now = proc_files.stat(pid)
        if now is not None and now.state in proc.STOPPED:
            seen.append(time.monotonic())
        over.wait(_TICK)


def _paused(watch: threading.Thread, over: threading.Event, seen: List[float]) -> float:
    over.set()
    if watch.ident is not None:
        watch.join()
    return seen[-1] - seen[0] + _TICK if seen else 0.0


def _threads(out: bytes, pid: int) -> Tuple[List[ThreadStack], List[str]]:
    """Return the threads that py-spy tells, the main one first, and the C functions of the main one."""
    try:
        threads: List[Dict[str, Any]] = json.loads(out)
    except ValueError:
        return [], []
    threads = [thread for thread in threads if thread.get("frames")]
    main = next((thread for thread in threads if thread.get("os_thread_id") == pid or thread.get("thread_name") == "MainThread"), None)
    main = main if main is not None or len(threads) != 1 else threads[0]
    functions = [mask(str(frame["name"]))[:200] for frame in (main["frames"] if main else ()) if frame.get("module")]
    stacks = [_stack(thread, thread is main) for thread in threads]
    stacks = [stack for stack in stacks if stack.frames]
    return sorted(stacks, key=lambda stack: not stack.main), functions[:_MOST_NATIVE]


def _stack(thread: Dict[str, Any], main: bool) -> ThreadStack:
    frames = [
        Site(mask(str(frame.get("filename")))[-500:], int(frame.get("line") or 0), str(frame.get("name"))[:200])
        for frame in reversed(thread["frames"])
        if not frame.get("module") and not _OURS.search(str(frame.get("filename")))
    ]
    if len(frames) > _OUTERMOST + _INNERMOST:
        del frames[_OUTERMOST:-_INNERMOST]
    return ThreadStack(str(thread.get("thread_name") or thread.get("os_thread_id") or ""), main, frames)


def _reason(pid: int, errors: str) -> str:
    now = proc_files.stat(pid)
    if now is None or now.state in proc_files.GONE:
        return "process %d ended during the look" % pid
    words = [line.strip() for line in errors.splitlines() if line.strip()]
    return "py-spy says: %s" % mask(words[-1].replace("Reason: ", ""))[:200] if words else "py-spy found no Python thread in it"
