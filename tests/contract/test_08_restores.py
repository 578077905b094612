"""Promise 8: restore() returns every original; what it cannot reach falls through a switched-off wrapper and is listed."""

import itertools
import json
import subprocess
import sys

import pytest

pytest.importorskip("torch")

# T imports torch, M mmengine.dist, A activates, R restores. M brings torch along: T after M is the same as both at once.
_BOTH = sorted({order for order in map("".join, itertools.permutations("TMARAR")) if order.replace("T", "").replace("M", "") == "ARAR"})
ORDERS = [order for order in _BOTH if order.index("T") < order.index("M")]
OLD_WRAPT = ["TMARAR", "ATRAMR"]


@pytest.fixture(scope="module")
def old_wrapt(tmp_path_factory):
    """A folder for PYTHONPATH with the oldest line of wrapt that this Python can install: 1.14 up to 3.10, 1.15 from there."""
    folder = tmp_path_factory.mktemp("wrapt")
    version = "1.14.1" if sys.version_info < (3, 11) else "1.15.0"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:", "--target", str(folder), "wrapt==" + version]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=250, check=False)
    if done.returncode:
        pytest.skip("pip finds no wheel of wrapt %s here: %s" % (version, done.stdout.strip().splitlines()[-1:]))
    return folder, version


@pytest.fixture(scope="module")
def pristine(run_program, tmp_path_factory):
    """What the targets and their aliases are where there is no probe."""
    path = tmp_path_factory.mktemp("pristine") / "pristine.json"
    done = run_program("orders", path, "pristine")
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture(scope="module")
def times(whole):
    """How often the probe is activated and restored: what is stacked shows at the second time."""
    return 20 if whole else 5


@pytest.mark.sample(3)
@pytest.mark.parametrize("order", ORDERS)
def test_every_order(run_program, clean_env, pristine, tmp_path, order):
    """After each restore every attribute and alias imported so far is the original; while active each call is written once, else none."""
    done = run_program("orders", pristine, order, env=clean_env(DDP_PROBE_DIR=str(tmp_path / "runs")))
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["surroundings"] is True
    assert (told["events"] > 0) == (order != "ARARTM")  # There the import comes when all is over.


@pytest.mark.sample(1)
@pytest.mark.parametrize("order", OLD_WRAPT)
def test_orders_under_wrapt_1(run_program, clean_env, pristine, old_wrapt, tmp_path, order):
    """The same holds under the 1.x line of wrapt."""
    env = clean_env(DDP_PROBE_DIR=str(tmp_path / "runs"))
    env["PYTHONPATH"] = ":".join(each for each in (str(old_wrapt[0]), env.get("PYTHONPATH", "")) if each)
    done = run_program("orders", pristine, order, env=env)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["wrapt"] == old_wrapt[1]


@pytest.mark.sample(1)
@pytest.mark.parametrize("program", ["many_times", "likeness"])
def test_programs_under_wrapt_1(run_program, clean_env, old_wrapt, times, tmp_path, program):
    """Under the 1.x line of wrapt nothing is stacked, and a target is like its original."""
    env = clean_env(DDP_PROBE_DIR=str(tmp_path / "runs"))
    env["PYTHONPATH"] = ":".join(each for each in (str(old_wrapt[0]), env.get("PYTHONPATH", "")) if each)
    answer = tmp_path / "answer.json"
    done = run_program(program, times if program == "many_times" else answer, env=env)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(answer.read_text() if answer.exists() else done.stdout)
    assert told.get("differences", []) == []


def test_many_times(run_program, clean_env, times, tmp_path):
    """Activated and restored again and again, nothing is stacked; holders out of reach call the original, write nothing and are listed."""
    done = run_program("many_times", times, env=clean_env(DDP_PROBE_DIR=str(tmp_path / "runs")))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["entries"] > 10
