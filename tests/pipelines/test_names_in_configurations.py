"""The configurations and pages of docs/pipelines name events, fields and files as the package does: what is renamed there fails here.

That a collector understands its configuration is shown by running it (test_fluent_bit.py, test_promtail.py, test_vector.py), not here.
"""

import fnmatch
import json
import re
from typing import Dict, List, Set

import msgspec
import pytest
import yaml
from pipeline_pages import PAGES, RECORDED, RUNS, fences, recorded

from ddp_probe.activation import run_folder
from ddp_probe.shared import schema

CONFIGURATIONS = ("vector.yaml", "fluent-bit.yaml", "promtail.yaml", "config.alloy")
_EVENT = re.compile(r"\b((?:process|launcher|hang|probe|dist|ddp|checkpoint)\\?\.[a-z_]+)\b")
_FIELDS = {
    "vector.yaml": r"[\s(!]\.(\w+)",
    "fluent-bit.yaml": r"\$(?!label_)(\w+)|event\[\"(\w+)\"\]|time_key: (\w+)|- (\w+) label_\w+",
    "promtail.yaml": r"^            (\w+):$",
    "config.alloy": r"^\t\t\t(\w+) +=",
}
_OWN = {"vector.yaml": {"message", "timestamp", "stream", "metadata"}}


def _events() -> Set[str]:
    return set(schema.EVENTS)


def _fields() -> Set[str]:
    """Return the names of all fields of a line."""
    return {"event", *schema.ENVELOPE, *(name for kind in schema.EVENTS.values() for name in kind.__struct_fields__)}


def _parts() -> Set[str]:
    """Return the names of the fields of what a field of a line holds."""
    kinds = [kind for kind in vars(schema).values() if isinstance(kind, type) and issubclass(kind, msgspec.Struct)]
    return {name for kind in kinds for name in kind.__struct_fields__}


