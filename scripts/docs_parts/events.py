"""Prints docs/events.md and docs/schema.json from ddp_probe/shared/schema.py."""

import json
from typing import Any, Dict, Iterator, List

from ddp_probe.shared import schema
from docs_parts.markdown import NOTE, anchor, prose

_WORDS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}


def schema_json() -> str:
    """Return docs/schema.json."""
    return json.dumps(schema.json_schema(), indent=1) + "\n"


def words(node: Dict[str, Any]) -> str:
    """Return a field's type as a person says it."""
    if "$ref" in node:
        name = str(node["$ref"]).rsplit("/", 1)[-1]
        return "[%s](#%s)" % (name, name.lower())
    if "anyOf" in node:
        return " or ".join(words(item) for item in node["anyOf"] if item != {"type": "null"})
    if node.get("type") == "array":
        return "list of " + words(node["items"])
    if node.get("type") == "object":
        return "map of text to " + words(node["additionalProperties"])
    return _WORDS[node["type"]]


def table(fields: Dict[str, Any]) -> Iterator[str]:
    """Yield a table of fields."""
    yield "| field | type | meaning |"
    yield "|---|---|---|"
    for name, node in fields.items():
        yield "| `%s` | %s | %s |" % (name, words(node), prose(node.get("description", "")))


def section(title: str, text: str, fields: Dict[str, Any]) -> Iterator[str]:
    """Yield a heading, what it is, and its fields."""
    yield from ("", title, "", prose(text), "")
    yield from table(fields) if fields else ("No fields of its own.",)


def events_page() -> str:
    """Return docs/events.md."""
    kinds = schema.json_schema()["$defs"]
    names = {name: kinds[kind.__name__] for name, kind in schema.EVENTS.items()}
    shared = next(iter(names.values()))["properties"]
    pieces = [name for name in kinds if name not in {kind.__name__ for kind in schema.EVENTS.values()}]
    lines: List[str] = [
        NOTE % "ddp_probe/shared/schema.py",
        "# Events",
        "",
        "A file holds one JSON object a line. `event` is its first key and names it; the fields below follow. A field that was not",
        "observed is left out. The version of this schema is %d; [schema.json](schema.json) is the same for machines." % schema.VERSION,
        "",
        *("- [%s](#%s): %s" % (name, anchor(name), prose(kind["description"].splitlines()[0])) for name, kind in names.items()),
    ]
    lines += section("## Every line", "The envelope: every line has these fields.", {name: shared[name] for name in schema.ENVELOPE})
    for name, kind in names.items():
        own = {field: node for field, node in kind["properties"].items() if field not in schema.ENVELOPE and field != "event"}
        lines += section("## %s" % name, kind["description"], own)
    lines += ["", "# Pieces that several events carry"]
    for name in sorted(pieces):
        lines += section("## %s" % name, kinds[name]["description"], kinds[name]["properties"])
    return "\n".join(lines) + "\n"
