"""What a start of the interpreter costs: each way of starting the probe against nothing installed, and import torch in a rank."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import time
import venv
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

from bench_parts.rows import Question, Sample, answer, interleave, unanswered

REPO = Path(__file__).resolve().parent.parent.parent
WAYS = ("pth", "sitecustomize", "both", "run")
_INSTALLED = WAYS[:3]
_NEEDED = ("wrapt", "structlog", "msgspec", "typing_extensions")
_FILES = {"pth": ["ddp_probe.pth"], "sitecustomize": ["sitecustomize.py"], "both": ["ddp_probe.pth", "sitecustomize.py"]}
_GOALS = {("start-off", "both"): 1.03, ("start-quiet-off", "both"): 1.03}
_RANK = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
_ENVIRONMENT = "import json; from ddp_probe.cli import run; print(json.dumps(run.environment({})))"
_IMPORT = "import torch, mmengine.runner"
_QUIET = {"PYTHONDONTWRITEBYTECODE": "1"}

# Asked of the process itself: what wait4 tells of a child begins with the memory of its parent.
READ = """
import re, sys
from ddp_probe.cli import main
code = main(["report", "--json", *sys.argv[3:], sys.argv[1]])
open(sys.argv[2], "w").write(re.findall(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[0])
sys.exit(code)
"""

OFF = Question(
    "start-off",
    "interpreter start, installed and off (%s)",
    "ratio",
    "ms",
    1.01,
    "`python -c pass` in two copies of one virtual environment, the activator installed in one of them, DDP_PROBE unset in both.",
    "site opens and runs one file more at each start; the row of the empty file below says what any such file costs here.",
)
EMPTY = Question("start-empty", "of which an empty file in its place (%s)", "ratio", "ms", None, "The same with a file that holds nothing.")
ON = Question(
    "start-on",
    "DDP_PROBE=1, without torch (%s)",
    "difference",
    "ms",
    3.0,
    "The same, DDP_PROBE=1 against nothing installed; the package is compiled and lies in site-packages.",
    "The role is decided and the import watcher set by nine small modules of the package, each found, opened and read at each start.",
)
QUIET_OFF = OFF._replace(
    key="start-quiet-off",
    what="interpreter start under PYTHONDONTWRITEBYTECODE=1, installed and off (%s)",
    how="`python -c pass` with PYTHONDONTWRITEBYTECODE=1, as most container images set it; nothing but install and pip has compiled anything.",
)
QUIET_ON = ON._replace(
    key="start-quiet-on",
    what="PYTHONDONTWRITEBYTECODE=1 and DDP_PROBE=1, without torch (%s)",
    how="The same, DDP_PROBE=1 against nothing installed.",
)
IMPORT = Question(
    "import-on",
    "`import torch, mmengine.runner` in a rank",
    "ratio",
    "ms",
    1.04,
    "`python -c 'import torch, mmengine.runner'` with RANK=0, under `run` against without; the first line of the log is written within it.",
    "The probe loads wrapt, msgspec and eighty small modules of its own the moment torch is there.",
    "cpu",
)


def environment(**more: str) -> Dict[str, str]:
    """Return a clean environment, the same for every child."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH") if name in os.environ}
    return {**kept, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", **more}


def start(argv: List[str], env: Dict[str, str]) -> Sample:
    """Run a command to its end; its wall and CPU time in milliseconds."""
    quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
    began = time.perf_counter()
    pid = os.posix_spawn(argv[0], argv, env, file_actions=quiet)
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - began
    if status != 0:
        raise RuntimeError("%s ended with status %d." % (" ".join(argv[1:]), status))
    return Sample(1000 * wall, 1000 * (usage.ru_utime + usage.ru_stime))


class Place:
    """A virtual environment of this interpreter's base with the package in its site-packages, compiled."""

    def __init__(self, path: Path) -> None:
        venv.EnvBuilder(symlinks=True).create(str(path))
        self.python = str(path / "bin" / "python")
        self.site = next(path.glob("lib/python3.*/site-packages"))
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(str(REPO / "ddp_probe"), str(self.site / "ddp_probe"), ignore=ignore)
        shutil.copytree(str(REPO / "sitecustomize_templates"), str(self.site / "ddp_probe" / "sitecustomize_templates"), ignore=ignore)
        for name in _NEEDED:
            for found in Path(sysconfig.get_path("purelib")).glob(name + "*"):
                (self.site / found.name).symlink_to(found)  # `install` refuses where they are missing; no start loads them
        (self.site / "a_inert.pth").write_text("# Python 3.8 loads _bootlocale for the first .pth file, whatever is in it.\n")

    def ask(self, *args: str) -> str:
        """Run it with arguments; raise with what it said where it fails."""
        done = subprocess.run([self.python, *args], env=environment(), cwd=os.sep, capture_output=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(" ".join(done.stderr.decode(errors="replace").split())[:200])
        return done.stdout.decode()

    def compile(self) -> None:
        """Compile what is there, as pip does; the interpreter itself would at its second start."""
        self.ask("-m", "compileall", "-q", str(self.site))


def start_rows(folder: Path, rounds: int) -> Iterator[Dict[str, Any]]:
    """Yield the rows of a start without torch."""
    variants, refused = _variants(folder)
    found = interleave({name: lambda pair=pair: start(*pair) for name, pair in variants.items()}, rounds)
    rows = (
        (OFF, "nothing", " off", _INSTALLED),
        (EMPTY, "nothing", " empty", _INSTALLED),
        (ON, "nothing", "", WAYS),
        (QUIET_OFF, "nothing quiet", " quiet off", _INSTALLED),
        (QUIET_ON, "nothing quiet", " quiet", _INSTALLED),
    )
    for question, against, suffix, ways in rows:
        for way in ways:
            goal = _GOALS.get((question.key, way), question.goal)
            asked = question._replace(key=question.key + "-" + way, what=question.what % way, goal=goal)
            if way in refused:
                yield unanswered(asked, refused[way])
            else:
                yield answer(asked, found[against], found[way + suffix])


def _variants(folder: Path) -> Tuple[Dict[str, Tuple[List[str], Dict[str, str]]], Dict[str, str]]:
    """Return what to start, by name, and which way this interpreter refuses."""
    bare = Place(folder / "nothing")
    bare.compile()
    found = {
        "nothing": ([bare.python, "-c", "pass"], environment()),
        "nothing quiet": ([bare.python, "-c", "pass"], environment(**_QUIET)),
        "run": ([bare.python, "-c", "pass"], environment(**json.loads(bare.ask("-c", _ENVIRONMENT)))),
    }
    refused = {}
    for way in _INSTALLED:
        empty = Place(folder / (way + "-empty"))
        for name in _FILES[way]:
            (empty.site / name).write_text("")
        empty.compile()
        found[way + " empty"] = ([empty.python, "-c", "pass"], environment())
        place = Place(folder / way)
        try:
            place.compile()  # as pip does, and nothing after install: it compiles what it writes
            place.ask("-m", "ddp_probe", "install", "--via", "auto" if way == "both" else way)
        except RuntimeError as exc:
            refused[way] = "Not measured: %s" % str(exc).replace(str(folder), "")
            continue
        found[way + " off"] = ([place.python, "-c", "pass"], environment())
        found[way + " quiet off"] = ([place.python, "-c", "pass"], environment(**_QUIET))
        found[way + " quiet"] = ([place.python, "-c", "pass"], environment(DDP_PROBE="1", **_QUIET))
        found[way] = ([place.python, "-c", "pass"], environment(DDP_PROBE="1"))
    return found, refused


def run_environment(folder: Path, **more: str) -> Dict[str, str]:
    """Return the environment in which `run` starts a command from this checkout."""
    from ddp_probe.cli import run

    return run.environment(environment(**more), str(folder))


def import_rows(folder: Path, rounds: int, warm: int) -> Iterator[Dict[str, Any]]:
    """Yield what importing torch and mmengine costs more in a rank."""
    argv = [sys.executable, "-c", _IMPORT]
    variants = {"off": lambda: start(argv, environment(**_RANK)), "on": lambda: start(argv, run_environment(folder, **_RANK))}
    with contextlib.ExitStack() as stack:
        stack.callback(os.chdir, os.getcwd())
        os.chdir(str(folder))
        try:
            found = interleave(variants, rounds, warm)
        except RuntimeError as exc:
            yield unanswered(IMPORT, "Not measured: torch or mmengine does not import here (%s)" % exc)
            return
    yield answer(IMPORT, found["off"], found["on"])
