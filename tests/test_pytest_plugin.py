"""The pytest plugin: inert without its option; with it, launches of a test are recorded, and a test that fails says what was found."""

import configparser
import os
import re
import shlex
from importlib import metadata
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

_HEAD = """
import os, sys, time, unittest
import pytest, torch, torch.distributed as dist, torch.multiprocessing as mp

def joined(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=2)

def well(rank, port):
    joined(rank, port)
    dist.all_reduce(torch.ones(1))
    dist.destroy_process_group()

def skips(rank, port):
    joined(rank, port)
    if rank == 0:
        dist.all_reduce(torch.ones(1))

def waits(rank, port):
    joined(rank, port)
    dist.barrier()
    if rank == 0:
        dist.all_reduce(torch.ones(1))
    open("there-%d" % rank, "w").close()
    time.sleep(600)
"""


def _plugin() -> List[str]:
    """Name the plugin to a pytest that does not find it by itself: this environment may have been installed before there was one."""
    found: Any = metadata.entry_points()
    named = found.select(group="pytest11") if hasattr(found, "select") else found.get("pytest11", ())
    return [] if any(one.value == "ddp_probe.pytest_plugin" for one in named) else ["-p", "ddp_probe.pytest_plugin"]


@pytest.fixture
def outcome(
    run_python: Callable[..., Any], clean_env: Callable[..., Dict[str, str]], tmp_path: Path, free_port: Callable[[], int]
) -> Callable[..., Any]:
    """Write tests and run pytest over them; PORT in them is one that is free."""

    def run(tests: str, *options: str, **extra: str) -> Any:
        (tmp_path / "test_own.py").write_text(_HEAD + tests.replace("PORT", str(free_port())), encoding="utf-8")
        command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", *_plugin(), *options, "test_own.py"]
        return run_python(command, cwd=tmp_path, env=clean_env(**extra), timeout=240)

    return run


_SECTION = re.compile(
    r"^-+ ddp_probe -+\nDDP6\d\d [\w-]+ \[\d\] error: .*\n  change: .*\nMore: python -m ddp_probe report '?/.+/pytest-\d+-\d+-\d+/", re.M
)
"""As docs/pytest.md shows it."""


def _kept(folder: Path) -> List[str]:
    """Return the tests whose launches were kept, without the digest of each."""
    return sorted(path.name[: -len("-123456")] for path in folder.glob("ddp_probe_runs/pytest-*/*"))


def test_without_the_option_nothing_happens(outcome: Callable[..., Any], tmp_path: Path) -> None:
    """A pytest with the plugin and without --ddp-probe loads one module of the probe beside the package, sets no variable and writes no file."""
    done = outcome(
        "def test_nothing():\n"
        "    ours = sorted(name for name in sys.modules if name.split('.')[0] == 'ddp_probe')\n"
        "    assert ours == ['ddp_probe', 'ddp_probe.pytest_plugin']\n"
        "    assert [name for name in os.environ if name.startswith('DDP_PROBE')] == ['DDP_PROBE_STRICT']\n"
    )
    assert done.returncode == 0, done.stdout
    assert not (tmp_path / "ddp_probe_runs").exists()


def test_what_is_imported_costs_little(run_python: Callable[..., Any]) -> None:
    """The plugin's module brings no module of its own into a pytest, and takes less time to import than pytest's plugin for doctests does."""
    code = (
        "import sys, time, pytest, statistics\n"
        "import _pytest.doctest, ddp_probe\n"
        "def cost(name):\n"
        "    times = []\n"
        "    for _ in range(21):\n"
        "        sys.modules.pop(name, None); began = time.process_time(); __import__(name); times.append(time.process_time() - began)\n"
        "    return statistics.median(times)\n"
        "import ddp_probe.pytest_plugin\n"
        "del sys.modules['ddp_probe.pytest_plugin']; before = set(sys.modules)\n"
        "costs = cost('ddp_probe.pytest_plugin'), cost('_pytest.doctest')\n"
        "print(sorted(set(sys.modules) - before), costs[0] < costs[1])\n"
    )
    assert run_python(code, env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""}).stdout == "['ddp_probe.pytest_plugin'] True\n"


def test_the_wheel_declares_it(repo: Path) -> None:
    """The package's metadata names the plugin to pytest."""
    setup = configparser.ConfigParser()
    setup.read(str(repo / "setup.cfg"), encoding="utf-8")
    assert setup["options.entry_points"]["pytest11"].split() == ["ddp-probe", "=", "ddp_probe.pytest_plugin"]


