"""A plain log beside a run is weaker evidence."""

import pytest

from ddp_probe.judging.judge import judge
from ddp_probe.reading import text
from ddp_probe.reading.load_run import from_lines
from ddp_probe.reading.model import Run

UNUSED = "Expected to have finished reduction in the prior iteration before starting a new one."
KILLED = (
    """
{"event":"process.start","rank":0,"world_size":1}
{"event":"process.end","rank":0,"exit_code":1,"uncaught":true,"failure":{"type":"RuntimeError","message":"%s"}}
"""
    % UNUSED
)
FINE = '{"event":"process.start","rank":0,"world_size":1}\n{"event":"process.end","rank":0,"exit_code":0}'
PORT = "RuntimeError: The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).\n"
PEER = "RuntimeError: Connection closed by peer [127.0.0.1]:41680\n"


def beside(events: str, *logs: str) -> Run:
    """Return the run of these events, with plain logs that were named beside it."""
    run = from_lines(events)
    for number, log in enumerate(logs):
        read = text.read(log.encode().splitlines(keepends=True), "other%d.log" % number)
        run.texts.append(read)
        run.failures += read.failures
    return run


def test_a_finding_from_events_comes_first():
    """What the events prove is the cause; what another log says is told after it, with low confidence, and not as what followed from it."""
    findings = judge(beside(KILLED, "1\n2\n" + PORT)).findings
    assert [(finding.id, finding.confidence) for finding in findings] == [("DDP613", "high"), ("DDP409", "low")]
    assert findings[0].consequences == []


@pytest.mark.parametrize("log", ["RuntimeError: " + UNUSED, PEER])
def test_a_log_adds_nothing_to_what_is_known(log):
    """The same cause in the log, or a loss of peers, is no second finding."""
    assert [finding.id for finding in judge(beside(KILLED, log)).findings] == ["DDP613"]


def test_without_a_finding_from_events_the_log_speaks():
    """Where the events hold no cause, that of the log is told with low confidence."""
    assert [(finding.id, finding.confidence) for finding in judge(beside(FINE, PORT)).findings] == [("DDP409", "low")]


def test_a_rule_that_declined_the_events_does_not_find_them_again_beside_a_log():
    """A rule's texts are looked for in plain logs alone: its check has judged the events."""
    restart = (
        '{"event":"process.start","rank":0,"world_size":1}\n{"event":"process.end","rank":0,"exit_code":1,"uncaught":true,'
        '"failure":{"type":"RuntimeError","message":"Gloo connectFullMesh failed with [../gloo/transport/tcp/pair.cc:144] no error"}}'
    )
    assert judge(beside(restart, "all is well\n")).findings == []
