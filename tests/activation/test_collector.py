"""Loading the probe asks nothing of the garbage collector, and leaves it as it was."""

import json

import pytest

_PROGRAM = """
import gc, json, sys
full = []
gc.callbacks.append(lambda phase, info: full.append(info["generation"]) if phase == "stop" else None)
{before}
import torch
print(json.dumps({{"collections": len(full), "enabled": gc.isenabled(), "armed": "wrapt" in sys.modules}}))
"""


@pytest.fixture(scope="module")
def collected(run_python, armed, tmp_path_factory):
    """What the collector did during import torch: without the probe, with it, and with it in a program that has switched the collector off."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("collected")
    found = []
    for root, before in ((None, ""), (folder / "runs", ""), (folder / "more", "gc.disable()")):
        done = run_python(["-c", _PROGRAM.format(before=before)], env=armed(root, RANK="0", WORLD_SIZE="1"), cwd=folder)
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    assert [told["armed"] for told in found] == [False, True, True]
    return found


def test_no_collection_is_brought_on_by_loading(collected):
    """The collector runs as often as without the probe, give or take one in fifty."""
    plain, probed, _ = collected
    assert probed["collections"] <= plain["collections"] * 1.02 + 1


def test_the_collector_is_left_as_it_was(collected):
    """It is on afterwards if it was on, and off if the job had switched it off."""
    assert [told["enabled"] for told in collected] == [True, True, False]
