"""Promise 5: it never writes to stdout; to stderr only warnings, one line each, and nothing with DDP_PROBE_ECHO=off."""

import json
import os
import re

import pytest
from contract_pieces import WAYS
from ledger_books import Book, Call, born

from ddp_probe.traced.hangs.others import Others
from ddp_probe.traced.hangs.standstill import Standstill

NOTE = " (said once for all ranks of this host that see the same)"


def _without_warnings(text):
    return sorted(line for line in text.splitlines() if not line.startswith("ddp_probe: "))


def test_stdout_of_a_healthy_launch_is_the_same(training):
    """Two ranks under torchrun print the same lines with the probe as without."""
    plain, probed = (sorted(training[how].done.stdout.splitlines()) for how in ("plain", "probed"))
    assert probed == plain
    assert "done" in plain


def test_stderr_of_a_healthy_launch_differs_by_warnings_alone(training):
    """Lines on stderr that do not start with 'ddp_probe: ' are those of the launch without the probe, torch's warnings and their places too."""
    plain, probed = (training[how].done.stderr for how in ("plain", "probed"))
    assert _without_warnings(probed) == _without_warnings(plain)
    assert [line for line in plain.splitlines() if line.startswith("ddp_probe")] == []  # a path of the checkout may hold the name


def test_each_line_on_stderr_is_a_warning_in_a_file(training, read_events):
    """Each line on stderr is the text of a probe.warning event, names the rank and how to read on, and is said once for all ranks."""
    said = [line[len("ddp_probe: ") :] for line in training["probed"].done.stderr.splitlines() if line.startswith("ddp_probe: ")]
    events = [event for path in training["probed"].runs.rglob("*.jsonl") for event in read_events(path)]
    warned = {event["text"] for event in events if event["event"] == "probe.warning"}
    assert {line.replace(NOTE, "") for line in said} <= warned
    assert len(said) == len({re.sub(r"^rank \d+", "", text) for text in warned})
    assert all(line.startswith("rank ") and ". Read on: python -m ddp_probe report" in line for line in said)


@pytest.mark.sample(4, of="failing ways")
@pytest.mark.parametrize("way", WAYS)
def test_stdout_of_a_failing_job_is_the_same(failures, way):
    """A job that fails leaves the same bytes on stdout."""
    assert failures[way]["probed"].out == failures[way]["plain"].out


ASK = """
import sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
try:
    torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1), device_ids=[0])
except ValueError:
    print("failed")
dist.destroy_process_group()
"""


@pytest.mark.parametrize(("echo", "count"), [("off", 0), ("warn", 1), ("nonsense", 2)])
def test_echo_off_says_nothing_at_all(run_python, armed, free_port, tmp_path, read_events, echo, count):
    """With DDP_PROBE_ECHO=off a placement that fails is in the file and not on stderr; by default it is one line, beside one for a wrong setting."""
    place = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    done = run_python(ASK, env=armed(tmp_path / "runs", DDP_PROBE_ECHO=echo, **place), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "failed\n"), done.stderr
    lines = [line for line in done.stderr.splitlines() if "ddp_probe" in line]
    assert len(lines) == count, lines
    (file,) = (tmp_path / "runs").rglob("rank*.jsonl")
    assert [event["warning"] for event in read_events(file) if event.get("warning")], json.dumps(read_events(file))


class _Log:
    def point(self, event):
        self.event = event


@pytest.mark.parametrize(
    ("variable", "value", "count"), [("DDP_PROBE_ECHO", "warn", 1), ("DDP_PROBE_ECHO", "off", 0), ("DDP_PROBE_REPORT", "off", 0)]
)
def test_a_hang_is_one_line(variable, value, count, tmp_path, capfd, monkeypatch):
    """A standstill is one line on stderr, however long its text is, and none if a person has asked for silence; nothing is on stdout."""
    monkeypatch.setenv(variable, value)
    book = Book(tmp_path / "rank00000.here.1.ledger", 0, 1, os.getpid(), "here", born(os.getpid()), "00", 100.0)
    book.call(Call(ago=90.0))
    book.write()
    Standstill(Others(str(tmp_path), "here", lambda _: True), 10.0, _Log(), lambda _: "Rank 0\nwaits. " * 9).look()
    out, err = capfd.readouterr()
    assert (out, len(err.splitlines())) == ("", count)
    assert err.startswith("ddp_probe: No rank" * count)
