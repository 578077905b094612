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
from ddp_probe.reading import proc_files
from ddp_probe.shared.child_process import ChildOutput, ChildProcess
from ddp_probe.shared.errors import UnusableError
from ddp_probe.shared.masks import mask
from ddp_probe.shared.schema import Site, ThreadStack
from ddp_probe.wording.text import say

_TRIES, _LIMIT = 3, 60.0
_OUTERMOST, _INNERMOST, _MOST_NATIVE = 24, 40, 16
_SYS_PTRACE = 1 << 19
_TICK = 0.0002
_OURS = re.compile(r"[/\\]ddp_probe[/\\](?:activation|traced)[/\\]")  # The probe's wrappers are not lines of the job.
_REFUSED = ("ermission denied", "not permitted", "os error 1)", "os error 13)")
_AS_ROOT = "sudo %s -m ddp_probe attach %d"
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
    said = ""
    # A thread in the kernel's D state would be stopped only when it comes back, perhaps long after py-spy has gone.
    pauses = native and not _cannot_stop(pid)
    for _ in range(_TRIES):
        done, paused = _run([tool, "dump", "--json", "--pid", str(pid), "--native" if pauses else "--nonblocking"], pid, pauses)
        if done.code is None:
            return Dump([], problem="py-spy %s" % done.why)
        if done.code == 0:
            found, functions = _threads(done.out, pid)
            if found:
                return Dump(found, functions, paused)
        said = done.err.decode("utf-8", "replace")
        if any(word in said for word in _REFUSED):
            why, allow = refusal(pid)
            return Dump([], problem=str(why), allow=str(allow))  # An event takes no templates.
    return Dump([], problem=_reason(pid, said))


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
        told: List[Dict[str, Any]] = json.loads(out)
    except ValueError:
        return [], []
    told = [thread for thread in told if thread.get("frames")]
    main = next((thread for thread in told if thread.get("os_thread_id") == pid or thread.get("thread_name") == "MainThread"), None)
    main = main if main is not None or len(told) != 1 else told[0]
    functions = [mask(str(frame["name"]))[:200] for frame in (main["frames"] if main else ()) if frame.get("module")]
    found = [_stack(thread, thread is main) for thread in told]
    found = [stack for stack in found if stack.frames]
    return sorted(found, key=lambda stack: not stack.main), functions[:_MOST_NATIVE]


def _stack(thread: Dict[str, Any], main: bool) -> ThreadStack:
    frames = [
        Site(mask(str(frame.get("filename")))[-500:], int(frame.get("line") or 0), str(frame.get("name"))[:200])
        for frame in reversed(thread["frames"])
        if not frame.get("module") and not _OURS.search(str(frame.get("filename")))
    ]
    if len(frames) > _OUTERMOST + _INNERMOST:
        del frames[_OUTERMOST:-_INNERMOST]
    return ThreadStack(str(thread.get("thread_name") or thread.get("os_thread_id") or ""), main, frames)


def _reason(pid: int, said: str) -> str:
    now = proc_files.stat(pid)
    if now is None or now.state in proc_files.GONE:
        return "process %d ended during the look" % pid
    words = [line.strip() for line in said.splitlines() if line.strip()]
    return "py-spy says: %s" % mask(words[-1].replace("Reason: ", ""))[:200] if words else "py-spy found no Python thread in it"


# Who may look into a process is for the kernel to decide, for one reason after the other.


def refusal(pid: int) -> Tuple[str, str]:
    """Return why this process may not look into another one, and the command that would allow it."""
    as_root = _AS_ROOT % (shlex.quote(sys.executable), pid)
    effective, no_new, filtered = proc.privileges()
    theirs, ours = proc_files.owner(pid), os.geteuid()
    capable = bool(effective & _SYS_PTRACE)
    who = say(
        "process {pid} belongs to {owner}, and this is {user}",
        pid=pid,
        owner=proc_files.user(theirs),
        user=proc_files.user(ours),
    )
    if capable:
        module = say("a seccomp filter") if filtered else say("a security module")
        why = say("the kernel refuses it although this process has CAP_SYS_PTRACE ({module})", module=module)
        unfiltered = "docker run --security-opt seccomp=unconfined ..., or on the host: {command}"
        return why, say(unfiltered, command=as_root)
    if ours == 0:
        with_capability = say("docker run --cap-add SYS_PTRACE ..., or on the host: {command}", command=as_root)
        return say("root of this container has no CAP_SYS_PTRACE"), with_capability
    if no_new:  # sudo could not raise anything here.
        from_outside = say("on the host, or in a shell without no_new_privs: {command}", command=as_root)
        if theirs != ours:
            stays = say("{reason}; no_new_privs keeps this shell from becoming another user", reason=who)
            return stays, from_outside
    if theirs != ours:
        return who, as_root
    scope = proc_files.text("sys/kernel/yama/ptrace_scope").strip()
    if scope == "1":
        why = say("ptrace_scope is 1: only a parent may look into a process")
        return why, "sudo sysctl kernel.yama.ptrace_scope=0" if not no_new else from_outside
    if scope == "2":
        why = say("ptrace_scope is 2: only CAP_SYS_PTRACE may look into a process")
        return why, as_root if not no_new else from_outside
    if scope == "3":
        return say("ptrace_scope is 3: nobody may look into a process until this host starts again"), say(
            "kernel.yama.ptrace_scope=1 in /etc/sysctl.d, for the next start of the host: it cannot be lowered while this job runs"
        )
    protected = say("the kernel protects process {pid} (it has changed its user, its group or its capabilities)", pid=pid)
    return protected, as_root if not no_new else from_outside
