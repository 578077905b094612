"""The schema as one table: what holds for every event in it."""

import json
from pathlib import Path
from typing import Any, Dict, Iterator, Type

import msgspec
import pytest

from ddp_probe.shared import schema
from ddp_probe.showing.spans import KINDS
from ddp_probe.traced.record import Recorder

_SAMPLES: Dict[str, Any] = {"integer": 3, "number": 1.5, "string": "text", "boolean": True, "null": None}


def _sample(node: Dict[str, Any], pieces: Dict[str, Any]) -> Any:
    """Return a value that the JSON Schema of a field allows and that differs from the field's default."""
    if "$ref" in node:
        properties = pieces[str(node["$ref"]).rsplit("/", 1)[-1]]["properties"]
        return {name: _sample(field, pieces) for name, field in properties.items()}
    if "anyOf" in node:
        return _sample(next(item for item in node["anyOf"] if item != {"type": "null"}), pieces)
    if "enum" in node:
        return node["enum"][0]
    if node["type"] == "array":
        return [_sample(node["items"], pieces)]
    if node["type"] == "object":
        return {"key": _sample(node["additionalProperties"], pieces)}
    return not node["default"] if node["type"] == "boolean" and "default" in node else _SAMPLES[node["type"]]


def _full(kind: Type[schema.Event]) -> Dict[str, Any]:
    pieces = schema.json_schema()["$defs"]
    return {name: _sample(node, pieces) for name, node in pieces[kind.__name__]["properties"].items()}


def _pieces() -> Iterator[Type[msgspec.Struct]]:
    for value in vars(schema).values():
        if isinstance(value, type) and issubclass(value, msgspec.Struct):
            yield value


@pytest.mark.parametrize("name", list(schema.EVENTS))
def test_every_field_of_an_event_survives_writing_and_reading(name: str) -> None:
    """An event with all of its fields set is the same after JSON, and no field is lost on the way."""
    line = _full(schema.EVENTS[name])
    event = msgspec.json.decode(json.dumps(line), type=schema.AnyEvent)
    assert type(event) is schema.EVENTS[name]
    assert json.loads(msgspec.json.encode(event)) == line


@pytest.mark.parametrize("name", list(schema.EVENTS))
def test_the_recorder_writes_every_field_of_an_event(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line in the file has each field that was set, and a blank event leaves its own fields out."""
    monkeypatch.setenv("DDP_PROBE_STRICT", "1")
    line = _full(schema.EVENTS[name])
    recorder = Recorder(str(tmp_path), lambda: "rank", {"rank": 1}, max_bytes=1 << 20, echo="off")
    recorder.point(msgspec.json.decode(json.dumps(line), type=schema.AnyEvent))
    recorder.point(schema.EVENTS[name]())
    full, blank = (json.loads(text) for text in Path(str(recorder.path)).read_text(encoding="utf-8").splitlines())
    assert set(full) == set(line)
    own = set(line) - set(schema.Event.__struct_fields__) - {"event"}
    assert {field: full[field] for field in own} == {field: line[field] for field in own}
    assert not set(blank) & own
    assert blank["event"] == name


@pytest.mark.parametrize("kind", list(_pieces()), ids=lambda kind: str(kind.__name__))
def test_every_piece_can_be_made_empty_and_says_what_it_is(kind: Type[msgspec.Struct]) -> None:
    """Each field has a default, as what was not observed is left out, and each docstring is a sentence."""
    assert json.loads(msgspec.json.encode(kind())) in ({}, {"event": kind.__struct_config__.tag})
    assert str(kind.__doc__).strip().endswith(".")


def test_no_event_gives_an_envelope_field_a_meaning_of_its_own() -> None:
    """rank, host or span mean the same in every line."""
    for kind in schema.EVENTS.values():
        assert kind.__struct_fields__[: len(schema.Event.__struct_fields__)] == schema.Event.__struct_fields__
        assert len(set(kind.__struct_fields__)) == len(kind.__struct_fields__)


def test_every_event_class_is_in_the_table() -> None:
    """An event that is declared but not listed would be refused by the writer and unknown to the reader."""
    declared = {kind for kind in _pieces() if issubclass(kind, schema.Event) and kind is not schema.Event}
    assert set(schema.EVENTS.values()) == declared


def test_a_reader_takes_a_field_from_a_newer_version() -> None:
    """A line with a field that this version does not know decodes; the rest of it is there."""
    event = msgspec.json.decode(b'{"event":"device.set","device":"1","colour":"red"}', type=schema.AnyEvent)
    assert event == schema.SetDevice(device="1")


def test_what_pages_show_of_an_event_is_there() -> None:
    """The span that an event declares is of a kind that pages draw, and the fields that it names are its own."""
    for name, kind in schema.EVENTS.items():
        shown = kind.shown
        assert shown.span in ("", *KINDS), name
        named = {field.split(".")[0] for field in shown.given} | set(shown.fields or ())
        assert named <= set(kind.__struct_fields__), name
        assert shown.during or not shown.after, name