def test_what_others_put_into_the_environment_stays(
    outcome: Callable[..., Any], run_python: Callable[..., Any], clean_env: Callable[..., Dict[str, str]], tmp_path: Path
) -> None:
    """A variable that a fixture of the session sets is there in every later test, and after the session those of the probe are as before it."""
    tests = (
        "@pytest.fixture(scope='session')\ndef cluster():\n    os.environ.update(CLUSTER='there', PYTHONPATH='mine')\n"
        "def test_first(cluster):\n    pass\n"
        "def test_second(cluster):\n    assert os.environ['CLUSTER'] == 'there' and os.environ['PYTHONPATH'].endswith('mine')\n"
    )
    assert outcome(tests, "--ddp-probe").returncode == 0
    (tmp_path / "test_own.py").write_text("def test_nothing():\n    pass\n", encoding="utf-8")
    options = ["-q", "-p", "no:cacheprovider", *_plugin(), "--ddp-probe", "test_own.py"]
    code = "import os, pytest, sys; before = dict(os.environ); pytest.main(%r); print([name for name in {**os.environ, **before} %s])" % (
        options,
        "if os.environ.get(name) != before.get(name)",
    )
    assert run_python(code, cwd=tmp_path, env=clean_env(DDP_PROBE_DIR="runs", PYTEST_CURRENT_TEST=None)).stdout.splitlines()[-1] == "[]"


def test_spawned_and_forked_ranks_and_torchrun(outcome: Callable[..., Any], tmp_path: Path, repo: Path) -> None:
    """Of spawned ranks, of forks of pytest and of torchrun's ranks the section names who is missing; only what failed is kept."""
    (tmp_path / "train.py").write_text(_HEAD + "skips(int(os.environ['RANK']), int(os.environ['MASTER_PORT']))\n", encoding="utf-8")
    done = outcome(
        "def test_spawned():\n    mp.spawn(skips, (PORT,), 2)\n"
        "def test_well():\n    mp.spawn(well, (PORT,), 2)\n"
        "def test_forked():\n    mp.start_processes(skips, (PORT,), 2, start_method='fork')\n"
        "def test_torchrun():\n    import subprocess\n"
        "    subprocess.run([sys.executable, '-m', 'torch.distributed.run', '--nproc_per_node=2', '--master_port=PORT', 'train.py'], check=True)\n"
        "def test_no_launch():\n    assert 0\n",
        "--ddp-probe",
    )
    assert re.search("4 failed, 1 passed", done.stdout), done.stdout
    sections = re.findall(r"^-+ ddp_probe -+\n(.*)", done.stdout, re.M)
    assert [("[1] error" in line, "all_reduce" in line) for line in sections] == [(True, True)] * 3, sections
    assert [len(_SECTION.findall(shown)) for shown in (done.stdout, (repo / "docs" / "pytest.md").read_text(encoding="utf-8"))] == [3, 1]
    commands = [shlex.split(line) for line in re.findall("^More: (.*)", done.stdout, re.M)]
    assert [Path(command[4]).is_dir() for command in commands] == [True] * 3
    read = [[Path(path).name for path in command[5:]] for command in commands]  # Ranks may warn on stderr; torchrun always prints there.
    assert [names in ([], ["stderr.txt"]) for names in read] == [True] * 3
    assert read[2] == ["stderr.txt"]
    assert all(Path(path).exists() for command in commands for path in command[4:])
    assert _kept(tmp_path) == ["test_own.py-test_forked", "test_own.py-test_spawned", "test_own.py-test_torchrun"]


def test_what_a_failed_test_printed_is_kept_masked(outcome: Callable[..., Any], tmp_path: Path) -> None:
    """What a failed test printed to stderr is kept beside its run without the passwords in it, readable by the user alone."""
    (tmp_path / "train.py").write_text(_HEAD + "skips(int(os.environ['RANK']), int(os.environ['MASTER_PORT']))\n", encoding="utf-8")
    printed = "+ mysql -phunter2planted db", "password: hunter2planted", "-----BEGIN PRIVATE KEY-----\\nhunter2planted\\n-----END PRIVATE KEY-----"
    done = outcome(
        "def test_torchrun():\n    import subprocess\n"
        "    print('%s', file=sys.stderr)\n"
        "    subprocess.run([sys.executable, '-m', 'torch.distributed.run', '--nproc_per_node=2', '--master_port=PORT', 'train.py'], check=True)\n"
        % "\\n".join(printed).replace("\\\\n", "\\n"),
        "--ddp-probe",
    )
    assert "hunter2planted" in done.stdout  # Of pytest's own section of the output.
    files = [path for path in (tmp_path / "ddp_probe_runs").rglob("*") if path.is_file()]
    assert [path.name for path in files if b"hunter2" in path.read_bytes()] == []
    (kept,) = [path for path in files if path.name == "stderr.txt"]
    assert "+ mysql -p*** db\npassword: ***\n" in kept.read_text(encoding="utf-8")
    assert kept.stat().st_mode & 0o077 == 0


