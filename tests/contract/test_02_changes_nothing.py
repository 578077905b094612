"""Promise 2: it never changes an argument, a result, a signature, isinstance, inspect or pickling of what it wraps."""

import json

import pytest


@pytest.fixture(scope="module")
def likeness(told, tmp_path_factory):
    """What the real targets look like once patched, and the folder that holds their pickles."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("likeness")
    return told("likeness", folder), folder


def test_a_patched_target_answers_as_its_original(likeness):
    """Signature, annotations, type hints, source, isinstance, copy, pickle and equality of each real target are those of the original."""
    found, _ = likeness
    assert found["differences"] == []
    assert {"torch.serialization.load", "mmengine.runner.runner.Runner.wrap_model", "mmengine.dist.utils.init_dist"} <= set(found["targets"])


def test_pickles_are_read_where_there_is_no_probe(likeness, run_program, clean_env):
    """What pickle and cloudpickle make of a patched target is read as the original where ddp_probe cannot be imported."""
    found, folder = likeness
    done = run_program("read_pickles", folder / "likeness.json", env=clean_env(PYTHONPATH=None), cwd=folder)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["wrong"] == []
    assert told["probe"] == []
    assert told["read"] == len(found["pickles"]) > 15


def test_wrapped_classes_stay_themselves(training):
    """A model that was moved, wrapped, saved and loaded under the probe has the type, the device_ids and the bytes that it has without."""
    for plain, probed in zip(training["plain"].facts, training["probed"].facts):
        for name in ("wrapper", "saved", "file", "member", "argv"):
            assert probed[name] == plain[name]


def test_a_lock_on_a_checkpoint_is_held_as_long_as_without(run_program, armed, tmp_path):
    """A POSIX lock on a checkpoint outlasts each step of a load that it outlasts without the probe: nothing is opened and closed by its path."""
    pytest.importorskip("torch")
    told = []
    for root in (None, tmp_path / "runs"):
        done = run_program("locks", tmp_path / "answer.json", env=armed(root), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        told.append(json.loads((tmp_path / "answer.json").read_text()))
    assert told[1] == told[0]
    assert told[0][0] == ["locked", True]
    assert list((tmp_path / "runs").rglob("rank*.jsonl"))
