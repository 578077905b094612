"""Says why this process may not look into another one: the kernel decides, for one reason after the other."""

import os
import shlex
import sys
from typing import Tuple

from ddp_probe.attaching import proc
from ddp_probe.reading import proc_files
from ddp_probe.wording.text import say

_SYS_PTRACE = 1 << 19
_AS_ROOT = "sudo %s -m ddp_probe attach %d"


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
