"""A field of an event: one more thing that a line tells."""

import argparse
import re
from typing import Any

from docs_parts import declarations

from ddp_probe.shared import schema
from new_parts.files import PRINT, PYTHON, Insertion, Plan, RefusedError, snake

# Type, what it is if it was not observed, and a value for the test.
_TYPES = {
    "text": ("str", '""', '"text"'),
    "flag": ("Optional[bool]", "None", "True"),
    "number": ("Optional[float]", "None", "1.5"),
    "whole": ("Optional[int]", "None", "3"),
}

_TEST = '''"""The field %(field)s of %(event)s, from the writer to the reader."""

import json
from pathlib import Path

import msgspec

from ddp_probe.shared import schema
from ddp_probe.traced.record import Recorder


def test_the_field_is_written_and_read(tmp_path, monkeypatch):
    """A line has the field if it was set, and is read as it was written; a line without it is as before."""
    monkeypatch.setenv("DDP_PROBE_STRICT", "1")
    recorder = Recorder(str(tmp_path), lambda: "rank", {"rank": 0}, max_bytes=1 << 20, echo="off")
    recorder.point(schema.%(kind)s(%(field)s=%(value)s))
    recorder.point(schema.%(kind)s())
    told, silent = Path(str(recorder.path)).read_text(encoding="utf-8").splitlines()
    assert json.loads(told).items() >= {"event": "%(event)s", "%(field)s": %(value)s}.items()
    assert "%(field)s" not in json.loads(silent)
    read = msgspec.json.decode(told, type=schema.AnyEvent)
    assert (type(read), read.%(field)s) == (schema.%(kind)s, %(value)s)
'''


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument("name", metavar="NAME", help="the event and the field, such as checkpoint.save.seconds_to_disk")
    parser.add_argument("--type", choices=sorted(_TYPES), default="text", help="what it holds; default %(default)s")
    parser.add_argument("--doc", default="Say here what it tells.", help="what it tells, as a sentence")


def plan(options: Any) -> Plan:
    """Return what is written for a field of an event."""
    event, _, field = options.name.rpartition(".")
    if event not in schema.EVENTS:
        raise RefusedError("%r is not an event. Write EVENT.FIELD with one of docs/events.md, such as checkpoint.save.%s." % (event, field or "note"))
    snake("a field", field, "seconds_to_disk")
    kind = schema.EVENTS[event]
    if field in kind.__struct_fields__:
        raise RefusedError("%s has a field %s already. Choose another name." % (event, field))
    typed, default, value = _TYPES[options.type]
    words = {"field": field, "event": event, "kind": kind.__name__, "value": value}
    line = '    %s: Annotated[%s, _doc("%s")] = %s\n' % (field, typed, options.doc.replace('"', "'"), default)
    test = "tests/record/test_%s_%s_field.py" % (event.replace(".", "_"), field)
    return Plan(
        {test: _TEST % words},
        (Insertion("ddp_probe/shared/schema.py", last_line(kind), line, after=True),),
        [
            PRINT,
            "%s -m pytest %s tests/test_schema.py    # the line, written and read" % (PYTHON, test),
            *_filled(kind, field),
            *_shown(kind, field),
            "Add to the test a call of the job that fills %s; tests/probes has programs to copy." % field,
            "%s -m pytest tests/contract/test_10_shows_nothing.py    # values that no program should pass, to every target" % PYTHON,
        ],
    )


def _shown(kind: Any, field: str) -> Any:
    """Yield where the fields are named that a terminal shows of an event, if they are."""
    if kind.shown.fields is not None:
        yield "Add %s to the fields in `shown` of %s, if `logs` is to show it in a terminal." % (field, kind.__name__)


def last_line(kind: Any) -> str:
    """Return the source of an event from its class line to its end."""
    with open(str(schema.__file__), encoding="utf-8") as file:
        text = file.read()
    found = re.search(r"(?m)^class %s\(.*\n(?:(?:    .*)?\n)*?(?=\n\n\S)" % kind.__name__, text)
    if found is None:
        raise RefusedError("ddp_probe/shared/schema.py has no class %s that ends before two empty lines." % kind.__name__)
    return found.group(0)


def _filled(kind: Any, field: str) -> Any:
    """Yield who writes the event."""
    for probe in declarations.probes():
        if kind in probe.events + probe.points:
            yield "Fill %s in ddp_probe/traced/probes/%s.py: begin() and end() return the event." % (field, probe.name)
