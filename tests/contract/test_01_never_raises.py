"""Promise 1: it never raises into the job and never swallows the job's exception; the original is called exactly once."""

import json
import random

import pytest
from contract_pieces import PROGRAMS

from ddp_probe.activation.targets import TARGETS

_RANK = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}


def test_no_fault_of_any_probe_reaches_the_job(told, tmp_path):
    """Whatever method of a probe fails in whatever way, the original is called once and its answer or exception comes back as it is."""
    found = told("faults", tmp_path, DDP_PROBE_STRICT=None)
    assert found["found"] == []
    assert found["targets"] == len(TARGETS)
    assert found["probes"] == sorted({row.probe for row in TARGETS})


def test_the_job_learns_the_same_exceptions(training):
    """Exceptions that the job catches have the same type, text, arguments, cause and context as without the probe."""
    for plain, probed in zip(training["plain"].facts, training["probed"].facts):
        assert probed["exceptions"] == plain["exceptions"]
        assert [told[1] for told in plain["exceptions"]].count("nothing") < 2


@pytest.fixture(scope="module")
def alarms(whole):
    """How many alarms there are."""
    return 2000 if whole else 1000


@pytest.fixture(scope="module")
def alarmed(told, tmp_path_factory, alarms):
    """A loop of watched calls under alarms at random moments, and what the probe wrote of it."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("alarms")
    return told("alarms", folder, str(alarms), DDP_PROBE_STRICT=None), folder


def test_what_a_signal_handler_raises_reaches_the_job(alarmed, alarms):
    """Of a thousand alarms whose handler raises, a thousand reach the job: as many as without the probe, whatever class the handler raises."""
    found, _ = alarmed
    assert found["raised"] >= alarms
    assert found["reached"] == found["raised"]


def test_an_interrupted_call_is_told_to_its_end(alarmed, alarms, read_events):
    """Nearly every call that has begun in the file has its end there; what the handler raised is no fault of the probe."""
    events = read_events(alarmed[1] / "runs" / "latest")
    begun = {event["span"] for event in events if event["phase"] == "begin"}
    ended = [event["span"] for event in events if event["phase"] in ("end", "error")]
    assert len(ended) == len(set(ended)) > alarms
    assert len(begun ^ set(ended)) <= len(begun) // 100
    assert [event for event in events if event["event"] == "probe.fault"] == []


def test_a_preempted_job_leaves(run_program, armed, tmp_path):
    """SIGTERM 30 ms into the first torch.save reaches the training, which saves and leaves as it does without the probe."""
    said = [run_program("preempted", env=armed(root), cwd=tmp_path).stdout for root in (None, tmp_path / "runs")]
    assert said == ["preempted: saved and left\n"] * 2


_NAMES = ("wrapt", "msgspec", "structlog", "rich", "configparser")
_FILE = """
import argparse, sys
parser = argparse.ArgumentParser()
parser.add_argument("--ok", action="store_true", required=True)
parser.parse_args()
print("executed")
sys.modules["__main__"].EXECUTED.append(__name__)
MINE = True
"""


@pytest.mark.parametrize("first", ["", "wrapt,msgspec"])
def test_files_in_the_jobs_folder_are_the_jobs(run_python, armed, tmp_path, read_events, first):
    """A wrapt.py or a msgspec.py beside the script is executed when the job imports it, and then is the job's; the probe writes its events."""
    pytest.importorskip("torch")
    for name in _NAMES:
        (tmp_path / (name + ".py")).write_text(_FILE)
    (tmp_path / "job.py").write_bytes((PROGRAMS / "own_folder.py").read_bytes())
    env = armed(tmp_path / "runs", RANK="0", WORLD_SIZE="1")
    env["PYTHONPATH"] += ":%s" % tmp_path
    done = run_python(["job.py", "answer.json", ",".join(_NAMES), first], env=env, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "executed\n" * len(_NAMES)), done.stderr
    found = json.loads((tmp_path / "answer.json").read_text())
    assert found == {"by others": [], "mine": sorted(_NAMES), "still mine": sorted(_NAMES)}
    (file,) = (tmp_path / "runs").rglob("rank*.jsonl")
    assert [event["phase"] for event in read_events(file) if event["event"] == "checkpoint.load"] == ["begin", "end"] * 2


