"""Promtail itself runs docs/pipelines/promtail.yaml; skipped if it is not installed."""

import push_format
import pytest
from collector_scene import Outcome, collect, key, nanoseconds
from pipeline_pages import found

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """One pass over both runs, with a restart in it."""
    return collect(tmp_path_factory.mktemp("promtail"), "promtail.yaml", [found("promtail"), "-config.file="], push_format.entries)


def test_each_event_arrives_once(outcome: Outcome) -> None:
    """Every whole line of both runs arrives once: not again through 'latest', not again after a restart, and none is missing."""
    assert sorted(map(key, outcome.events())) == sorted(outcome.expected)


def test_an_event_keeps_its_line_and_its_time(outcome: Outcome) -> None:
    """An entry is the event's own line, at the event's own time."""
    for entry, event in zip(outcome.entries, outcome.events()):
        assert event == outcome.expected[key(event)]
        assert entry.ns == nanoseconds(event["ts"])


def test_the_rank_is_not_a_label(outcome: Outcome) -> None:
    """The labels are the job, the host and the run; event, phase and rank go beside the line."""
    for entry, event in zip(outcome.entries, outcome.events()):
        assert entry.labels == {"job": "ddp_probe", "host": event["host"], "run": event["run"]}
        assert entry.metadata == {name: str(event[name]) for name in ("event", "phase", "rank") if name in event}