def test_workers_of_xdist_share_one_folder(outcome: Callable[..., Any], tmp_path: Path) -> None:
    """Under xdist sections arrive from the workers, and with --ddp-probe-keep what passed is kept in the same folder."""
    pytest.importorskip("xdist")
    tests = "def test_a():\n    mp.spawn(skips, (PORT,), 2)\ndef test_b():\n    mp.spawn(well, (PORT2,), 2)\n".replace("PORT2", "PORT + 1")
    done = outcome(tests, "--ddp-probe", "--ddp-probe-keep", "-n", "2")
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    assert len(re.findall(r"^-+ ddp_probe -+\nDDP6", done.stdout, re.M)) == 1
    assert _kept(tmp_path) == ["test_own.py-test_a", "test_own.py-test_b"]
    assert len(list(tmp_path.glob("ddp_probe_runs/pytest-*"))) == 1


_POOL = """
import os, pytest, torch, torch.distributed as dist, torch.multiprocessing as mp

def joins(rank):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="PORT")
    dist.init_process_group("gloo", rank=rank, world_size=2)

def meets(branch):
    dist.barrier()
    if branch and dist.get_rank() == 0:
        dist.all_reduce(torch.ones(1))

def pytest_sessionstart():
    pytest.pool = mp.get_context("METHOD").Pool(2)
    pytest.pool.map(joins, range(2), chunksize=1)

def pytest_sessionfinish():
    pytest.pool.terminate()
"""


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_a_pool_that_was_there_before_the_first_test(outcome: Callable[..., Any], tmp_path: Path, free_port: Callable[[], int], method: str) -> None:
    """Of ranks that a conftest starts before the first test, the test in which they hang says who is missing, and an earlier failure says nothing."""
    (tmp_path / "conftest.py").write_text(_POOL.replace('"PORT"', '"%d"' % free_port()).replace("METHOD", method), encoding="utf-8")
    done = outcome(
        "import conftest, glob, multiprocessing\n"
        "def test_meets():\n    pytest.pool.map(conftest.meets, [False] * 2, chunksize=1)\n"
        "def test_no_launch():\n    assert 0\n"
        "def test_hangs():\n"
        "    waiting, began = pytest.pool.map_async(conftest.meets, [True] * 2, chunksize=1), time.monotonic()\n"
        "    files, suspected = 'ddp_probe_runs/*/session/*/*.jsonl', '\"operation\":\"all_reduce\"'\n"  # Ranks that are idle are suspected, too.
        "    while not any(suspected in open(path).read() for path in glob.glob(files)) and time.monotonic() < began + 100:\n"
        "        time.sleep(0.2)\n"
        "    time.sleep(max(0.0, began + 5 - time.monotonic()))\n"  # A rank that others have waited for less than 3 s is not named.
        "    waiting.get(timeout=0)\n",
        "--ddp-probe",
        DDP_PROBE_HANG_AFTER="2",
    )
    assert "2 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert len(re.findall("^-+ ddp_probe -+$", done.stdout, re.M)) == 1, done.stdout
    assert re.search(r"^-+ ddp_probe -+\nDDP6\d\d \S+ \[1\] error: .*all_reduce.*conftest.py", done.stdout, re.M), done.stdout
    assert _kept(tmp_path) == ["session"[: -len("-123456")]]


# The time begins to run out when both ranks are there: a busy machine may need long for that.
_HANGS = """
def test_hangs(request):
    import pytest_timeout, signal
    ranks = mp.spawn(waits, (PORT,), 2, join=False, daemon=True)  # Kept: torch 1.12 gives them semaphores that go with it.
    while not (os.path.exists("there-1") and os.listdir(os.environ["DDP_PROBE_DIR"])):
        time.sleep(0.1)
    settings = pytest_timeout._get_item_settings(request.node)._replace(timeout=16.0)
    request.config.hook.pytest_timeout_cancel_timer(item=request.node)
    request.config.hook.pytest_timeout_set_timer(item=request.node, settings=settings)
    if settings.method == "signal":
        signal.setitimer(signal.ITIMER_REAL, 6.0)
    time.sleep(600)
"""


@pytest.mark.parametrize("method", ["signal", "thread"])
def test_a_timeout_says_who_is_missing(outcome: Callable[..., Any], method: str) -> None:
    """When pytest-timeout ends a test, by a signal or with the whole process, the section names the rank that the other one waits for."""
    done = outcome(_HANGS, "--ddp-probe", "--timeout=200", "--timeout-method=%s" % method, DDP_PROBE_HANG_AFTER="3")
    assert done.returncode != 0
    text = done.stdout + done.stderr
    assert "Timeout" in text, text
    assert re.search(r"DDP6\d\d \S+ \[1\] \w+: .*all_reduce.*test_own.py", text), text
