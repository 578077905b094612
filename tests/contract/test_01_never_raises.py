"""Promise 1: it never raises into the job and never swallows the job's exception; the original is called exactly once."""

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
