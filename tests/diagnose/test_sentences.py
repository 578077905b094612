"""What findings say in words: cut texts, numbers of what is left out, switches of frameworks."""

import json

import pytest

from ddp_probe.judging.judge import judge
from ddp_probe.reading.load_run import from_lines, load
from ddp_probe.shared.errors import ProbeError
from ddp_probe.wording.words import cut, listed

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


def on_cpu(count, ids):
    """Return the finding of ranks that give DDP these device_ids for a model on the CPU."""
    lines = []
    for rank in range(count):
        common = {"rank": rank, "local_rank": rank % 4, "host": "node%d" % (rank // 4)}
        placement = {"parameters": 4, "devices": {"cpu": {"count": 4}}, "majority": "cpu"}
        error = {"type": "ValueError", "message": "device_ids and output_device arguments only work with single-device GPU modules"}
        lines += [
            {"event": "process.start", "world_size": count, **common},
            {"event": "ddp.init", "phase": "begin", "span": 1, "device_ids": [ids(rank)], "placement": placement, **common},
            {"event": "ddp.init", "phase": "error", "span": 1, "failure": error, **common},
            {"event": "process.end", "exit_code": 1, "uncaught": True, "failure": error, **common},
        ]
    return judge(from_lines("\n".join(map(json.dumps, lines)))).findings[0]


@pytest.mark.parametrize(("ids", "told"), [(lambda rank: str(rank % 4), "[LOCAL_RANK]"), (str, "[RANK]"), (lambda _: "0", "[0]")])
def test_what_each_rank_has_of_its_own_is_told_so(ids, told):
    """Where each rank gives its own card, the sentence says what the numbers follow, and not the first rank's for all."""
    assert "device_ids %s on ranks 0-7" % told in on_cpu(8, ids).verdict


def test_evidence_that_is_left_out_is_counted():
    """Of eight ranks four show it, and the others are counted, at the line of the next one."""
    evidence = on_cpu(8, str).evidence
    assert [item.text for item in evidence][4:] == ["and 4 more"]
    assert evidence[4].file == "rank00004.node1.jsonl"
    assert len(on_cpu(4, str).evidence) == 4


def test_a_spawn_of_no_processes_says_so():
    """A program that starts 0 ranks is told that it did."""
    log = (
        '{"event":"launcher.start","launcher":"spawn"}\n'
        '{"event":"launcher.group","phase":"begin","span":1,"asked":0,"entrypoint":"main","site":{"file":"/work/t.py","line":9}}\n'
        '{"event":"launcher.group","phase":"end","span":1}\n{"event":"launcher.end","exit_code":0}'
    )
    assert "was asked for 0 processes at /work/t.py:9" in judge(from_lines(log)).undecided[0].because


def test_a_file_that_cannot_be_read_is_not_one_that_is_missing(tmp_path):
    """A rank whose file is there and cannot be read is not said to have left none."""
    log = '{"event":"process.start","rank":0,"world_size":2}\n{"event":"process.end","rank":0,"exit_code":0}\n'
    (tmp_path / "rank00000.node1.7.jsonl").write_text(log)
    (tmp_path / "rank00001.node1.8.jsonl").symlink_to(tmp_path / "rank00001.node1.8.jsonl")
    because = " ".join(answer.because for answer in judge(load([str(tmp_path)])).undecided)
    assert "The file of rank 1 cannot be read: Too many levels of symbolic links (rank00001.node1.8.jsonl)" in because
    assert "left no file" not in because


def test_a_run_that_cannot_be_read_says_why(tmp_path):
    """Where no file of a run can be read, the answer says why, and not that no rank wrote."""
    (tmp_path / "rank00001.node1.8.jsonl").symlink_to(tmp_path / "rank00001.node1.8.jsonl")
    because = judge(load([str(tmp_path)])).undecided[0].because
    assert "cannot be read: Too many levels of symbolic links" in because
    assert "No rank left a file" not in because


def test_a_file_without_an_event_is_not_called_forbidden(tmp_path):
    """A file that holds nothing is followed by the advice to see why the program ended early, and not by one about access rights."""
    (tmp_path / "rank00000.node1.1.jsonl").write_text("")
    (question,) = judge(load([str(tmp_path)])).undecided
    assert question.because == "The files of the run cannot be read: It contains no event (rank00000.node1.1.jsonl)."
    assert question.next.startswith("Look at what the launch printed first")


def test_a_folder_that_cannot_be_read_is_not_one_without_runs(tmp_path, monkeypatch):
    """Where the folder of the runs cannot be read, that is said, with the real error."""
    (tmp_path / "runs").symlink_to(tmp_path / "runs")
    monkeypatch.setenv("DDP_PROBE_DIR", str(tmp_path / "runs"))
    with pytest.raises(ProbeError) as caught:
        load([])
    assert "cannot be read: Too many levels of symbolic links" in str(caught.value)


def test_both_lists_of_keys_are_told():
    """Of a checkpoint that does not fit, the names on either side are told, and how many more there are."""
    missing = ", ".join('"head.%d.weight"' % number for number in range(5))
    text = "Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: %s. \n\tUnexpected key(s) in state_dict: %s. "
    for unexpected, told in (('"neck.bias"', "neck.bias"), ('"a", "b", "c", "d [...] z"', "a, b, c and others")):
        error = {"type": "RuntimeError", "message": text % (missing, unexpected)}
        end = {"event": "process.end", "rank": 0, "exit_code": 1, "uncaught": True, "failure": error}
        verdict = judge(from_lines(json.dumps(end))).findings[0].verdict
        lists = "head.0.weight, head.1.weight, head.2.weight and 2 more of the model not in the file; %s of the file not in the model"
        assert lists % told in verdict