def test_a_signal_in_the_exception_hook_costs_nothing(told, tmp_path, whole):
    """At whatever bytecode of ours a handler raises, the job's hook is called once, the end is written, and the handler's exception is reported."""
    place = {**_RANK, "DDP_PROBE_MAX_BYTES": "4000000000"}
    found = told("hook_interrupted", tmp_path, "3000" if whole else "150", str(random.random()), **place)
    assert found["failed"] == {}
    assert found["tried"] > 200


def test_a_signal_at_exit_costs_no_line(told, tmp_path, whole):
    """At whatever bytecode of ours a handler raises at exit, the line of the exit call and the last line are written, and what it raised goes on."""
    found = told("exit_interrupted", tmp_path, "3000" if whole else "80", str(random.random()), **_RANK, DDP_PROBE_MAX_BYTES="4000000000")
    assert {name: one["failed"] for name, one in found.items()} == {"_tell_exit_call": {}, "_exit": {}}
    assert all(one["tried"] > 100 for one in found.values()), found


def test_a_signal_in_the_finalizer_of_a_child_is_one_in_a_finalizer(run_program, armed, tmp_path, read_events, whole):
    """What a handler raises in our finalizer ends a child of multiprocessing as it does in the job's last one; the job's have all run by then."""
    pytest.importorskip("torch")
    args = ("20" if whole else "3", str(random.random()))
    done = run_program("finalizer_interrupted", *args, env=armed(tmp_path / "runs"), cwd=tmp_path, timeout=280)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["bytecodes"] > 50, found["undisturbed"][:3]) == (True, ["first", "last", "ours"]), found
    codes = {}
    for kind, (in_the_jobs, *in_ours) in found["kinds"].items():
        assert [child[:3] for child in in_ours] == [in_the_jobs[:3]] * len(in_ours), kind
        assert in_the_jobs[2] == ["first", "last"]
        codes.update({child[3]: child[0] for child in in_ours})
    assert set(codes.values()) == {0, 1, 7}
    ends = {event["pid"]: event["exit_code"] for event in read_events(tmp_path / "runs" / "latest") if event["event"] == "process.end"}
    assert {pid: ends.get(pid) for pid in codes} == codes


HOOKS_BY_HAND = """
import sys, threading, torch
for args in ((None, None, None), (1, 2, 3), (ValueError, "text", None), (ValueError, None, None), (ValueError, ValueError, None)):
    try:
        print(sys.excepthook(*args))
    except BaseException as exc:
        print(type(exc).__name__, exc)
try:
    threading.excepthook(None)
except BaseException as exc:
    print(type(exc).__name__, exc)
"""


def test_hooks_that_are_called_by_hand_do_what_pythons_do(run_python, armed, clean_env, tmp_path):
    """A job that calls the hooks of exceptions with nothing in flight, or with what is not an exception, gets what Python's own hooks give it."""
    place = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    bare = run_python(HOOKS_BY_HAND, env=clean_env(**place), cwd=tmp_path)
    probed = run_python(HOOKS_BY_HAND, env=armed(tmp_path / "runs", **place), cwd=tmp_path)
    assert (bare.returncode, probed.returncode) == (0, 0), probed.stderr
    assert probed.stdout == bare.stdout


def test_calls_of_exit_raise_what_pythons_do(run_program, armed, clean_env, tmp_path, read_events):
    """Whatever a way to exit is given, the job catches the same exception with the same frames; only a call that leaves is the last line."""
    bare = run_program("calls_of_exit", env=clean_env(**_RANK), cwd=tmp_path)
    probed = run_program("calls_of_exit", env=armed(tmp_path / "runs", **_RANK), cwd=tmp_path)
    assert bare.stdout.count("SystemExit") == 8, bare.stdout
    assert (probed.stdout.split("\n"), probed.stderr) == (bare.stdout.split("\n"), bare.stderr)
    assert (bare.returncode, probed.returncode) == (6, 6)
    events = read_events(tmp_path / "runs" / "latest")
    assert [event["exit_code"] for event in events if event["event"] == "process.end"] == [6]
    assert [event for event in events if event["event"] == "probe.fault"] == []
