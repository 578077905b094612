"""Fluent Bit itself runs the configuration of docs/pipelines/fluent-bit.yaml; skipped if it is not installed."""

import json
from typing import Any, Dict, Iterator, List, NamedTuple

import pytest
from collector_scene import Entry, Key, Received, Scene, key, nanoseconds, running, wait_for
from pipeline_pages import Place, configured, found, is_alert

pytestmark = pytest.mark.slow


class Outcome(NamedTuple):
    """What was written, what arrived in Loki's place, and what was printed as an alert."""

    expected: Dict[Key, Dict[str, Any]]
    entries: List[Entry]
    alerts: List[Dict[str, Any]]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcome]:
    """One pass over both runs, with a restart in it."""
    program = found("fluent-bit")
    work = tmp_path_factory.mktemp("fluent-bit")
    server, scene, log = Received(), Scene(work / "runs"), work / "log.txt"
    config = work / "fluent-bit.yaml"
    config.write_text(configured("fluent-bit.yaml", Place(scene.runs, work / "state", server.port)), encoding="utf-8")
    (work / "state").mkdir()
    try:
        for step in ((scene.before, scene.during), (scene.later,)):
            step[0]()
            with running([program, "-c", str(config)], log):
                for more in step[1:]:
                    wait_for(lambda: bool(server.entries), log)
                    more()
                wait_for(lambda: len(server.entries) >= len(scene.expected), log)
        printed = [json.loads(line) for line in log.read_text(errors="replace").splitlines() if line.startswith("{")]
        yield Outcome(scene.expected, server.entries, printed)
    finally:
        server.close()


def _events(entries: List[Entry]) -> List[Dict[str, Any]]:
    return [json.loads(entry.line) for entry in entries]


def test_each_event_arrives_once(outcome: Outcome) -> None:
    """Every whole line of both runs arrives once: not again through 'latest', not again after a restart, and none is missing."""
    assert sorted(map(key, _events(outcome.entries))) == sorted(outcome.expected)


def test_an_event_keeps_its_fields_and_its_time(outcome: Outcome) -> None:
    """An entry is the event with every field, at the event's own time."""
    for entry, event in zip(outcome.entries, _events(outcome.entries)):
        expected = outcome.expected[key(event)]
        assert {name: event.get(name) for name in expected} == expected
        assert entry.ns == nanoseconds(expected["ts"])


def test_the_rank_is_no_label(outcome: Outcome) -> None:
    """The labels are the job, the host and the run; event, phase and rank go beside the line."""
    for entry, event in zip(outcome.entries, _events(outcome.entries)):
        assert entry.labels == {"job": "ddp_probe", "host": event["host"], "run": event["run"]}
        beside = {name: str(event[name]) for name in ("event", "phase", "rank") if name in event}
        assert entry.metadata == beside


def test_the_alerts_are_those_that_need_somebody(outcome: Outcome) -> None:
    """A process that ended badly, a hang and a warning are printed, each once, and nothing else."""
    assert sorted(map(key, outcome.alerts)) == sorted(name for name, event in outcome.expected.items() if is_alert(event))
