"""Each line of shell in docs/pipelines/README.md is run over recorded runs, and says what the events say."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

import pytest
from pipeline_pages import PAGES, recorded

from ddp_probe.reading import ledger_text

Event = Dict[str, Any]
_JOBS = ("00_healthy_ddp", "03_model_on_cpu_on_one_rank", "08_long_validation_on_rank0", "12_killed_by_sigkill")


def _placed(files: Dict[str, List[Event]]) -> List[str]:
    placed = []
    for event in _of(files, "ddp.init", phase="begin"):
        devices, ids = ", ".join(sorted(event["placement"]["devices"])), _json(event.get("device_ids"))
        placed.append("rank %d: %s, device_ids %s" % (event["rank"], devices, ids))
    return placed


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _cards(files: Dict[str, List[Event]]) -> List[str]:
    form = "rank {rank}, local rank {local_rank}: {device}"
    return [form.format(**event) for event in _of(files, "device.set", phase="begin")]


def _third_barrier(files: Dict[str, List[Event]]) -> List[str]:
    ends = [event for event in _barrier_lines(files) if event["phase"] == "end" and event["number"] == 3]
    return ["rank {rank}: {seconds} s".format(**event) for event in ends]


def _barriers(files: Dict[str, List[Event]]) -> List[str]:
    form = "{ts} rank {rank} {phase} {number} at line {site[line]}"
    return [form.format(**event) for event in _barrier_lines(files)]


def _barrier_lines(files: Dict[str, List[Event]]) -> List[Event]:
    return [event for event in _of(files, "dist.collective") if event["operation"] == "barrier"]


def _in_a_barrier(files: Dict[str, List[Event]]) -> List[str]:
    barriers = [event for event in _barrier_lines(files) if "span" in event]
    spans = [(event["rank"], event["span"]) for event in barriers]
    form = "rank {rank}: barrier {number} since {ts}"
    return [form.format(**event) for event in barriers if spans.count((event["rank"], event["span"])) == 1]


def _slow(files: Dict[str, List[Event]]) -> List[str]:
    form = "rank {rank}: {operation} {number} of ranks {ranks}, {seconds} s"
    ends = _of(files, "dist.collective", phase="end")
    return [form.format(**event) for event in ends if "span" not in event]


def _refused(files: Dict[str, List[Event]]) -> List[str]:
    ranks = [(name, events) for name, events in files.items() if name.startswith("rank")]
    raised = [(name, _of({name: events}, "dist.collective", phase="error")) for name, events in ranks]
    return ["%s:%d" % (name, len(events)) for name, events in raised]


def _loaded(files: Dict[str, List[Event]]) -> List[str]:
    begun = _of(files, "checkpoint.load", phase="begin")
    return ["{ts} rank {rank}: {file[path]}".format(**event) for event in begun]


def _saved(files: Dict[str, List[Event]]) -> List[str]:
    begun = _of(files, "checkpoint.save", phase="begin")
    return ["{ts} rank {rank}: {path}".format(**event) for event in begun]


def _joined(files: Dict[str, List[Event]]) -> List[str]:
    ends = _of(files, "dist.init_process_group", phase="end")
    return ["rank {rank}: {backend}, {seconds} s".format(**event) for event in ends]


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


def _of(files: Dict[str, List[Event]], name: str, kind: str = "rank", phase: str = "") -> List[Event]:
    return [event for event in _all(files, kind) if event["event"] == name and phase in ("", event["phase"])]


# What the line above each block says, what it must print, and what of each printed line is compared.
_SAID: Dict[str, Callable[[Dict[str, List[Event]]], List[str]]] = {
    "On which devices the parameters were before the wrap": _placed,
    "Which card each rank has set, beside its LOCAL_RANK": _cards,
    "How long each rank was in barrier 3": _third_barrier,
    "Before and after each barrier, with the time": _barriers,
    "Which ranks are still in a barrier": _in_a_barrier,
    "Which collectives took longer than `DDP_PROBE_SLOW`": _slow,
    "How many collectives raised, by file": _refused,
    "Who loaded which checkpoint, and when": _loaded,
    "Who saved which checkpoint, and when": _saved,
    "How long `init_process_group` took, and with which backend": _joined,
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
    "From the binary ledgers, by `report --json`: which ranks are last in step after step, and what that costs": (
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


def _runs() -> Iterator[Tuple[str, Dict[str, List[str]]]]:
    """Yield recorded runs, and some that are made, by name."""
    for job in _JOBS:
        yield job, recorded(job)
    yield "cut off", _cut_off("00_healthy_ddp")
    yield "on cards", _on_cards()
    yield "in barriers", _in_barriers()


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


def _in_barriers() -> Dict[str, List[str]]:
    """Return a run of two ranks, one of which waits in a barrier, with slow calls and one that raised."""
    call = '{"event":"dist.collective","phase":"%s","ts":"2026-11-21T18:26:0%d.000000Z","rank":%d,'
    call += '"local_rank":%d,"host":"node1","pid":%d,%s"site":{"file":"train.py","line":7},"operation":"%s","number":%d,'
    call += '"group":"2cab","ranks":"0-1","size":2}'
    setting = '{"event":"device.set","phase":"begin","ts":"2026-11-21T18:26:00.000000Z","rank":%d,'
    setting += '"local_rank":%d,"device":"gcu:0"}'
    refused = '"seconds":0.5,"failure":{"type":"RuntimeError","message":"refused"},'
    ranks = {"launcher.node1.jsonl": ['{"event":"launcher.start","phase":"point"}']}
    for rank in (0, 1):
        me = (rank, rank, 40 + rank)
        lines = ['{"event":"process.start","phase":"point"}']
        lines += [setting % me[:2]]
        for number in (1, 2, 3, 4)[: 4 - rank]:
            lines.append(call % ("begin", number, *me, '"span":%d,' % number, "barrier", number))
            if number < 4:
                took = '"span":%d,"seconds":0.%d,' % (number, number + rank)
                lines.append(call % ("end", number, *me, took, "barrier", number))
        lines.append(call % ("end", 5, *me, '"seconds":12.5,', "all_reduce", 5))
        if rank == 0:
            lines.append(call % ("error", 6, *me, refused, "broadcast", 6))
        ranks["rank%05d.node1.%d.jsonl" % (rank, 40 + rank)] = lines
    return ranks


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
    for job, lines in _runs():
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
