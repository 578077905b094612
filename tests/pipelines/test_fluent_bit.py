"""Fluent Bit itself runs the configuration of docs/pipelines/fluent-bit.yaml; skipped if it is not installed."""

import json

import pytest
from collector_scene import Outcome, collect, entries_of_json, key, nanoseconds
from pipeline_pages import found, is_alert

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """One pass over both runs, with a restart in it."""
    return collect(tmp_path_factory.mktemp("fluent-bit"), "fluent-bit.yaml", [found("fluent-bit"), "-c", ""], entries_of_json)


def test_each_event_arrives_once(outcome: Outcome) -> None:
    """Every whole line of both runs arrives once: not again through 'latest', not again after a restart, and none is missing."""
    assert sorted(map(key, outcome.events())) == sorted(outcome.expected)


def test_an_event_keeps_its_fields_and_its_time(outcome: Outcome) -> None:
    """An entry is the event with every field, at the event's own time; Fluent Bit keeps it as a float, so a nanosecond may be missing."""
    for entry, event in zip(outcome.entries, outcome.events()):
        expected = outcome.expected[key(event)]
        assert {name: event.get(name) for name in expected} == expected
        assert abs(entry.ns - nanoseconds(expected["ts"])) < 2


def test_the_rank_is_not_a_label(outcome: Outcome) -> None:
    """The labels are the job, the host and the run; event, phase and rank go beside the line."""
    for entry, event in zip(outcome.entries, outcome.events()):
        assert entry.labels == {"job": "ddp_probe", "host": event["host"], "run": event["run"]}
        beside = {name: str(event[name]) for name in ("event", "phase", "rank") if name in event}
        assert entry.metadata == beside


def test_the_alerts_are_those_that_need_somebody(outcome: Outcome) -> None:
    """A process that ended badly, a hang and a warning are printed, each once, and nothing else."""
    printed = [json.loads(line) for line in outcome.printed.splitlines() if line.startswith("{")]
    assert sorted(map(key, printed)) == sorted(name for name, event in outcome.expected.items() if is_alert(event))
