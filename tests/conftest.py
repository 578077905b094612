"""Fixtures that start real interpreters and real launches in a known environment.

python         sys.executable, the interpreter that the tests run in.
repo           Path of the repository's root.
clean_env      clean_env(**extra) -> dict. os.environ without what a launcher, a scheduler, a pipeline, PYTHONPATH or the probe puts there, plus
               OMP_NUM_THREADS=1 and DDP_PROBE_STRICT=1, plus extra; a value of None takes that variable out again.
armed          armed(root, **extra) -> dict. As clean_env, with the activator on the path and runs collected in root; None: DDP_PROBE stays unset.
run_python     run_python(code_or_args, env=None, cwd=None, timeout=60, python=None) -> CompletedProcess with text.
               A string is run with -c, a sequence is the arguments. A timeout kills the whole process group and raises TimeoutExpired.
torchrun       torchrun(script, nproc=2, args=(), env=None, cwd=tmp_path, timeout=120) -> CompletedProcess, via python -m torch.distributed.run.
free_port      free_port() -> int, a TCP port that nothing listens on.
read_events    read_events(path) -> list of dicts: every line of a .jsonl file, or of all of them in a run's folder, sorted by file.
lacks          lacks(folders, log) -> list of words. What the report over a run says less of than the plain log of what the job printed.
whole          Whether sweeps run whole (--all) or a random share of them; see schedule.py.
interpreters   every working CPython 3.8 to 3.14 of this machine, one each by real executable: Interpreter(path, version).
"""

import json
import os
import signal
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

import ports
import pytest

pytest_plugins = ("schedule", "light")

