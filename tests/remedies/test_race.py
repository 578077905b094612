"""A checkpoint that one process saves again and again while another loads it."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from remedy_runs import PROGRAMS


@pytest.fixture
def race(run_python, armed, tmp_path):
    """Let one process save in a loop while another loads; return what the two tell."""

    def run(writer, reader, loads, pause, met=0):
        def start(fix, *args):
            env = armed(tmp_path / "runs", DDP_PROBE_FIX=fix)
            return run_python([PROGRAMS / "race.py", *args], env=env, cwd=tmp_path, timeout=240)

        with ThreadPoolExecutor(max_workers=2) as pool:
            saving = pool.submit(start, writer, "save", pause)
            try:
                loading = start(reader, "load", loads, met)
            finally:
                (tmp_path / "stop").touch()
            saved = saving.result()
        assert loading.returncode == saved.returncode == 0, loading.stderr + saved.stderr
        told = {**json.loads(loading.stdout), **json.loads(saved.stdout)}
        print("writer %s, reader %s: %s" % (writer or "without", reader or "without", told))
        return told

    return run


def test_without_remedies_many_fail(race):
    """Without remedies many loads meet half a file, or halves of two."""
    told = race(None, None, 150, 0)
    assert told["failed"] + told["mixed"] > 15
    assert told["failed"] > 0


def test_no_load_fails(race, tmp_path, whole):
    """With auto in both processes none of many loads fails and none reads a mixture, though the writer never pauses."""
    loads = 1000 if whole else 250
    told = race("auto", "auto", loads, 0, met=loads // 10)
    assert (told["failed"], told["mixed"]) == (0, 0)
    assert told["loads"] >= loads
    assert told["met"] >= loads // 10
    assert sorted(path.name for path in tmp_path.glob("*") if path.name.startswith(".")) == []


def test_settled_load_alone(race, whole):
    """settled-load alone reads whole checkpoints from a writer that saves in place and pauses in between."""
    loads = 1000 if whole else 250
    told = race(None, "settled-load", loads, 0.12, met=loads // 50)
    assert (told["failed"], told["mixed"]) == (0, 0)
    assert told["met"] >= loads // 50


def test_atomic_save_alone(race, whole):
    """atomic-save alone is enough when every writer has it: the readers need nothing."""
    loads = 500 if whole else 250
    told = race("atomic-save", None, loads, 0, met=loads // 50)
    assert (told["failed"], told["mixed"]) == (0, 0)
    assert told["met"] >= loads // 50
