"""Promise 1: it never raises into the job and never swallows the job's exception; the original is called exactly once."""

import pytest

from ddp_probe.activation.targets import TARGETS


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
def alarmed(told, tmp_path_factory):
    """A loop of watched calls under 2 000 alarms at random moments, and what the probe wrote of it."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("alarms")
    return told("alarms", folder, DDP_PROBE_STRICT=None), folder


def test_what_a_signal_handler_raises_reaches_the_job(alarmed):
    """Of 2 000 alarms whose handler raises, 2 000 reach the job: as many as without the probe, whatever class the handler raises."""
    found, _ = alarmed
    assert found["raised"] >= 2000
    assert found["reached"] == found["raised"]


def test_an_interrupted_call_is_told_to_its_end(alarmed, read_events):
    """Nearly every call that has begun in the file has its end there; what the handler raised is no fault of the probe."""
    events = read_events(alarmed[1] / "runs" / "latest")
    begun = {event["span"] for event in events if event["phase"] == "begin"}
    ended = [event["span"] for event in events if event["phase"] in ("end", "error")]
    assert len(ended) == len(set(ended)) > 500
    assert len(begun ^ set(ended)) <= len(begun) // 100
    assert [event for event in events if event["event"] == "probe.fault"] == []


def test_a_preempted_job_leaves(run_program, armed, tmp_path):
    """SIGTERM 30 ms into the first torch.save reaches the training, which saves and leaves as it does without the probe."""
    said = [run_program("preempted", env=armed(root), cwd=tmp_path).stdout for root in (None, tmp_path / "runs")]
    assert said == ["preempted: saved and left\n"] * 2
