"""A launcher asks the vendor's tool what the cards do: once for each host, in lines of its own log."""

import os
from pathlib import Path

import pytest

_TOOLS = Path(__file__).resolve().parent.parent / "accelerator" / "tools"
_JOB = """
import glob, os, time, torch.distributed as dist
dist.init_process_group("gloo")
open(os.path.join(os.environ["CARDS_AT"], os.environ["RANK"]), "w").write("0 40 512 %d -" % os.getpid())
deadline = time.time() + 60
while time.time() < deadline:
    text = "".join(open(name).read() for name in glob.glob("runs/latest/launcher.*.jsonl"))
    if WANTED in text:
        break
    time.sleep(0.1)
dist.barrier()
dist.destroy_process_group()
"""


@pytest.fixture
def launched(torchrun, armed, read_events, tmp_path):
    """Launch two ranks on card 0 beside a tool of our own making; return the lines of the launcher about cards, and the pids of the ranks."""

    def launch(wanted, **more):
        (tmp_path / "cards").mkdir()
        (tmp_path / "bin").mkdir()
        os.symlink(str(_TOOLS / "efsmi"), str(tmp_path / "bin" / more.pop("tool", "efsmi")))
        script = tmp_path / "job.py"
        script.write_text(_JOB.replace("WANTED", repr(wanted)))
        path = "%s:%s" % (tmp_path / "bin", os.environ["PATH"])
        done = torchrun(script, env=armed(tmp_path / "runs", PATH=path, CARDS_AT=str(tmp_path / "cards"), **more), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        events = read_events(tmp_path / "runs" / "latest")
        ranks = {event["rank"]: str(event["pid"]) for event in events if event["event"] == "process.start"}
        return [event for event in events if event["event"] == "cards.state"], ranks

    return launch


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["efsmi", "nvidia-smi"])
def test_the_launcher_writes_what_the_cards_do(launched, tool):
    """Two ranks on card 0: a line says that this card is busy and the seven others idle; a tool that lists processes names both ranks."""
    states, ranks = launched('"utilisation":80.0', DDP_PROBE_CARDS="0.5", tool=tool)
    last = states[-1]
    assert all("rank" not in state for state in states)
    assert (last["tool"], len(last["cards"])) == (tool, 8)
    assert last["cards"][0]["utilisation"] == 80.0
    assert {card["utilisation"] for card in last["cards"][1:]} == {0.0}
    assert set(last["cards"][0].get("processes", {})) == (set(ranks.values()) if tool == "nvidia-smi" else set())
    assert ("DEV-Util" in states[0].get("text", "")) is (tool == "efsmi")


def test_nobody_asks_unless_told_to(launched):
    """Without DDP_PROBE_CARDS no tool is started."""
    assert launched("")[0] == []
