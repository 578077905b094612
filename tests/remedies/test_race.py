"""A checkpoint that one process saves again and again while another loads it."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from remedy_runs import PROGRAMS


@pytest.fixture
def race(run_python, armed, tmp_path):
    """Let one process save in a loop while another loads; return what the two tell."""

    def run(writer, reader, loads, pause):
        def start(fix, *args):
            env = armed(tmp_path / "runs", DDP_PROBE_FIX=fix)
            return run_python([PROGRAMS / "race.py", *args], env=env, cwd=tmp_path, timeout=240)

        with ThreadPoolExecutor(max_workers=2) as pool:
            saving = pool.submit(start, writer, "save", pause)
            try:
                loading = start(reader, "load", loads)
            finally:
                (tmp_path / "stop").touch()
            saved = saving.result()
        assert loading.returncode == saved.returncode == 0, loading.stderr + saved.stderr
        told = {**json.loads(loading.stdout), **json.loads(saved.stdout)}
        print("writer %s, reader %s: %s" % (writer or "without", reader or "without", told))
        return told

    return run


def test_without_remedies_many_fail(race):
    """Without remedies many of 300 loads meet half a file, or halves of two."""
    told = race(None, None, 300, 0)
    assert told["failed"] + told["mixed"] > 30
    assert told["failed"] > 0


def test_a_thousand_loads(race, tmp_path):
    """With auto in both processes none of 1 000 loads fails and none reads a mixture, though the writer never pauses."""
    told = race("auto", "auto", 1000, 0)
    assert (told["loads"], told["failed"], told["mixed"]) == (1000, 0, 0)
    assert told["met"] > 100
    assert sorted(path.name for path in tmp_path.glob("*") if path.name.startswith(".")) == []


def test_settled_load_alone(race):
    """settled-load alone reads whole checkpoints from a writer that saves in place and pauses in between."""
    told = race(None, "settled-load", 1000, 0.12)
    assert (told["failed"], told["mixed"]) == (0, 0)
    assert told["met"] > 10


def test_atomic_save_alone(race):
    """atomic-save alone is enough where every writer has it: the readers need nothing."""
    told = race("atomic-save", None, 500, 0)
    assert (told["failed"], told["mixed"]) == (0, 0)
    assert told["met"] > 10
