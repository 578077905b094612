"""The two programs in docs/pipelines/vector.yaml run in the engine of Vector's language, VRL, over all recorded events.

Vector itself is in no package registry that the tests reach: its file source and its sinks are not run here.
"""

import json
import math
from typing import Any, Dict, Iterator, List, NamedTuple

import pytest
import yaml
from collector_scene import nanoseconds
from pipeline_pages import PAGES, RECORDED, SEARCHES, events, fences, is_alert

pyvrl = pytest.importorskip("pyvrl", reason="pyvrl, the engine of Vector's language, is not installed; it has no wheel for every Python")
_ADDED = ("timestamp", "stream", "metadata")


class Remapped(NamedTuple):
    """A recorded event, and what the program makes of its line."""

    event: Dict[str, Any]
    made: Dict[str, Any]


@pytest.fixture(scope="module")
def transforms() -> Dict[str, Any]:
    """The transforms of the configuration."""
    found: Dict[str, Any] = yaml.safe_load((PAGES / "vector.yaml").read_text(encoding="utf-8"))["transforms"]
    return found


@pytest.fixture(scope="module")
def remap(transforms: Dict[str, Any]) -> Any:
    """The program that makes an event of a line."""
    return pyvrl.Transform(transforms["ddp_probe"]["source"] + "\n.")


@pytest.fixture(scope="module")
def remapped(remap: Any) -> List[Remapped]:
    """All recorded events."""
    return list(_all(remap))


def _all(remap: Any) -> Iterator[Remapped]:
    for job in sorted(path.name for path in RECORDED.iterdir()):
        for event in events(job):
            yield Remapped(event, remap.remap({"message": json.dumps(event), "file": "rank.jsonl", "host": "collector"}))


def _same(made: Any, event: Any) -> bool:
    """Compare with types; this engine reads the last digit of a float by another rule."""
    if isinstance(event, float):
        return isinstance(made, float) and math.isclose(made, event, rel_tol=1e-14)
    if isinstance(event, dict):
        return made.keys() == event.keys() and all(_same(made[name], event[name]) for name in event)
    if isinstance(event, list):
        return len(made) == len(event) and all(map(_same, made, event))
    return type(made) is type(event) and bool(made == event)


def test_an_event_keeps_its_fields_and_its_time(remapped: List[Remapped]) -> None:
    """Of each recorded line the program makes the event with its fields, at the event's own time."""
    assert len(remapped) > 1000
    for event, made in remapped:
        assert _same({name: made[name] for name in made if name not in _ADDED}, event)
        assert round(made["timestamp"].timestamp() * 1000000) * 1000 == nanoseconds(event["ts"])


def test_the_rank_is_not_a_label(remapped: List[Remapped]) -> None:
    """What becomes labels is the host and the run; event, phase and rank go beside the line."""
    for event, made in remapped:
        assert made["stream"] == {"host": event["host"], "run": event["run"]}
        assert made["metadata"] == {name: str(event[name]) for name in ("event", "phase", "rank") if name in event}


def test_half_a_line_is_kept(remap: Any) -> None:
    """A line that is not a whole event is kept as text, and marked."""
    made = remap.remap({"message": '{"event":"process.st', "file": "rank.jsonl"})
    assert made["message"] == '{"event":"process.st'
    assert made["metadata"] == {"event": "unreadable"}
    assert list(made["stream"]) == ["host"]


def _kept(condition: str, remapped: List[Remapped]) -> List[bool]:
    """Return what a condition says of each event; the engine's Python side takes an object as a result, not a truth value."""
    program = pyvrl.Transform('kept = {\n%s}\n. = { "kept": kept }\n.' % condition)
    return [program.remap({**made, "timestamp": None})["kept"] for _, made in remapped]


def test_the_alerts_are_those_that_need_somebody(transforms: Dict[str, Any], remapped: List[Remapped]) -> None:
    """The condition keeps a process that ended badly, a hang and a warning, and nothing else."""
    kept = _kept(transforms["ddp_probe_alerts"]["condition"], remapped)
    assert kept == [is_alert(event) for event, _ in remapped]
    assert 0 < sum(kept) < len(kept)


@pytest.mark.parametrize("title", sorted(SEARCHES))
def test_a_condition_of_the_page_keeps_what_it_says(remapped: List[Remapped], title: str) -> None:
    """Each further condition of the page keeps the events that its title names, and no other."""
    (condition,) = [block for block in fences("vector.md", "coffee") if block.startswith("# " + title)]
    kept = _kept(condition, remapped)
    assert kept == [SEARCHES[title](event) for event, _ in remapped]
    assert 0 < sum(kept) < len(kept)
