"""The state machine: its table is the one in the docs, each transition does what it says, and one that is cut short is completed."""

import json
from pathlib import Path
from typing import Any, Dict

import pytest

from ddp_probe.activation.lifecycle import EVENTS, STATES, TABLE

_PAGE = "docs/contributing/decisions/0022-lifecycle.md"


def _rows(repo: Path) -> Dict[str, Dict[str, str]]:
    """Return the page's table: by event and state, the name of the transition."""
    lines = [line.strip("| ").split(" | ") for line in (repo / _PAGE).read_text().splitlines() if line.startswith("| ")]
    (head, *rows) = lines[: len(EVENTS) + 1]
    return {row[0].strip("`"): dict(zip(head[1:], (cell.strip("` ") for cell in row[1:]))) for row in rows}


def test_the_page_shows_the_table(repo: Path) -> None:
    """The table of states and transitions in the docs is the code's own."""
    code = {event: {state: TABLE[event, state].__name__ if (event, state) in TABLE else "-" for state in STATES} for event in EVENTS}
    assert _rows(repo) == code


def test_every_state_can_be_left_and_reached() -> None:
    """Each state but off is entered by a transition, and each state has an event that does something."""
    assert {state for _, state in TABLE} == set(STATES)
    assert {event for event, _ in TABLE} == set(EVENTS)


_STATES = """
import json, os, sys
import ddp_probe
from ddp_probe import activation
seen = [activation.state()]
def note(step):
    step()
    seen.append(activation.state())
note(activation.start)
note(ddp_probe.activate)
note(ddp_probe.restore)
note(activation.start)
note(ddp_probe.activate)
note(ddp_probe.activate)
reader, writer = os.pipe()
if not os.fork():
    note(activation.start)
    note(ddp_probe.activate)
    note(ddp_probe.restore)
    note(ddp_probe.restore)
    os.write(writer, json.dumps(seen).encode())
    os._exit(0)
os.wait()
print(json.dumps([json.loads(os.read(reader, 9999)), activation.state()]))
"""


def test_a_life(run_python: Any, clean_env: Any, tmp_path: Path) -> None:
    """Events take a process from off through armed to restored and back, and its fork from child through promoted to restored."""
    done = run_python(_STATES, env=clean_env(DDP_PROBE_DIR=str(tmp_path / "runs")), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    child, parent = json.loads(done.stdout)
    assert child == ["off", "off", "armed", "restored", "restored", "armed", "armed", "child", "promoted", "restored", "restored"]
    assert parent == "armed"


_GROUP = """
import multiprocessing, os, sys

def work(folder):
    import torch
    import torch.distributed as dist
    import ddp_probe
    ddp_probe.activate()
    torch.save(1, "x.pt")
    dist.init_process_group("gloo", init_method="file://" + folder + "/meet", rank=0, world_size=1)
    dist.destroy_process_group()

if __name__ == "__main__":
    child = multiprocessing.get_context(sys.argv[1]).Process(target=work, args=(os.getcwd(),))
    child.start()
    child.join()
    sys.exit(child.exitcode)
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_helper_that_arms_itself_makes_a_group(
    run_python: Any, probe_env: Any, script: Any, runs: Any, read_events: Any, tmp_path: Path, method: str
) -> None:
    """A helper that has imported torch.distributed, and then calls activate(), calls init_process_group once."""
    pytest.importorskip("torch")
    done = run_python([script(_GROUP), method], env=probe_env(), cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    events = [event["event"] + "." + event["phase"] for event in read_events(runs.only())]
    assert [name for name in events if name.startswith(("checkpoint.save", "dist.init"))] == [
        "checkpoint.save.begin",
        "checkpoint.save.end",
        "dist.init_process_group.begin",
        "dist.init_process_group.end",
    ]


_CUT_SHORT = """
import io, json, os, random, signal, sys
import torch
import ddp_probe
from ddp_probe import activation

ORIGINAL = torch.save

class Interrupted(Exception):
    pass

def handler(number, frame):
    raise Interrupted

def until_done(step):
    "Call it again until no alarm cuts it short."
    cut, wait = 0, chance.uniform(0.00005, 0.004)
    while True:
        try:
            signal.setitimer(signal.ITIMER_REAL, wait)
            step()
            signal.setitimer(signal.ITIMER_REAL, 0)
            return cut
        except Interrupted:
            cut, wait = cut + 1, wait * 2

def lines():
    found = [os.path.join(folder, name) for folder, _, names in os.walk(os.environ["DDP_PROBE_DIR"]) for name in names if name.endswith(".jsonl")]
    return sum('"checkpoint.save"' in line for path in found for line in open(path))

def saves():
    before = lines()
    torch.save(1, io.BytesIO())
    return lines() - before

signal.signal(signal.SIGALRM, handler)
chance = random.Random(int(sys.argv[1]))
ddp_probe.activate()
ddp_probe.restore()
cut = {"activate": 0, "restore": 0, "promote": 0}
for number in range(int(sys.argv[2])):
    cut["activate"] += until_done(ddp_probe.activate)
    assert (activation.state(), saves()) == ("armed", 2), number
    reader, writer = os.pipe()
    if not os.fork():
        assert (activation.state(), saves()) == ("child", 0), number
        times = until_done(ddp_probe.activate)
        assert (activation.state(), saves()) == ("promoted", 2), number
        os.write(writer, b"%d" % times)
        os._exit(0)
    assert os.wait()[1] == 0, number
    cut["promote"] += int(os.read(reader, 99))
    os.close(reader), os.close(writer)
    cut["restore"] += until_done(ddp_probe.restore)
    assert (activation.state(), saves(), torch.save is ORIGINAL) == ("restored", 0, True), number
print(json.dumps(cut))
"""


def test_what_a_handler_cuts_short_is_completed(run_python: Any, clean_env: Any, tmp_path: Path) -> None:
    """A signal handler that raises in the middle of activate() or restore() leaves nothing that the next call does not complete."""
    pytest.importorskip("torch")
    done = run_python(["-c", _CUT_SHORT, "7", "10"], env=clean_env(DDP_PROBE_DIR=str(tmp_path / "runs")), cwd=tmp_path, timeout=240)
    assert done.returncode == 0, done.stderr
    assert all(json.loads(done.stdout).values()), done.stdout