def _text(name: str) -> str:
    """Return a configuration without its comments."""
    return re.sub(r"(^|\s)(#|//) .*", "", (PAGES / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_configuration_names_fields_of_the_schema(name: str) -> None:
    """Every field that a configuration reads is a field of an event."""
    groups = re.findall(_FIELDS[name], _text(name), re.MULTILINE)
    used = {field for found in groups for field in ([found] if isinstance(found, str) else found) if field} - _OWN.get(name, set())
    assert {"ts", "event", "phase", "rank", "host", "run"} <= used
    assert used <= _fields(), used - _fields()


@pytest.mark.parametrize("name", [*CONFIGURATIONS, *sorted(path.name for path in PAGES.glob("*.md"))])
def test_what_is_called_an_event_is_one(name: str) -> None:
    """Every name of the form of an event's is the name of an event."""
    text = re.sub(r"\[\w+\.md\]\(\S*\)|loki\.process\S*", "", _text(name))
    used = {found.replace("\\", "") for found in _EVENT.findall(text)}
    assert used <= _events(), used - _events()


@pytest.mark.parametrize("page", ["README.md", "loki.md"])
def test_a_query_names_fields_of_the_schema(page: str) -> None:
    """Every field that jq or a query of the pages reads is a field of an event or of a part of one."""
    blocks = [block for block in fences(page, "sh" if page == "README.md" else "logql") if "report --json" not in block]
    programs = [re.sub(r"\"(?:[^\"\\]|\\[^(])*\"", '""', block) if page == "loki.md" else block for block in blocks]
    used = {field for program in programs for field in re.findall(r"(?<![\w$*/.)])\.(\w+)", program)}
    assert used <= _fields() | _parts(), used - _fields() - _parts()
    assert blocks


def _patterns(name: str) -> Dict[str, List[str]]:
    """Return the patterns of files that a configuration reads, and of those that it leaves out."""
    found = re.findall(re.escape(RUNS) + r"/[^\s\",]+(?:,[a-z]+\}[^\s\",]+)?", _text(name))
    spelled = [each for pattern in found for each in _braces(pattern)]
    return {"out": [one for one in spelled if "/latest/" in one], "in": [one for one in spelled if "/latest/" not in one]}


def _braces(pattern: str) -> List[str]:
    head, found, tail = re.match(r"([^{]*)(?:\{(.*)\})?(.*)", pattern).groups()  # type: ignore[union-attr]  # matches any text
    return [head + word + tail for word in (found or "").split(",")]


def _is_read(path: str, name: str) -> bool:
    patterns = _patterns(name)
    read, left_out = ([_matches(path, one) for one in patterns[side]] for side in ("in", "out"))
    return any(read) and not any(left_out)


def _matches(path: str, pattern: str) -> bool:
    """Compare folder by folder, as a file name's pattern does."""
    parts = list(zip(path.split("/"), pattern.split("/")))
    return path.count("/") == pattern.count("/") and all(fnmatch.fnmatchcase(*part) for part in parts)


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_every_file_of_events_is_read_and_no_other(name: str) -> None:
    """Of a recorded run, whatever its name, the files of events are matched; ledgers, models and what 'latest' leads to are not."""
    runs = [run_folder.fresh_name(), "slurm-4711.0", "job-prterun-1", "ranks-node1-29500", "session-node1-77"]
    files = [path.relative_to(RECORDED / "00_healthy_cards") for path in sorted((RECORDED / "00_healthy_cards").rglob("*")) if path.is_file()]
    names = [str(file) for file in files] + ["rank00003.node1.17.1.jsonl", "rank00003.node1.17.ledger", "launcher.node1.1.jsonl", "said/0a"]
    assert len(names) > 6
    for run in runs:
        for file in names:
            wanted = file.endswith(".jsonl") and "/" not in file
            assert _is_read("%s/%s/%s" % (RUNS, run, file), name) == wanted, file
            assert not _is_read("%s/latest/%s" % (RUNS, file), name)


def test_files_of_one_host_can_be_told_by_name() -> None:
    """The patterns that the page gives for a folder that hosts share match the files of that host, and not those of one whose name begins alike."""
    page = (PAGES / "README.md").read_text(encoding="utf-8")
    patterns = [pattern.replace("HOST", "node1") for pattern in re.findall(r"`((?:rank|launcher)\S*HOST\S*jsonl)`", page)]
    assert len(patterns) == 2
    files = [*recorded("00_healthy_ddp"), "rank00000.node1.17.1.jsonl", "launcher.node1.1.jsonl"]
    assert all(any(fnmatch.fnmatchcase(file, pattern) for pattern in patterns) for file in files)
    assert not any(fnmatch.fnmatchcase(file.replace("node1", "node12"), pattern) for pattern in patterns for file in files)


def test_every_line_has_what_the_labels_and_the_time_come_from() -> None:
    """Each recorded line has a time with six digits in UTC, a host, a run, an event and a phase; all but a launcher's have a rank."""
    for folder in sorted(RECORDED.iterdir()):
        for name, lines in recorded(folder.name).items():
            for line in lines:
                event = json.loads(line)
                assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", event["ts"])
                assert all(event[field] for field in ("host", "run", "event", "phase"))
                assert ("rank" in event) == name.startswith("rank")


def test_lines_are_shorter_than_what_the_collectors_take() -> None:
    """The stacks of as many threads as are written, each as deep as its frames are kept, fit into the longest line of each configuration."""
    from ddp_probe.traced.facts import call_site

    frame = schema.Site(file="/env/site-packages/" + "x" * 100, line=1000, function="f" * 60)
    thread = schema.ThreadStack(name="t" * 40, frames=[frame] * (call_site._OUTER + call_site._INNER))
    line = msgspec.json.encode(schema.Stacks(request=1, threads=[thread] * call_site._THREADS))
    limits = {
        "vector.yaml": yaml.safe_load(_text("vector.yaml"))["sources"]["ddp_probe_files"]["max_line_bytes"],
        "fluent-bit.yaml": int(re.findall(r"buffer_max_size: (\d+)M", _text("fluent-bit.yaml"))[0]) << 20,
    }
    assert min(limits.values()) > 1.5 * len(line)
