"""Memory over time on eight simulated cards: what the report says of a leak, a hungry rank and ranks on one card, and that healthy jobs are clear."""

import json
import os
from pathlib import Path

import pytest
from accelerator.fixtures import gcu_env  # noqa: F401  # a fixture is found by its name

from ddp_probe.showing import event_line

_TOOLS = Path(__file__).resolve().parent.parent / "accelerator" / "tools"
_JOB = """
import glob, os, re, time, torch, torch_gcu, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
rank, kind = int(os.environ["LOCAL_RANK"]), torch_gcu.DEVICE_TYPE
number = NUMBER
card = PLACE
load = "%d 80 512 %d %s" % (number, os.getpid(), WHY)
open(os.path.join(os.environ["CARDS_AT"], str(rank)), "w").write(load)
SET_DEVICE
dist.init_process_group("eccl")
model = WRAP(torch.nn.Linear(64, 64).to(card))
kept = [torch.empty(HUNGER << 18, device=card)] if HUNGER else []
for epoch in range(12):
    for step in range(4):
        kept.append(torch.empty(LEAK << 18, device=card)) if LEAK else None
        model(torch.ones(2, 64, device=card)).sum().backward()
    torch.save({"a": 1}, "rank%d.pth" % rank)
until = time.monotonic() + 60
while UNTIL and time.monotonic() < until:
    if re.search(UNTIL, "".join(open(name).read() for name in glob.glob("runs/latest/launcher.*.jsonl"))):
        break
    time.sleep(0.1)
dist.destroy_process_group()
"""
# A line after four looks or more in which a card has been busy for a quarter of the time.
_BUSY = r"""r'"utilisation_mean":(?:2[5-9]|[3-9][0-9]|100).*"looks":(?:[4-9]|[0-9][0-9])'"""
_DEFAULTS = {
    "NUMBER": "rank",
    "PLACE": "'%s:%d' % (kind, number)",
    "WRAP": "DDP",
    "WHY": "'-'",
    "SET_DEVICE": "torch_gcu.set_device(rank)",
    "HUNGER": "0",
    "LEAK": "0",
    "UNTIL": "''",
}


@pytest.fixture
def told(run_python, armed, gcu_env, repo, tmp_path, torchrun):  # noqa: F811  # the fixture, by its name
    """Run a job on the cards, beside a tool that shows what the ranks write of themselves; return the findings as id, ranks and verdict."""

    def run(nproc=2, tool="efsmi", **changes):
        script = tmp_path / "job.py"
        text = _JOB
        for name, value in {**_DEFAULTS, **changes}.items():
            text = text.replace(name, value)
        script.write_text(text)
        (tmp_path / "cards").mkdir()
        (tmp_path / "bin").mkdir()
        os.symlink(str(_TOOLS / "efsmi"), str(tmp_path / "bin" / tool))
        found = {**gcu_env, "PYTHONPATH": ":".join([str(repo / "sitecustomize_templates"), str(repo), gcu_env["PYTHONPATH"]])}
        env = armed(tmp_path / "runs", **found, CARDS_AT=str(tmp_path / "cards"), PATH="%s:%s" % (tmp_path / "bin", os.environ["PATH"]))
        done = torchrun(script, nproc=nproc, env={**env, "DDP_PROBE_CARDS": "0.2"}, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        report = run_python(["-m", "ddp_probe", "report", "--json", tmp_path / "runs" / "latest"], timeout=120)
        return [(one["id"], one["ranks"], one["verdict"]) for one in json.loads(report.stdout)["findings"] if one["id"] != "DDP231"]

    return run


def test_a_leak(told):
    """Each rank keeps 8 MiB of each step: the report says so, with both sizes, the rate, and that it is in the steps."""
    (found,) = told(LEAK="8")
    assert found[:2] == ("DDP229", [0, 1])
    assert "8.00 MiB a step, in the steps" in found[2]


def test_a_hungry_rank(told):
    """Rank 2 holds 700 MiB more than the two others with the same model: it alone is named, with what the others hold."""
    (found,) = told(nproc=3, HUNGER="(700 if rank == 2 else 0)")
    assert found[:2] == ("DDP227", [2])
    assert "held up to 700 MiB" in found[2]
    assert "before 'checkpoint.save begin' at" in found[2]


def test_a_card_that_is_too_hot(told):
    """While it lowers its clock because of heat, card 1 is named with the rank that works there."""
    (found,) = told(tool="nvidia-smi", WHY="'hw_thermal' if rank == 1 else '-'", UNTIL="'\"hw_thermal\":[4-9]'")
    assert found[:2] == ("DDP235", [1])
    assert "card 1 (rank 1): slowed down because it is too hot (hw_thermal)" in found[2]
    assert "at up to 92 °C" in found[2]


@pytest.mark.slow
def test_eight_ranks_on_card_0(told):
    """Eight ranks that choose no card are one finding, that of the card they never chose; what the tool shows of it is no second one."""
    (found,) = told(nproc=8, NUMBER="0", PLACE="kind", SET_DEVICE="")
    assert found[:2] == ("DDP303", list(range(8)))


@pytest.mark.slow
@pytest.mark.parametrize(("tool", "named"), [("efsmi", "DDP317"), ("nvidia-smi", "DDP315")])
def test_ranks_that_the_tool_alone_sees_on_card_0(told, tool, named):
    """If no rank wraps its model, the load of card 0 alone tells, and the tool's list of processes proves it."""
    ((identity, _, verdict),) = told(nproc=3, tool=tool, NUMBER="0", SET_DEVICE="", WRAP="torch.nn.Sequential", UNTIL=_BUSY)
    assert identity == named
    assert "ard 0 of " in verdict


def test_a_healthy_job(told):
    """Ranks on cards of their own that hold what they need give no finding."""
    assert told(UNTIL=_BUSY) == []


def test_a_line_about_cards_is_short_in_a_terminal():
    """What `logs` prints of cards.state is the load of each card and why one is slow."""
    cards = [{"index": 0, "utilisation": 85.5, "memory": 7, "throttled": ["hw_thermal"]}, {"index": 1, "utilisation": 0.5}]
    text = event_line.line(0.0, {"event": "cards.state", "phase": "point", "tool": "efsmi", "looks": 3, "cards": cards}, width=120)
    assert text.endswith("cards.state  tool=efsmi 0: 85.5 % slowed down (hw_thermal), 1: 0.5 %")
