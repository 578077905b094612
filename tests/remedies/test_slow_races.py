"""A checkpoint that rank 0 saves onto a slow disk while rank 1 loads it, with no barrier in between."""

import json
import os
import shutil
import subprocess
import tempfile

import pytest
from remedy_runs import PROGRAMS


@pytest.fixture(scope="module")
def slow_disk():
    """A library that, preloaded, makes writing slow for the files of these races."""
    if shutil.which("gcc") is None:
        pytest.skip("There is no compiler for the slow disk.")
    folder = tempfile.mkdtemp(dir="/tmp")  # LD_PRELOAD is divided at spaces; other folders may have some.
    library = os.path.join(folder, "slow_disk.so")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, str(PROGRAMS / "slow_disk.c"), "-ldl"], check=True, timeout=60)
    yield library
    shutil.rmtree(folder)


@pytest.fixture
def races(run_python, armed, free_port, slow_disk, tmp_path):
    """Let two ranks race; return what rank 0 and rank 1 have read in each round."""

    def run(fix, rounds, older, ahead):
        env = armed(tmp_path / "runs", DDP_PROBE_FIX=fix, LD_PRELOAD=slow_disk, SLOW_PATH="slow", SLOW_MS="15", OMP_NUM_THREADS="1")
        launch = ["-m", "torch.distributed.run", "--nproc_per_node=2", "--master_addr=127.0.0.1", "--master_port=%d" % free_port()]
        done = run_python([*launch, PROGRAMS / "slow_races.py", str(rounds), str(int(older)), str(int(ahead))], env=env, cwd=tmp_path, timeout=240)
        assert done.returncode == 0, done.stderr
        told = next(line for line in done.stdout.splitlines() if line.startswith("races "))
        assert len(json.loads(told[6:])) == rounds
        return json.loads(told[6:])

    return run


@pytest.mark.parametrize("older", [False, True], ids=["no older file", "older file"])
def test_without_remedies_rank_1_fails(races, older):
    """Without remedies a load that begins during the save fails, whether there is an older file or not."""
    assert all(isinstance(of_1, str) for _, of_1 in races(None, 4, older, True))


@pytest.mark.parametrize("older", [False, True], ids=["no older file", "older file"])
def test_all_ranks_read_one_state(races, older, whole):
    """With auto a load that begins during the save reads what is being saved, whether there is an older file or not."""
    told = races("auto", 50 if whole else 6, older, True)
    assert [of_1 for _, of_1 in told] == [of_0 for of_0, _ in told]


@pytest.mark.parametrize("older", [False, True], ids=["no older file", "older file"])
def test_a_load_around_the_begin_of_the_save(races, older, whole):
    """With auto a load around the save's begin reads what is being saved, or what was there before: the older file, or none."""
    for number, (of_0, of_1) in enumerate(races("auto", 50 if whole else 6, older, False), 1):
        assert of_0 == [number]
        assert of_1 in ([number], [number - 1] if older else "FileNotFoundError")
