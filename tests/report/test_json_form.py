"""The form for a program keeps the shape that is published."""

import json
from typing import Any, Callable, Dict, List

import msgspec
import pytest

from ddp_probe.cli._commands import find
from ddp_probe.cli._parse import parser
from ddp_probe.judging.judge import Diagnosis
from ddp_probe.judging.rule import Undecided
from ddp_probe.showing import as_json
from ddp_probe.wording.text import Text, joined, say
from ddp_probe.wording.words import command

_JOBS = ["03_submodule_left_behind", "00_healthy_cards", "12_killed_by_sigkill", "10_rank_never_started"]


@pytest.mark.parametrize("job", _JOBS)
def test_every_report_has_the_published_shape(job: str, recorded: Callable[[str], Diagnosis]) -> None:
    """What is printed decodes strictly into the structs that the schema is made of, and nothing is left over."""
    text = as_json.text(recorded(job))
    form = msgspec.json.decode(text, type=as_json.ReportForm)
    assert msgspec.to_builtins(form) == json.loads(text)


def test_what_others_rely_on_is_there(made: Diagnosis) -> None:
    """Verdict, findings, undecided and inventory have the names that others read."""
    found: Dict[str, Any] = json.loads(as_json.text(made))
    assert found["report"] == 1
    assert found["verdict"] == "found"
    assert found["undecided"] == []
    finding = found["findings"][0]
    assert (finding["id"], finding["slug"], finding["cause"]) == ("DDP104", "submodule-left-behind", "mixed_cpu_cuda_params")
    assert (finding["severity"], finding["ranks"], finding["confidence"], finding["fix"]) == ("error", [0, 1], "high", "move-model")
    assert set(finding) == {
        "id",
        "slug",
        "cause",
        "severity",
        "ranks",
        "verdict",
        "evidence",
        "remedy",
        "fix",
        "confidence",
        "consequences",
        "facts",
        "restart",
    }
    evidence = finding["evidence"][0]
    assert (evidence["line"], evidence["text"]) == (8, "parameters on cpu, gcu:0")
    assert evidence["file"] == made.run.inventory.files[1]
    assert evidence["site"] == {"file": "/train/t.py", "line": 24, "function": "main"}
    assert found["inventory"]["expected"] == found["inventory"]["seen"] == 2
    assert found["inventory"]["ends"] == {"failed ValueError": [0, 1]}
    assert [rank["phase"] for rank in found["ranks"]] == ["wrapping", "wrapping"]


def test_a_report_names_its_schema(made: Diagnosis) -> None:
    """The report states the address that its schema has as its $id."""
    assert json.loads(as_json.text(made))["$schema"] == as_json.report_schema()["$id"] == "urn:ddp-probe:report:1"


@pytest.mark.parametrize(
    ("sentence", "commands"),
    [
        (say("{explain} says what would settle it.", explain=command("explain", "DDP621")), ["python -m ddp_probe explain DDP621"]),
        (
            joined([say("See what it did: {logs}.", logs=command("logs", "--rank", "0")), say("Then check its host.")]),
            ["python -m ddp_probe logs --rank 0"],
        ),
        (
            say("Look where it is: {stacks}, or {look}.", stacks=command("stacks"), look=command("attach", "77")),
            ["python -m ddp_probe stacks", "python -m ddp_probe attach 77"],
        ),
        (say("Name them all: {report}.", report=command("report", "/data/a.b/run-1")), ["python -m ddp_probe report /data/a.b/run-1"]),
        (say("Name both: python -m ddp_probe report DIR DIR."), []),
        (say("Look at what the launch printed first."), []),
    ],
)
def test_a_command_in_what_to_try_next_is_one(sentence: Text, commands: List[str], made: Diagnosis) -> None:
    """Each command of `next` stands by itself as well, and one whose arguments only a person knows does not."""
    asked = Undecided("a-question", "Nobody knows.", next=sentence)
    (told,) = json.loads(as_json.text(made._replace(undecided=[asked])))["undecided"]
    assert (told["next"], told["commands"]) == (sentence, commands)
    for each in commands:
        _, _, _, name, *arguments = each.split()
        parser(find(name)).parse_args(arguments)


def test_a_missing_rank_is_told(recorded: Callable[[str], Diagnosis]) -> None:
    """A rank that left no file is missing, has a row, and is a reason."""
    found = json.loads(as_json.text(recorded("10_rank_never_started")))
    assert found["inventory"]["missing"] == [1]
    assert [rank["end"] for rank in found["ranks"]][1] == "no file"


def test_numbers_and_ends_are_fields(recorded: Callable[[str], Diagnosis]) -> None:
    """device_ids are numbers or null; an end is one word, beside it the exception, the code or the signal."""
    ranks = json.loads(as_json.text(recorded("03_ddp_device_ids_on_cpu")))["ranks"]
    fields = ("device_ids", "end", "exception", "exit_code", "signal")
    failed = ["failed", "ValueError", None, None]
    assert [[rank[name] for name in fields] for rank in ranks] == [[[0], *failed], [[1], *failed]]
    killed = json.loads(as_json.text(recorded("12_killed_by_sigkill")))["ranks"]
    assert [killed[1][name] for name in fields] == [None, "killed", None, None, "SIGKILL"]


def _objects(node: Any) -> List[Dict[str, Any]]:
    inner = list(node.values()) if isinstance(node, dict) else node if isinstance(node, list) else []
    own = [node] if isinstance(node, dict) and "properties" in node else []
    return own + [found for item in inner for found in _objects(item)]


def test_the_schema_promises_every_key() -> None:
    """Each key of the report's own objects is required, and the schema is the same at each call."""
    schema = as_json.report_schema()
    assert schema == as_json.report_schema()
    own = [node for node in _objects(schema) if node.get("title") != "Site"]
    assert len(own) == 11
    assert all(set(node["required"]) == set(node["properties"]) for node in own)


def test_the_text_is_ascii(told: Callable[[str], Diagnosis]) -> None:
    """Nothing of a log reaches a terminal as an escape, and halves of characters survive."""
    log = '{"event":"process.start","rank":0,"world_size":1,"run":"\\u001b[2J\\u202e模型"}'
    text = as_json.text(told(log))
    assert text.isascii()
    assert "\x1b" not in text
    assert json.loads(text)["inventory"]["run"] == "\x1b[2J\u202e模型"
