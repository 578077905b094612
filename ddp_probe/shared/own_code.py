"""Tells the job's files from everybody else's by their paths: the line that a report names has to be one that a person can change."""

import os
import re
from types import CodeType
from typing import Dict, Optional, Sequence, Tuple

from ddp_probe.shared.accelerators import PLUGINS

# Libraries of training and what starts programs; also if they run from a clone, as the name of the module is known.
_FRAMEWORKS = frozenset(
    "torch mmengine mmcv accelerate transformers lightning pytorch_lightning lightning_fabric"
    " lightning_utilities deepspeed hydra fire click typer ray horovod runpy pytest _pytest pluggy".split()
)
_STARTERS = _FRAMEWORKS | frozenset(
    "torchrun composer coverage ddtrace ddtrace-run opentelemetry opentelemetry-instrument debugpy IPython ipython ipykernel jupyter".split()
)

_STANDARD = os.path.dirname(os.__file__) + os.sep
_INSTALLED = re.compile(r"[/\\](?:site|dist)-packages[/\\]([^/\\.]+)")
_COMMAND = re.compile(r"[/\\](?:bin|Scripts)[/\\]([^/\\.]+)$")
_FOREIGN = re.compile(r"%s|%s|[/\\]lib(?:64)?[/\\]python\d[\d.]*t?[/\\]|^<frozen " % (_INSTALLED.pattern, _COMMAND.pattern))
# What starts programs in a library of training: its launchers, command lines and workers.
_STARTS = re.compile(r"[/\\](?:\w*launch\w*|run(?:ner)?|cli|commands?|elastic|workers?|_private|__main__)(?:\.py$|[/\\])")
_FILES = 10_000
_TASK = re.compile(r"(?:^|_)(?:eval|evaluate|evaluation|valid|validate|validation|predict|inference|save|checkpoint|ckpt)(?:_|$)", re.IGNORECASE)
_INNERMOST = 3  # The task is in the name of one of the innermost functions: the outermost ones hold the whole job.
_IMPORT, _DEBUGGER = "<frozen importlib._bootstrap", re.compile(r"[/\\](?:bdb|pydevd)\.py$")
_FOR_OTHERS = re.compile(r"[/\\](?:subprocess|threading|selectors|queue|(?:multiprocessing|concurrent)[/\\].*)\.py$")
_SENDS_BUFFERS = re.compile(r"(?:^|_)broadcast_coalesced$")
_SHARE = 20
_STARTS_CHILDREN = ("multiprocessing.spawn", "multiprocessing.forkserver")

_known: Dict[str, bool] = {}


def framework(name: str) -> bool:
    """Tell whether a top-level module is a library of training, or a vendor's plugin."""
    return name in _FRAMEWORKS or name in PLUGINS


def foreign(file: str) -> bool:
    """Return whether a file is not the job's own: it is installed, of the standard library, or an installed command."""
    found = _known.get(file)
    if found is None:
        found = file.startswith(_STANDARD) or _FOREIGN.search(file) is not None
        if len(_known) < _FILES:
            _known[file] = found
    return found


def standard(file: str) -> bool:
    """Return whether a file is of the standard library, as what runs a program by python -m."""
    return file.startswith((_STANDARD, "<")) and not package(file)


def starts_a_child(code: CodeType) -> bool:
    """Return whether this is the command line with which multiprocessing starts an interpreter: a line that nobody has written."""
    return code.co_filename == "<string>" and not set(_STARTS_CHILDREN).isdisjoint(code.co_names)


def task(frames: Sequence[Tuple[str, str]]) -> str:
    """Return what a stack, file and function of each frame, outermost first, is busy with that may take long and end.

    That is a function that evaluates or saves, as its name says; "import", in a line of the job or in a module that it imports; or "debugger".
    A function that evaluates does not end by itself while it waits for other ranks.
    """
    if waits_for_buffers(frames):
        return ""
    own = [index for index, (file, _) in enumerate(frames) if not foreign(file)]
    names = [frames[index][1].rpartition(".")[2] for index in own[-_INNERMOST:]]
    tasks = [name for name in names if _TASK.search(name)]
    inside = own[-1] if own and names[-1] != "<module>" else 0
    importing = [file for file, _ in frames[inside:] if file.startswith(_IMPORT)]
    if tasks:
        return tasks[-1]
    if own and importing:
        return "import"
    return "debugger" if [file for file, _ in frames if _DEBUGGER.search(file)] else ""


def waits_for_buffers(frames: Sequence[Tuple[str, str]]) -> bool:
    """Tell whether a stack waits for other ranks in DDP's forward: it sends the model's buffers there, in C++, and no call of the job shows that."""
    return bool(frames) and foreign(frames[-1][0]) and _SENDS_BUFFERS.search(frames[-1][1]) is not None


def waits_for_its_processes(frames: Sequence[Tuple[str, str]], still: float, children: float) -> bool:
    """Tell whether a stack waits for a process or a thread, and processes of this one compute: a compiler gets little time beside many ranks."""
    return 0 < still < _SHARE * children and bool(frames) and _FOR_OTHERS.search(frames[-1][0]) is not None


def package(file: str) -> str:
    """Return the installed package that a file is of; empty for any other file."""
    found = _INSTALLED.search(file)
    return found.group(1) if found else ""


def _is_a_program(file: str) -> bool:
    """Tell whether a program is a script that a library of training brings, or that lies among a Python's files without being of a package."""
    name, inside = package(file), _INSTALLED.search(file)
    if standard(file) or _COMMAND.search(file) or _STARTS.search(file, inside.end() if inside is not None else file.rfind(os.sep)):
        return False
    return not name or name in _STARTERS or name in PLUGINS


def of_installed_program(files: Sequence[str], launched: str = "") -> Optional[int]:
    """Return which of these files, innermost first and none of them the job's own, stands for the job: where all of its program is installed.

    That is the innermost one of the package that was started, be it by python -m; else the command that was started. Of a library of training,
    it is only what lies beside the program, or below: `launched` is the program's file. Of what starts programs nothing is the job's.
    """
    if launched and _is_a_program(launched):
        beside = os.path.dirname(launched) + os.sep
        below = [index for index, file in enumerate(files) if file.startswith(beside)]
        return below[0] if below else None
    packages = [package(file) for file in files]
    programs = [name for name in packages if name and name not in _STARTERS and name not in PLUGINS]
    if programs:
        return packages.index(programs[-1])
    for index, file in enumerate(files):
        command = _COMMAND.search(file)
        if command is not None and command.group(1) not in _STARTERS:
            return index
    return None
