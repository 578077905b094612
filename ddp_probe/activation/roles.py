"""Which part this interpreter plays in the job: launcher, rank, solo or helper; from its environment and its own command line."""

from __future__ import annotations

import os
import sys

from ddp_probe.shared import settings
from ddp_probe.shared.ours import ours
from ddp_probe.shared.rank_info import rank_info

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Mapping, Optional, Tuple

_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")


class Program:
    """The program of an interpreter: a script, a module (-m), code (-c), or none (a prompt, stdin)."""

    __slots__ = ("args", "kind", "name")

    def __init__(self, kind: str, name: str, args: Tuple[str, ...] = ()) -> None:
        self.kind = kind
        self.name = name
        self.args = args

    @property
    def base(self) -> str:
        """The script's file name without folder and suffix, or the module's name."""
        name = os.path.basename(self.name) if self.kind == "script" else self.name
        return name[:-3] if name.endswith(".py") else name


def command_line() -> List[str]:
    """Return the full command line; while site runs, sys.argv lacks the module's name under -m."""
    original = getattr(sys, "orig_argv", None)  # Python 3.10+
    if original:
        return list(original)
    try:
        with open("/proc/self/cmdline", "rb") as file:
            words = file.read().split(b"\0")[:-1]
        if words:
            return [os.fsdecode(word) for word in words]
    except ours(OSError):
        pass
    return [sys.executable or "python"] + list(getattr(sys, "argv", []))


def program(argv: List[str]) -> Program:
    """Split a Python command line into the interpreter's options and the program."""
    index = 1
    while index < len(argv):
        word = argv[index]
        if word in _WITH_VALUE:
            index += 2
            continue
        if not word.startswith("-") or word == "-":
            return Program("none" if word == "-" else "script", word, tuple(argv[index + 1 :]))
        found = _bundled(word)
        if found is None or word.startswith("--"):
            index += 1
            continue
        letter, value = found
        rest = argv[index + 1 :]
        if not value:
            value, rest = (rest[0] if rest else ""), rest[1:]
        return Program("module" if letter == "m" else "code", value, tuple(rest))
    return Program("none", "")


def _bundled(word: str) -> Optional[Tuple[str, str]]:
    """Find -m or -c inside a bundle of short options such as -um or -ctext; None if there is neither."""
    for place, letter in enumerate(word[1:], start=1):
        if letter in "mc":
            return letter, word[place + 1 :]
        if letter in "WX":  # the rest of the word is that option's value
            return None
    return None


# Which part this interpreter plays in the job: launcher, rank, solo or helper.
#
# Two ranks under torchrun with spawned DataLoader workers are nine interpreters, and eight of them carry RANK.
# So the command line and the armed process above decide, and RANK alone does not.

LAUNCHER, RANK, SOLO, HELPER, NOTHING = "launcher", "rank", "solo", "helper", "nothing"


class Role:
    """The part of a process in a job, and the reason: launcher, rank, solo (a training program without a launcher), or helper (any other process)."""

    __slots__ = ("because", "name")

    def __init__(self, name: str, because: str) -> None:
        self.name = name
        self.because = because


_LAUNCHER_MODULES = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torch.distributed.launch",
    "accelerate.commands.launch": "accelerate",
    "deepspeed.launcher.runner": "deepspeed",
    "deepspeed.launcher.launch": "deepspeed",
}
_LAUNCHER_SCRIPTS = {"torchrun": "torchrun", "deepspeed": "deepspeed", "horovodrun": "horovodrun"}
_LAUNCHER_WITH_WORD = {"accelerate": "launch", "accelerate.commands.accelerate_cli": "launch", "colossalai": "run"}
_HELPER_CODE = ("from multiprocessing.", "from joblib.", "from loky.", "from billiard.")
# Ray's workers run any task; the one that trains calls init_process_group. `ray start` starts them.
_HELPER_PARTS = ("torch/_inductor/compile_worker", "torch._inductor.compile_worker", "popen_loky_posix", "ray/_private/workers/")
_HELPER_SCRIPTS = ("ray",)


def launcher_name(program: Program) -> str:
    """Return which launcher this program is, or an empty string."""
    name = program.base
    if program.kind == "script":
        path = program.name.replace(os.sep, "/")
        for module, launcher in _LAUNCHER_MODULES.items():
            if path.endswith("/" + module.replace(".", "/") + ".py"):
                return launcher
        if name in _LAUNCHER_SCRIPTS:
            return _LAUNCHER_SCRIPTS[name]
    elif program.kind == "module":
        if name in _LAUNCHER_MODULES:
            return _LAUNCHER_MODULES[name]
        if name.endswith((".distributed.run", ".distributed.launch")):  # a vendor's copy
            return name
    word = _LAUNCHER_WITH_WORD.get(name)
    return name.split(".")[0] if word and program.args[:1] == (word,) else ""


def _launches_us(program: Program) -> bool:
    """Return whether this launch is not a job, but one of the commands that look at the hosts of a job."""
    words = program.args
    return any(words[at : at + 2] == ("-m", "ddp_probe") and words[at + 2 : at + 3] in (("doctor",), ("gather",)) for at in range(len(words)))


def armed_above(environ: Mapping[str, str]) -> str:
    """Return the mark of an armed rank above this process that is the same rank, or an empty string."""
    mark = environ.get(settings.ARMED.name, "")
    pid, _, where = mark.partition(":")
    if not pid or pid == str(os.getpid()):  # the same pid: the program has replaced itself by exec
        return ""
    return pid if where == armed_as(environ) else ""


def armed_as(environ: Mapping[str, str]) -> str:
    """Return how a rank is named in the mark that it leaves to what it starts."""
    here = rank_info(environ)
    return "%s:%s" % (here.rank, here.local_rank)


def decide(program: Program, environ: Mapping[str, str]) -> Role:
    """Decide the role of this interpreter."""
    if program.kind == "module" and program.name.split(".")[0] in ("ddp_probe", "ddp_probe_activator"):
        return Role(NOTHING, "This is the probe's own command.")
    launcher = launcher_name(program)
    if launcher and _launches_us(program):
        return Role(NOTHING, "The program is %s, and it launches the probe's own command." % launcher)
    if launcher:
        return Role(LAUNCHER, "The program is %s." % launcher)
    if program.kind == "code" and program.name.startswith(_HELPER_CODE):
        return Role(HELPER, "The program is a child of multiprocessing.")
    if any(part in program.name for part in _HELPER_PARTS) or (program.kind == "script" and program.base in _HELPER_SCRIPTS):
        return Role(HELPER, "The program is a worker of a library.")
    above = armed_above(environ)
    if above:
        return Role(HELPER, "Process %s above is this rank already." % above)
    here = rank_info(environ)
    if here.rank is not None:
        return Role(RANK, "The environment names rank %d (%s)." % (here.rank, here.launcher))
    return Role(SOLO, "No launcher has set a rank.")
