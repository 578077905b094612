"""Each line of shell in docs/pipelines/README.md is run over recorded runs, and says what the events say."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import pytest
from pipeline_pages import PAGES, recorded

from ddp_probe.reading import ledger_text

Event = Dict[str, Any]
_JOBS = ("00_healthy_ddp", "03_model_on_cpu_on_one_rank", "08_long_validation_on_rank0", "12_killed_by_sigkill")


def _ended(files: Dict[str, List[Event]]) -> List[str]:
    return [
        "rank %d on %s: exit code %s, %s" % (event["rank"], event["host"], event["exit_code"], event.get("failure", {}).get("type", "no exception"))
        for event in _of(files, "process.end")
        if event.get("uncaught") or event.get("exit_code")
    ]


def _children(files: Dict[str, List[Event]]) -> List[str]:
    told = [event for event in _of(files, "launcher.child", "launcher") if event["exit_code"]]
    return sorted(
        {"rank %s pid %d: %s" % (event.get("child_rank", "null"), event["child_pid"], event.get("signal", event["exit_code"])) for event in told}
    )


def _first_error(files: Dict[str, List[Event]]) -> List[str]:
    errors = sorted((event for event in _all(files) if event["phase"] == "error"), key=lambda event: str(event["ts"]))
    form = "{ts} rank {rank} {event}: {failure[type]}: %s"
    return [form.format(**event) % event["failure"].get("message", "").split("\n")[0] for event in errors[:1]]


def _hangs(files: Dict[str, List[Event]]) -> List[str]:
    form = "rank %d: %d s in %s, %s"
    return [
        form % (event["rank"], event["since"], event.get("operation", "no collective"), event.get("during", "no phase"))
        for event in _of(files, "hang.suspected")
    ]


def _warnings(files: Dict[str, List[Event]]) -> List[str]:
    return ["rank %(rank)d: %(text)s" % event for event in _of(files, "probe.warning")]


def _open(files: Dict[str, List[Event]]) -> List[str]:
    found = []
    for events in files.values():
        spans = [event["span"] for event in events if "span" in event]
        found += ["rank %(rank)s: %(event)s since %(ts)s" % event for event in events if spans.count(event.get("span")) == 1 and "rank" in event]
    return found


def _slowest(files: Dict[str, List[Event]]) -> List[str]:
    timed = sorted((event["seconds"] for event in _all(files) if "seconds" in event), reverse=True)
    return ["%s" % seconds for seconds in timed[:5]]


def _without_end(files: Dict[str, List[Event]]) -> List[str]:
    return [name for name, events in files.items() if name.startswith("rank") and not any(event["event"] == "process.end" for event in events)]


def _raised(files: Dict[str, List[Event]]) -> List[str]:
    ranks = [(name, events) for name, events in files.items() if name.startswith("rank")]
    return ["%s:%d" % (name, sum(event["phase"] == "error" for event in events)) for name, events in ranks]


def _peaks(files: Dict[str, List[Event]]) -> List[str]:
    most: Dict[str, int] = {}
    for event in _of(files, "device.state"):
        for one in event.get("devices", []):
            name = "rank %d %s" % (event["rank"], one["device"])
            most[name] = max(most.get(name, 0), one.get("allocated_peak", 0))
    return ["%s: %d" % held for held in most.items()]


def _growth(files: Dict[str, List[Event]]) -> List[str]:
    form = "rank %d step %d: %d on its devices, %d on the host"
    told = [event for event in _of(files, "device.state") if "step" in event]
    return [
        form % (event["rank"], event["step"], sum(one.get("allocated", 0) for one in event.get("devices", [])), event.get("system", {}).get("rss", 0))
        for event in told
    ]


def _short_hosts(files: Dict[str, List[Event]]) -> List[str]:
    told = [(event["host"], event.get("system", {})) for event in _of(files, "device.state")]
    return sorted(
        {
            "%s: %d of %d" % (host, system["memory_taken"], system["memory_limit"])
            for host, system in told
            if "memory_limit" in system and system["memory_taken"] >= 0.9 * system["memory_limit"]
        }
    )


def _loads(files: Dict[str, List[Event]]) -> List[str]:
    form = "%s card %d: %s %%, %d bytes, %s"
    told = [(event["host"], card) for event in _of(files, "cards.state", "launcher") for card in event.get("cards", [])]
    return [form % (host, card["index"], card["utilisation"], card.get("memory", 0), " ".join(card.get("throttled", []))) for host, card in told]


def _all(files: Dict[str, List[Event]], kind: str = "rank") -> List[Event]:
    return [event for name, events in files.items() if name.startswith(kind) for event in events]


def _of(files: Dict[str, List[Event]], name: str, kind: str = "rank") -> List[Event]:
    return [event for event in _all(files, kind) if event["event"] == name]


# What the line above each block says, what it must print, and what of each printed line is compared.
_SAID: Dict[str, Callable[[Dict[str, List[Event]]], List[str]]] = {
    "Which processes ended badly, and why": _ended,
    "Which children the launcher saw fail, and by which signal": _children,
    "The first call that raised": _first_error,
    "Who hangs in which call, and since when": _hangs,
    "What the probe warned of": _warnings,
    "Calls that began and never ended": _open,
    "The slowest calls": _slowest,
    "The peak memory of each rank on each device": _peaks,
    "How memory grew, step by step": _growth,
    "Hosts that are almost out of memory": _short_hosts,
    "What the cards did, as the vendor's tool says": _loads,
    "Files without an end, of processes that still run or were killed": _without_end,
    "How many calls raised, by file": _raised,
}


# What the line above each block that asks `report` ends with, and what it prints of _STEPS.
_OF_LEDGERS = {
    "The ledgers are binary, but `report --json` has the waits from them. Which ranks are last in step after step, and what that costs": (
        r"ranks 2: last in 60 of 60 steps, 0\.0\d+ s of 0\.\d+ s, in forward",
    ),
    "At which line each rank waits longest": tuple(
        r"rank %d: %s s in 40 calls of all_reduce at /t\.py:5" % one for one in ((0, "0.76"), (1, "0.76"), (2, "0.04"))
    ),
}
_STEPS = (
    "ledger 0-1 step x60 forward 50 backward 50",
    "ledger 2 step x60 forward 80 backward 20",
    "ledger 0-1 all_reduce 4 float32 at /t.py:5 takes 19 x40",
    "ledger 2 all_reduce 4 float32 at /t.py:5 takes 1 x40",
    "ledger 0-2 barrier at /t.py:9",
)


def _blocks() -> Dict[str, str]:
    page = (PAGES / "README.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^([^\n]+):\n\n```sh\n(.*?)^```$", page, re.DOTALL | re.MULTILINE))


def _cut_off(job: str) -> Dict[str, List[str]]:
    """Return a run whose processes have all died in the first call that they made."""
    return {name: list(_until_first_call(lines)) for name, lines in recorded(job).items()}


def _on_cards() -> Dict[str, List[str]]:
    """Return a run on two cards whose host is short of memory."""
    state = (
        '{"event":"device.state","phase":"point","rank":%d,"host":"node1","step":%d,"devices":[{"device":"gcu:%d","allocated":%d,'
        '"allocated_peak":%d}],"system":{"rss":5,"memory_taken":%d,"memory_limit":100}}'
    )
    cards = (
        '{"event":"cards.state","phase":"point","host":"node1","cards":[{"index":0,"utilisation":85.5,"memory":7,"throttled":["hw_thermal"]},'
        '{"index":1,"utilisation":0.5}]}'
    )
    start = '{"event":"process.start","phase":"point"}'
    ranks = {"rank%05d.node1.1.jsonl" % r: [start] + [state % (r, step, r, step, 2 * step, 80 + step) for step in (3, 9, 12)] for r in (0, 1)}
    bare = '{"event":"device.state","phase":"point","rank":0,"host":"node1","step":20}'
    return {**ranks, "rank00002.node1.1.jsonl": [start, bare], "launcher.node1.jsonl": [cards]}


def _until_first_call(lines: List[str]) -> Iterator[str]:
    for line in lines:
        yield line
        if '"phase":"begin"' in line:
            return


def _printed(command: str, folder: Path) -> List[str]:
    done = subprocess.run(["sh", "-c", command], env={"RUN": ".", "PATH": "/usr/bin:/bin"}, cwd=folder, capture_output=True, timeout=60, check=False)
    assert not done.stderr, done.stderr
    return done.stdout.decode().replace("./", "").splitlines()


def test_every_line_of_shell_is_checked() -> None:
    """The page has no block of shell that is not run here."""
    assert list(_blocks()) == [*_SAID, *_OF_LEDGERS]


@pytest.mark.parametrize("title", _SAID)
def test_a_line_of_shell_prints_what_the_events_say(title: str, tmp_path: Path) -> None:
    """Over healthy, broken and cut-off runs, each file with half a line at its end, a block prints what its title says."""
    command = _blocks()[title]
    if command.startswith("jq") and shutil.which("jq", path="/usr/bin:/bin") is None:
        pytest.skip("jq is not installed")
    said = []
    for job, lines in [*((job, recorded(job)) for job in _JOBS), ("cut off", _cut_off("00_healthy_ddp")), ("on cards", _on_cards())]:
        folder = tmp_path / job
        folder.mkdir()
        for name, written in lines.items():
            (folder / name).write_text("\n".join([*written, '{"event":"process.e']), encoding="utf-8")
        expected = _SAID[title]({name: [json.loads(line) for line in written] for name, written in lines.items()})
        printed = [line.split("\t")[0] for line in _printed(command, folder)]
        assert sorted(printed) == sorted(expected), job
        said += printed
    assert said


@pytest.mark.parametrize("title", _OF_LEDGERS)
@pytest.mark.skipif(shutil.which("jq", path="/usr/bin:/bin") is None, reason="jq is not installed")
def test_a_line_of_shell_prints_what_the_ledgers_say(title: str, tmp_path: Path) -> None:
    """Over three ranks of which the last is late, a block that asks `report --json` prints what its title says."""
    for rank, data in ledger_text.written(_STEPS, 3).items():
        start = '{"event":"process.start","phase":"point","rank":%d,"pid":7,"host":"a","world_size":3}\n' % rank
        (tmp_path / ("rank%05d.a.7.jsonl" % rank)).write_text(start, encoding="utf-8")
        (tmp_path / ("rank%05d.a.7.ledger" % rank)).write_bytes(data)
    command = _blocks()[title].replace("python", shlex.quote(sys.executable), 1)
    environment = {"RUN": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(["sh", "-c", command], env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert not done.stderr, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(_OF_LEDGERS[title])
    assert all(re.fullmatch(pattern, line) for pattern, line in zip(_OF_LEDGERS[title], lines)), lines