_REPO = Path(__file__).resolve().parent.parent
# Without compiled files each child would compile all of the package again, a tenth of its time.
_NAMES = (
    *("RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "ROLE_WORLD_SIZE"),
    *("PYTHONPATH", "PYTHONDONTWRITEBYTECODE"),
)
_PREFIXES = ("DDP_PROBE", "GITHUB_", "MASTER_", "SLURM_", "OMPI_", "PMI", "TORCHELASTIC_")


def _is_inherited(name: str) -> bool:
    return name in _NAMES or name.startswith(_PREFIXES)


def _is_found() -> bool:
    """Tell whether a child finds this checkout's package by itself; a copy of a checkout is not the one that was installed."""
    try:
        found = metadata.distribution("ddp-probe").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return False
    origin = json.loads(found or "{}")
    return not origin.get("dir_info", {}).get("editable") or str(origin.get("url")) == _REPO.as_uri()


# At import, because test modules that import torch follow: whatever the caller's shell exports has no say in a test.
for _name in [name for name in os.environ if _is_inherited(name)]:
    del os.environ[_name]
os.environ["OMP_NUM_THREADS"] = "1"
# The pages for a person are in the reader's language; tests read the English ones, unless one sets DDP_PROBE_LANG.
for _name in ("LC_ALL", "LC_MESSAGES", "LANG"):
    if os.environ.get(_name, "").lower().startswith("zh"):
        os.environ[_name] = "C.UTF-8"
# The pages have times in the reader's zone; tests read them in UTC, unless one sets TZ or DDP_PROBE_TZ.
os.environ["TZ"] = "UTC"
time.tzset()
os.environ["PAGER"] = ""  # A report in a terminal would wait for a key.
# A shell starts what it puts in the background with Ctrl-C ignored, and children would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Interpreter(NamedTuple):
    """A Python of this machine."""

    path: str
    version: Tuple[int, int]


@pytest.fixture(scope="session")
def python() -> str:
    """The interpreter that the tests run in."""
    return sys.executable


@pytest.fixture(scope="session")
def repo() -> Path:
    """The repository's root."""
    return _REPO


@pytest.fixture(scope="session", autouse=True)
def _folders_of_inner_sessions(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Gives the pytests that tests start numbered folders of their own: they would remove those of earlier suites first, which can take minutes."""
    os.environ["PYTEST_DEBUG_TEMPROOT"] = str(tmp_path_factory.mktemp("inner"))


@pytest.fixture(scope="session")
def clean_env() -> Callable[..., Dict[str, str]]:
    """An environment for a child program, free of everything inherited that the probe or a launcher reads."""

    def build(**extra: Optional[str]) -> Dict[str, str]:
        env = {name: value for name, value in os.environ.items() if not _is_inherited(name)}
        wanted: Dict[str, Optional[str]] = {"OMP_NUM_THREADS": "1", "DDP_PROBE_STRICT": "1"}
        if not _is_found():  # A checkout used as plain files: children find the package all the same.
            wanted["PYTHONPATH"] = str(_REPO)
        wanted.update(extra)
        for name, value in wanted.items():
            if value is None:
                env.pop(name, None)
            else:
                env[name] = value
        return env

    return build


@pytest.fixture(scope="session")
def armed(clean_env: Callable[..., Dict[str, str]], repo: Path) -> Callable[..., Dict[str, str]]:
    """An environment in which each interpreter starts the activator; root None leaves DDP_PROBE unset."""

    def build(root: Optional[Path], **extra: Optional[str]) -> Dict[str, str]:
        path = ":".join(each for each in [str(repo / "sitecustomize_templates"), clean_env().get("PYTHONPATH", "")] if each)
        on = {} if root is None else {"DDP_PROBE": "1", "DDP_PROBE_DIR": str(root)}
        return clean_env(**{"PYTHONPATH": path, **on, **extra})

    return build


def _run(command: List[str], env: Dict[str, str], cwd: Optional[Path], timeout: float) -> "subprocess.CompletedProcess[str]":
    """Run in a session of its own, so that a timeout takes the grandchildren along."""
    process = subprocess.Popen(
        command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        out, err = process.communicate(timeout=timeout)
    except BaseException as exc:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        if isinstance(exc, subprocess.TimeoutExpired):
            raise subprocess.TimeoutExpired(command, timeout, output=out, stderr=err) from None
        raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


@pytest.fixture(scope="session")
def run_python(clean_env: Callable[..., Dict[str, str]]) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Run a piece of code, or a list of arguments, in an interpreter of its own."""

    def run(
        code_or_args: Union[str, Sequence[Any]],
        env: Optional[Dict[str, str]] = None,
        cwd: Optional[Path] = None,
        timeout: float = 60,
        python: Optional[str] = None,
    ) -> "subprocess.CompletedProcess[str]":
        args = ["-c", code_or_args] if isinstance(code_or_args, str) else [str(arg) for arg in code_or_args]
        return _run([python or sys.executable, *args], clean_env() if env is None else env, cwd, timeout)

    return run


@pytest.fixture(scope="session")
def free_port() -> Callable[[], int]:
    """A TCP port that nothing listens on, and that nobody else takes before the job binds it."""
    return ports.free_port


@pytest.fixture
def torchrun(
    run_python: Callable[..., "subprocess.CompletedProcess[str]"], free_port: Callable[[], int], tmp_path: Path
) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Launch a script over several ranks on this machine."""

    def launch(
        script: Union[str, Path],
        nproc: int = 2,
        args: Sequence[Any] = (),
        env: Optional[Dict[str, str]] = None,
        cwd: Optional[Path] = None,
        timeout: float = 120,
    ) -> "subprocess.CompletedProcess[str]":
        # --standalone of torch 1.12 takes a fixed port; a port of our own lets launches run side by side on every version.
        launcher = ["-m", "torch.distributed.run", "--nproc_per_node=%d" % nproc, "--master_addr=127.0.0.1", "--master_port=%d" % free_port()]
        return run_python([*launcher, script, *args], env=env, cwd=tmp_path if cwd is None else cwd, timeout=timeout)

    return launch


@pytest.fixture(scope="session")
def read_events() -> Callable[[Union[str, Path]], List[Dict[str, Any]]]:
    """Read the events of one file, or of every file of a run."""

    def read(path: Union[str, Path]) -> List[Dict[str, Any]]:
        place = Path(path)
        files = sorted(place.glob("*.jsonl")) if place.is_dir() else [place]
        return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").split("\n") if line]

    return read


def _candidates() -> Iterator[Path]:
    names = ["python3", *("python3.%d" % minor for minor in range(8, 15))]
    for folder in [*os.get_exec_path(), "/usr/bin"]:
        for name in names:
            yield Path(folder, name)
    yield from sorted(Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser().glob("versions/3.*/bin/python"))


_ASK = (
    "import json, os, sys; print(json.dumps([sys.implementation.name, list(sys.version_info[:2]),"
    " os.path.realpath(sys.executable), sys.prefix != sys.base_prefix]))"
)


def _ask(candidate: Path) -> Optional[Interpreter]:
    """Run a candidate before believing it: a shim on PATH may lead nowhere."""
    try:
        done = _run([str(candidate), "-I", "-c", _ASK], dict(os.environ), None, timeout=30)
        name, version, path, in_venv = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    if name != "cpython" or in_venv or not (3, 8) <= tuple(version) <= (3, 14):
        return None
    return Interpreter(path, (version[0], version[1]))


@pytest.fixture(scope="session")
def interpreters() -> List[Interpreter]:
    """Every working CPython 3.8 to 3.14 of this machine, oldest first."""
    asked = (_ask(candidate) for candidate in _candidates() if os.access(str(candidate), os.X_OK))
    found = {interpreter.path: interpreter for interpreter in asked if interpreter is not None}
    return sorted(found.values(), key=lambda interpreter: (interpreter.version, interpreter.path))


@pytest.fixture(scope="session")
def lacks() -> Callable[..., List[str]]:
    """What a report over a run says less of than the plain log of the same job."""
    from ddp_probe.judging.causes import group_of
    from ddp_probe.judging.judge import judge
    from ddp_probe.reading.load_run import load

    def compare(folders: Sequence[Any], log: Path) -> List[str]:
        told, printed = judge(load([str(folder) for folder in folders])), judge(load([str(log)]))
        if not printed.findings:
            return []
        first, known = printed.findings[0], [finding for finding in told.findings if finding.severity == "error"]
        # A rank that "stopped" may be known better: by the exception that it stopped with, or by the call that it did not make.
        group = {"own_failure": "ranks_take_different_paths"}
        alike = {group.get(group_of(finding.cause), group_of(finding.cause)) for finding in known}
        if first.slug == "killed-by-signal" and "out_of_memory" in alike:  # Or by the kernel's count of those that it has killed.
            alike.add(group_of(first.cause))
        if first.slug == "host-out-of-memory" and any(
            finding.slug == "killed-by-signal" for finding in known
        ):  # A log alone takes each SIGKILL for it.
            alike.add(group_of(first.cause))
        here = any(item.site for finding in known for item in finding.evidence)
        wanted = {
            "verdict": told.verdict == "found",
            "cause": group.get(group_of(first.cause), group_of(first.cause)) in alike,
            "ranks": not first.ranks or any(finding.ranks for finding in known),
            "line": here or not any(item.site for item in first.evidence),
            "confidence": any(finding.confidence != "low" for finding in known) or first.confidence == "low",
        }
        return [word for word, there in wanted.items() if not there]

    return compare
