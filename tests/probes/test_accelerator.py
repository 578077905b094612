"""What the probes see on an accelerator that is not NVIDIA's: the simulated one."""

import re

import pytest
from accelerator.fixtures import gcu_env  # noqa: F401  # a fixture is found by its name

JOB = """
import gc, os, torch, torch_gcu
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
kind = torch_gcu.DEVICE_TYPE
rank = int(os.environ["LOCAL_RANK"])
dist.init_process_group("eccl")
torch_gcu.set_device(rank)
wrong = torch.nn.Linear(4, 2).to("%s:0" % kind)
try:
    DDP(wrong, device_ids=[1])
except ValueError as exc:
    print("wrong", exc)
mixed = torch.nn.Sequential(torch.nn.Linear(4, 2).to("%s:%d" % (kind, rank)), torch.nn.Linear(2, 2))
try:
    DDP(mixed)
except ValueError as exc:
    print("mixed", exc)
right = torch.nn.Linear(4, 2).to("%s:%d" % (kind, rank))
torch.save(right.state_dict(), "rank%d.pt" % rank)
torch.load("rank%d.pt" % rank)
del wrong, mixed, right
gc.collect()
dist.destroy_process_group()
"""


@pytest.fixture
def job(tmp_path, torchrun, armed, gcu_env, read_events, repo):  # noqa: F811  # the fixture, by its name
    """The events of rank 1 of a two-rank job on the simulated cards, and what it said on stderr."""
    script = tmp_path / "job.py"
    script.write_text(JOB)
    path = [str(repo / "sitecustomize_templates"), str(repo), gcu_env["PYTHONPATH"]]
    done = torchrun(script, env=armed(tmp_path / "runs", **{**gcu_env, "PYTHONPATH": ":".join(path)}))
    assert done.returncode == 0, done.stderr
    return read_events(next((tmp_path / "runs" / "latest").glob("rank00001.*.jsonl"))), done.stderr


def test_on_the_simulated_cards(job):
    """A wrong device_ids, which DDP accepts in silence, is said beforehand with rank and line, and so is a mixed model."""
    events, stderr = job
    wraps = [event for event in events if event["event"] == "ddp.init" and event["phase"] == "begin"]
    kind = next(iter(wraps[0]["placement"]["devices"])).split(":")[0]
    assert wraps[0]["placement"]["devices"] == {"%s:0" % kind: {"count": 2, "elements": 10, "bytes": 40}}
    assert wraps[0]["device_ids"] == [1]
    assert wraps[0]["last_set_device"].startswith("torch_gcu.gcu.set_device(1) at ")
    assert "Linear.to(%s:0) at " % kind in wraps[0]["last_move"]
    assert [leaf["name"] for leaf in wraps[1]["placement"]["off_majority"]] == ["1.weight", "1.bias"]
    warnings = [event["text"] for event in events if event["event"] == "probe.warning"]
    assert "job.py:11: the parameters are on %s:0 and device_ids is [1]; the wrap succeeds and the first step fails" % kind in warnings[0]
    assert "job.py:16: the parameters are on cpu and %s:1 (1.weight is not on %s:1); the wrap is about to fail" % (kind, kind) in warnings[1]
    said = re.sub(r" \(said once for [^)]*\)", "", stderr)
    by_rank_0 = [warnings[0].replace("rank 1 ", "rank 0 ", 1), re.sub(r"(rank |%s:)1" % kind, r"\g<1>0", warnings[1])]
    for alike in zip(warnings, by_rank_0):
        assert sum(said.count("ddp_probe: %s" % text) for text in alike) == 1  # by whoever came first
    groups = [event for event in events if event["event"] == "dist.init_process_group" and event["phase"] == "end"]
    assert groups[0]["backend"] == "eccl"
    assert sum(event["event"] == "device.set" and event["phase"] == "begin" for event in events) == 1
    load = next(event for event in events if event["event"] == "checkpoint.load" and event["phase"] == "end")
    assert load["locations"] == ["%s:1" % kind]
    card = next(card for card in wraps[0]["accelerators"] if card["name"] == "gcu")
    assert (card["device_type"], card["initialised"], card["current"], card["count"]) == (kind, True, 1, 8)
