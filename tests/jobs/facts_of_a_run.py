"""What a recorded run holds, and a small language to say what must be in it: fact, absent, differ and same, each over some of its processes."""

import json
import re
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from ddp_probe.reading import whole_ledger

Event = Dict[str, Any]
Who = Union[None, str, Tuple[int, ...]]


class Fact(NamedTuple):
    """Something that the log of a job says, or a rank's ledger, if the event's name begins with "ledger.".

    who is None for the job's own ranks, or "all" ranks, "any" one of them, the "launcher".
    """

    kind: str  # present, absent, differ or same.
    event: str  # Its name, and its phase after a space where that matters; absent takes a pattern.
    where: Mapping[str, Any]  # Paths with "/" in between, and a value each: a text is a regular expression, None "not there", ... "there".
    who: Who


def fact(event: str, where: Optional[Mapping[str, Any]] = None, who: Who = None) -> Fact:
    """Each of these processes has such an event."""
    return Fact("present", event, where or {}, who)


def absent(event: str, where: Optional[Mapping[str, Any]] = None, who: Who = "all") -> Fact:
    """None of these processes has such an event."""
    return Fact("absent", event, where or {}, who)


def differ(event: str, path: str, who: Who = "all") -> Fact:
    """The first such event of these processes has another value in each of at least two of them."""
    return Fact("differ", event, {path: ...}, who)


def same(event: str, path: str, who: Who = "all") -> Fact:
    """The first such event of these processes has one and the same value in all of them."""
    return Fact("same", event, {path: ...}, who)


class Recorded(NamedTuple):
    """The files of a recorded job, read."""

    ranks: Dict[int, List[Event]]
    launchers: List[List[Event]]
    # ledger.all_reduce and so on, one for each record, ledger.phase.backward, one for each phase, and ledger.step, with microseconds of its parts.
    ledgers: Dict[int, List[Event]] = {}


def read(folder: Path) -> Recorded:
    """Read the files of one recorded job; of two processes of one rank, the lines of both."""
    ranks: Dict[int, List[Event]] = {}
    for file in sorted(folder.rglob("rank*.jsonl")):
        ranks.setdefault(_rank(file), []).extend(_events(file))
    ledgers = {_rank(file): _records(whole_ledger.read(file)) for file in sorted(folder.rglob("rank*.ledger.txt"))}
    return Recorded(ranks, [_events(file) for file in sorted(folder.rglob("launcher*.jsonl"))], ledgers)


def _rank(file: Path) -> int:
    return int(re.findall(r"^rank(\d+)", file.name)[0])


def _records(found: whole_ledger.Ledger) -> List[Event]:
    """Return the records, phases and steps of a ledger as events."""
    rows = [("ledger." + one.op, one) for one in found.records] + [("ledger.phase." + one.name, one) for one in found.phases]
    sites = [one.site._asdict() if one.site is not None else None for _, one in rows]
    made = [{**one._asdict(), "event": name, "phase": "point", "site": site} for (name, one), site in zip(rows, sites)]
    steps = [dict(zip(found.steps.parts, times), event="ledger.step", phase="point") for times in zip(*found.steps.parts.values())]
    return [*made, *steps]


def _events(file: Path) -> List[Event]:
    """Read a file; what begins a span is seen in the line that ends it too, as only the first of them says who called what."""
    begun: Dict[Any, Event] = {}
    events = []
    for line in file.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        events.append({**begun.get(event.get("span"), {}), **event})
        if event["phase"] == "begin":
            begun[event["span"]] = event
    return events


def lacking(facts: Sequence[Fact], ranks: Tuple[int, ...], run: Recorded) -> List[Fact]:
    """Return the facts that do not hold."""
    return [item for item in facts if not _holds(item, ranks, run)]


def _holds(item: Fact, ranks: Tuple[int, ...], run: Recorded) -> bool:
    chosen = _chosen(item.who, ranks, run)
    written = run.ledgers if item.event.startswith("ledger.") else run.ranks
    processes = run.launchers if item.who == "launcher" else [written.get(rank, []) for rank in chosen]
    if not processes:
        return item.kind == "absent"
    found = [[event for event in events if _fits(item, event)] for events in processes]
    if item.kind == "present":
        return any(found) and (item.who == "any" or all(events or _cut_short(run, item.who, rank) for rank, events in zip(chosen, found)))
    if item.kind == "absent":
        return not any(found)
    path = next(iter(item.where))
    values = [json.dumps(_value(events[0], path)) for events in found if events]
    return len(values) == len(processes) and (len(set(values)) > 1) == (item.kind == "differ")


def _chosen(who: Who, ranks: Tuple[int, ...], run: Recorded) -> List[int]:
    if isinstance(who, tuple):
        return list(who)
    return list(ranks) if who is None and ranks else sorted(run.ranks) if who != "launcher" else list(range(len(run.launchers)))


def _cut_short(run: Recorded, who: Who, rank: int) -> bool:
    """Tell that the launcher ended a rank because another one had failed, before it came to the same point."""
    ended = {event.get("child_local_rank") for events in run.launchers for event in events if event.get("signal") == "SIGTERM"}
    return who is None and rank in ended


def _fits(item: Fact, event: Event) -> bool:
    name, _, phase = item.event.partition(" ")
    if not re.fullmatch(name, event["event"]) or phase not in ("", event["phase"]):
        return False
    return item.kind in ("differ", "same") or all(_is(_value(event, path), value) for path, value in item.where.items())


def _value(event: Event, path: str) -> Any:
    found: Any = event
    for part in path.split("/"):
        if isinstance(found, dict):
            found = found.get(part)
        elif isinstance(found, list) and part.lstrip("-").isdigit() and -len(found) <= int(part) < len(found):
            found = found[int(part)]
        else:
            return None
    return found


def _is(found: Any, wanted: Any) -> bool:
    if wanted is ...:
        return found is not None
    if isinstance(wanted, str):
        return found is not None and re.search(wanted, found if isinstance(found, str) else json.dumps(found)) is not None
    return bool(found == wanted)
