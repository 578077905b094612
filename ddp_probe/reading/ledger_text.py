"""Ledgers written as text, one call a line, for the examples of rules and for tests.

Three lines of such a text:

    ledger 0-2 all_reduce 16 float32 at train.py:12
    ledger 0-2 barrier at train.py:20 open
    ledger 3 validate at val.py:7 open

After the ranks follows an operation, or a phase, of ddp_probe/shared/ledger_schema.py. Then, in any order: a number of elements, a data type,
`root 0`, `to 3` or `from 3`, `of 0-3` (the ranks of its group; without it, all), `at FILE:LINE` or `at FILE:LINE:FUNCTION` (in quotes if it holds
a space; `FUNCTION#2` is the second arm of that line), `via FILE:LINE FILE:LINE` (lines on the way there, the
outermost first), `on DEVICE`, `x200` (200 times), `async`,
`thread` (not of the main thread), `held` (a forward pass under no_sync()), `failed` (a DataLoader, before its end),
`model 1` and `buffers` (of a forward pass in which ranks meet), `handler 15` (in the handler of that signal),
`item loss` (at this item of a loop over names), `after 3` (begun 3 ms later than the line), `takes 5` (5 ms inside), and
how it went: open, returned (which needs no word), raised or dropped. The line `ledger 3 closed` ends a ledger.

A line of steps has the milliseconds of their parts: `ledger 0-2 step x60 dataloader 2 forward 50 backward 30`. Steps of several ranks end together
if their parts add up to the same.
"""

import binascii
import itertools
import json
import re
import shlex
from typing import Any, Dict, Iterable, List, Tuple

from ddp_probe.shared import ledger_codec as codec
from ddp_probe.shared import ledger_schema as schema
from ddp_probe.shared.ledger_codec import NamedRow, RowCodec
from ddp_probe.shared.ledger_schema import ranks_of
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted

WORD = "ledger "
START = 1000.0
_STEP = 10**7
_STATES, _OPERATIONS, _PHASES = schema.codes(schema.STATES), schema.codes(schema.OPERATIONS), schema.codes(schema.PHASES)
_STEP_WORD = "step"
_PARTS = [field.name[: -len("_ns")] for field in schema.STEP if field.name.endswith("_ns") and field.name not in ("began_ns", "ended_ns")]
_WITH_VALUE = ("root", "to", "from", "of", "at", "on", "after", "takes", "handler", "item", "model")
_MAIN, _VIA = "main", "via"


def written(lines: Iterable[str], world_size: int = 0, start: float = START) -> Dict[int, bytes]:
    """Return the bytes of each rank's ledger; each line is 10 ms after the one before."""
    parsed = [_parse(line, number) for number, line in enumerate(lines)]
    size = max([world_size, *(rank + 1 for ranks, _ in parsed for rank in ranks)])
    files: Dict[int, _File] = {}
    for number, (ranks, words) in enumerate(parsed):
        for rank in ranks:
            file = files.setdefault(rank, _File(rank, size, int(start * 1e9)))
            file.add(words, int(start * 1e9) + (number + 1) * _STEP)
    return {rank: file.data() for rank, file in files.items()}


def _parse(line: str, number: int) -> Tuple[List[int], Dict[str, Any]]:
    words = shlex.split(line) if "'" in line else line.split()
    if len(words) < 3 or words[0] != WORD.strip() or words[2] not in (*_OPERATIONS, *_PHASES, _STEP_WORD, "closed"):
        raise ValueError(
            say(
                "Line {number}: {line} is not a line of a ledger; ddp_probe/reading/ledger_text.py says how to write one.",
                number=number + 1,
                line=quoted(repr(line)),
            )
        )
    fields: Dict[str, Any] = {
        "name": words[2],
        "state": "returned",
        "times": 1,
        "elements": 0,
        "dtype": "",
        "async": False,
        "thread": False,
        "held": False,
        "failed": False,
        "buffers": False,
        "on": "cpu",
        "via": _way_words(words),
    }
    begin = words.index(_VIA) if _VIA in words else len(words)
    rest = iter([*words[3:begin], *words[begin + 1 + len(fields["via"]) :]])
    for word in rest:
        if word in _WITH_VALUE:
            fields[word] = next(rest)
        elif word in _STATES:
            fields["state"] = word
        elif word in ("async", "thread", "held", "failed", "buffers"):
            fields[word] = True
        elif words[2] == _STEP_WORD and word in _PARTS:
            fields[word] = float(next(rest))
        elif word.isdigit():
            fields["elements"] = int(word)
        elif re.fullmatch(r"x\d+", word):
            fields["times"] = int(word[1:])
        else:
            fields["dtype"] = word
    return ranks_of(words[1]), fields


