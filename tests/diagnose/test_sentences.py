"""What findings say in words: cut texts, numbers of what is left out, switches of frameworks."""

import json

import pytest

from ddp_probe.diagnose import judge
from ddp_probe.diagnose.words import cut, listed
from ddp_probe.read.load import from_lines

PACKAGES = "/env/lib/python3.11/site-packages/"
UNUSED = "Expected to have finished reduction in the prior iteration before starting a new one."


def test_a_cut_text_ends_in_an_ellipsis():
    """A text that is too long ends in one character that says so, within the limit; a short one stands as it is."""
    assert cut("one two", 7) == "one two"
    assert cut("one two three", 8) == "one two…"
    assert cut(" first\nsecond", 20) == "first"


def test_what_is_left_out_of_a_list_is_counted():
    """Of many items some are named, and the others counted."""
    assert listed(["a", "b"], 2) == "a, b"
    assert listed(["a", "b", "c", "d"], 2) == "a, b and 2 more"


def unused(*through):
    """Return the finding of a job whose model goes unused parameters, wrapped through these libraries."""
    frames = [{"file": PACKAGES + name} for name in through]
    lines = [
        {"event": "ddp.init", "phase": "begin", "rank": 0, "span": 1, "site": {"file": "/work/t.py", "line": 4}, "through": frames},
        {"event": "ddp.init", "phase": "end", "rank": 0, "span": 1},
        {"event": "process.end", "rank": 0, "exit_code": 1, "uncaught": True, "failure": {"type": "RuntimeError", "message": UNUSED}},
    ]
    return judge(from_lines("\n".join(map(json.dumps, lines)))).findings[0]


@pytest.mark.parametrize(
    ("through", "switch"),
    [
        (["lightning/pytorch/strategies/ddp.py"], "strategy='ddp_find_unused_parameters_true'"),
        (["pytorch_lightning/strategies/ddp.py"], "strategy='ddp_find_unused_parameters_true'"),
        (["transformers/trainer.py", "accelerate/accelerator.py"], "Give TrainingArguments ddp_find_unused_parameters=True"),
        (["accelerate/accelerator.py"], "DistributedDataParallelKwargs(find_unused_parameters=True)"),
        (["mmengine/runner/runner.py"], "model_wrapper_cfg"),
        ([], "find_unused_parameters=True"),
    ],
)
def test_a_framework_has_a_switch_of_its_own(through, switch):
    """Where a framework makes the wrap, the remedy names what the framework is to be given."""
    assert switch in unused(*through).remedy


def test_a_program_that_started_further_ranks_itself_is_one_of_them():
    """Rank 0 of a job whose first process started the others is named among the guilty."""
    log = (
        '{"event":"process.start","rank":0,"role":"solo"}\n{"event":"process.start","rank":1,"world_size":2,"role":"rank"}\n'
        '{"event":"process.end","rank":0,"world_size":2,"exit_code":1,"uncaught":true,"failure":{"type":"RuntimeError","message":"%s"}}\n'
        '{"event":"process.end","rank":1,"world_size":2,"exit_code":1,"uncaught":true,"failure":{"type":"RuntimeError","message":"%s"}}\n'
    )
    assert judge(from_lines(log % (UNUSED, UNUSED))).findings[0].ranks == [0, 1]