def _way_words(words: List[str]) -> List[str]:
    """Return the lines that follow `via`."""
    after = words[words.index(_VIA) + 1 :] if _VIA in words else []
    return list(itertools.takewhile(lambda word: ":" in word, after))


class _File:
    """One rank's ledger as it grows."""

    def __init__(self, rank: int, size: int, start: int) -> None:
        self.rank, self.size, self.start = rank, size, start
        self.texts: List[bytes] = []
        self.known: Dict[Tuple[int, str], int] = {}
        self.numbers: Dict[Any, int] = {}
        self.records: List[NamedRow] = []
        self.passes: List[NamedRow] = []
        self.phases: Dict[int, NamedRow] = {}
        self.steps: List[NamedRow] = []
        self.sums: Dict[Tuple[int, int, int], NamedRow] = {}
        self.moved = start
        self.closed = 0
        self.text(schema.HOST, "node1")
        self.group("0-%d" % (size - 1))

    def text(self, kind: int, text: str) -> int:
        number = self.known.get((kind, text))
        if number is None:
            number = self.known[(kind, text)] = len(self.known) + 1
            self.texts.append(codec.text_entry(number, kind, text.encode("utf-8")))
        return number

    def group(self, ranks: str) -> int:
        from hashlib import blake2b

        members = tuple(ranks_of(ranks))
        name = blake2b(repr((members, 1)).encode(), digest_size=8).hexdigest()
        return self.text(schema.GROUP, json.dumps({"id": name, "size": len(members), "ranks": ranks, "nth": 1, "backends": {"cpu": "gloo"}}))

    def add(self, words: Dict[str, Any], now: int) -> None:
        if words["name"] == "closed":
            self.closed = now
        for _ in range(words["times"]):
            now += 1000
            self.moved = now
            if words["name"] == _STEP_WORD:
                self._step(words)
            elif words["name"] in _PHASES:
                self._phase(words, now)
            elif words["name"] in _OPERATIONS:
                self._record(words, now)

    def _left(self, words: Dict[str, Any], now: int) -> int:
        if words["state"] == "open":
            return now << 2 if words["async"] else 0
        return now << 2 | _STATES[words["state"]]

    def _site(self, words: Dict[str, Any]) -> int:
        return self._line(words["at"]) if "at" in words else 0

    def _line(self, place: str) -> int:
        file, _, last = place.rpartition(":")
        line, function = (last, _MAIN) if last.isdigit() else (file.rpartition(":")[2], last)
        name, _, arm = function.partition("#")
        site = "%s\n%s\n%s" % (file if last.isdigit() else file.rpartition(":")[0], line, name)
        return self.text(schema.SITE, "%s\n%s" % (site, arm) if arm else site)

    def _way(self, words: Dict[str, Any]) -> int:
        """Return the way of a line that says one."""
        if not words["via"]:
            return 0
        lines = [self._line(place) for place in words["via"]]
        return self.text(schema.WAY, " ".join(map(str, [*lines, self._site(words)])))

    def _phase(self, words: Dict[str, Any], now: int) -> None:
        phase = _PHASES[words["name"]]
        count = self.phases[phase]["count"] + 1 if phase in self.phases else 1
        site, left = self._site(words), self._left(words, now + 100)
        row = {"entered_ns": now, "left": left, "count": count, "site": site}
        failed = schema.FAILED * words["failed"]
        self.phases[phase] = {**row, "stamp": count, "stamp_again": count, "flags": failed}
        flags = schema.SIDE_THREAD * words["thread"] + schema.HELD_BACK * words["held"] + failed
        flags += schema.SENDS_BUFFERS * words["buffers"] + (int(words.get("model", 0)) << schema.MODEL_BITS)
        self.passes.append(_numbered({**row, "phase": phase, "way": self._way(words), "flags": flags}, len(self.passes) + 1))

    def _step(self, words: Dict[str, Any]) -> None:
        """Add a step that begins when the previous one ended, with noise of up to 1 %, different for each rank and step."""
        number = len(self.steps) + 2
        noise = 1 + (hash((self.rank * 7919 + number) * 104729) % 1000 - 500) * 2e-5
        times = {name + "_ns": int(words.get(name, 0) * 1e6 * (noise if name != "backward" else 1)) for name in _PARTS}
        began = self.steps[-1]["ended_ns"] if self.steps else self.start
        self.steps.append(_numbered({"began_ns": began, "ended_ns": began + sum(times.values()), **times}, number))

    def _record(self, words: Dict[str, Any], now: int) -> None:
        op = _OPERATIONS[words["name"]]
        peer = int(words.get("root", words.get("to", words.get("from", -1))))
        group = 0 if schema.ABOUT_GROUPS <= op < schema.BATCH else self.group(words.get("of", "0-%d" % (self.size - 1)))
        key = (group, peer, "to" in words) if op >= schema.POINT_TO_POINT else group
        self.numbers[key] = seq = self.numbers.get(key, 0) + 1
        dtype = self.text(schema.DTYPE, words["dtype"]) if words["dtype"] else 0
        now, inside = now + int(float(words.get("after", 0)) * 1e6), int(float(words.get("takes", 0)) * 1e6) or 100
        if words["state"] == "returned" and op < schema.ABOUT_GROUPS:
            self._sum((op, group, self._site(words)), now, inside)
        device, flags = self.text(schema.DEVICE, words["on"]), schema.ASYNC * words["async"] + schema.SIDE_THREAD * words["thread"]
        flags += int(words.get("handler", 0)) << schema.SIGNAL_BITS
        row = {
            "entered_ns": now,
            "left": self._left(words, now + inside),
            "seq": seq,
            "elements": words["elements"],
            "group": group,
            "way": self._way(words),
            "site": self._site(words),
            "item": _item(words),
            "peer": peer,
            "tensors": int(bool(words["elements"])),
            "op": op,
            "dtype": dtype,
            "device": device,
            "flags": flags,
        }
        self.moved = max(self.moved, now, row["left"] >> 2)
        self.records.append(_numbered(row, len(self.records) + 1))

    def _sum(self, key: Tuple[int, int, int], now: int, inside: int) -> None:
        op, group, site = key
        row = self.sums.setdefault(key, {"op": op, "group": group, "site": site, "calls": 0, "inside_ns": 0, "longest_ns": 0, "entered_ns": 0})
        row["calls"] += 1
        row["inside_ns"] += inside
        row["longest_ns"] = max(row["longest_ns"], inside)
        row["entered_ns"] = (row["entered_ns"] + now) % (1 << 64)

    def data(self) -> bytes:
        texts = b"".join(self.texts)
        places = min(schema.RECORDS, max(64, 1 << len(self.records).bit_length()))  # A power of two; sixty-four ranks are read a thousand times.
        head = {
            **codec.NEW,
            "text_size": len(texts),
            "sums": len(self.sums),
            "steps": schema.STEPS if self.steps else 0,
            "passes": min(schema.PASSES, 1 << len(self.passes).bit_length()) if self.passes else 0,
            "records": places,
            "rank": self.rank,
            "world_size": self.size,
            "wall_ns": self.start,
            "mono_ns": self.start,
            "moved_ns": self.moved,
            "text_used": len(texts),
            "closed_ns": self.closed,
        }
        areas = (
            codec.HEADER.packed(head).ljust(schema.HEADER_BYTES, b"\0"),
            texts,
            b"".join([codec.PHASE.packed(self.phases.get(place + 1, {})) for place in range(schema.PHASE_ROWS)]),
            b"".join([codec.SUM.packed(row) for row in self.sums.values()]),
            _ring(codec.STEP, self.steps, head["steps"]),
            _ring(codec.PASS, self.passes, head["passes"]),
            _ring(codec.RECORD, self.records, places),
        )
        return b"".join(areas)


def _item(words: Dict[str, Any]) -> int:
    """Return what stands for the item of a line that says one: a number, or a name."""
    name = words.get("item", "")
    if name.isdigit():
        return int(name) + 1
    crc = binascii.crc32(name.encode("utf-8"))
    return crc & (schema.ITEM_IS_NAME - 1) | schema.ITEM_IS_NAME if name else 0


def _numbered(row: NamedRow, index: int) -> NamedRow:
    return {**row, "index": index, "index_again": index}


def _ring(rows: RowCodec, listed: List[NamedRow], places: int) -> bytes:
    ring = [bytes(rows.size)] * places
    for row in listed:
        ring[row["index"] % places] = rows.packed(row)
    return b"".join(ring)
