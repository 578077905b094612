"""Summarises a run without reading all of it: its size, ranks and end, from file names and from first and last lines."""

import os
import platform
import re
import time
from collections import Counter
from itertools import chain
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ddp_probe.reading import find, log_lines
from ddp_probe.wording.text import joined, say

_NAME = re.compile(r"rank(\d+)\.([^.]*)\.(\d+)(\.\d+)?\.jsonl$")
_LAUNCHER = re.compile(r"launcher\.([^.]*)(\.\d+)?\.jsonl$")
_PYTHON = re.compile(r"python[\d.]*$")
_SAMPLED = 8  # At most this many files are read for the expected number of ranks.


_Child = Tuple[str, str]  # Host and pid, as in the file names.


class Glance(NamedTuple):
    """One run, as listed by `runs`."""

    name: str
    folder: str
    modified: float
    age: float
    ranks_seen: int
    ranks_expected: Optional[int]
    hosts: List[str]
    ended: str
    because: str
    files: int
    bytes: int
    command: str
    parts: List[str]  # The folders of the launch, if it has several.


def at(folder: str) -> Glance:
    """Summarise the run in a folder."""
    sources = find.sources([folder])
    files = sources.events
    ranks = [file for file in files if not _LAUNCHER.match(os.path.basename(file))]
    launchers = [file for file in files if _LAUNCHER.match(os.path.basename(file))]
    seen = set(map(_rank, ranks)) - {None}
    sizes = [_stat(file) for file in files]
    modified = max((mtime for _, mtime in sizes), default=0.0)
    expected = _expected(ranks, launchers)
    ended, because = _ended(ranks, launchers, len(seen), expected)
    hosts = sorted(set(map(_host_of, files)) - {""})
    name = os.path.basename(os.path.abspath(folder))
    size = sum(size for size, _ in sizes)
    age = max(0.0, time.time() - modified)
    return Glance(
        name,
        folder,
        modified,
        age,
        len(seen),
        expected,
        hosts,
        ended,
        because,
        len(files),
        size,
        _command(files),
        sources.folders if len(sources.folders) > 1 else [],
    )


def _command(files: List[str]) -> str:
    """Return the command as typed: the launcher's command line, else a rank's, without the interpreter."""
    for file in sorted(files, key=lambda file: not os.path.basename(file).startswith("launcher"))[:_SAMPLED]:
        words = log_lines.first(file).get("argv")
        if isinstance(words, list) and words:
            return typed([str(word) for word in words])
    return ""


def typed(words: List[str]) -> str:
    """Return a command line as typed, without the interpreter."""
    return " ".join(_typed(words))


def _typed(words: List[str]) -> List[str]:
    if _PYTHON.match(os.path.basename(words[0])):
        words = words[1:]
        while words and words[0].startswith("-") and words[0] not in ("-m", "-c"):
            words = words[1:]
    if words[:2] in (["-m", "torch.distributed.run"], ["-m", "torch.distributed.launch"]):
        words = ["torchrun", *words[2:]]
    return [os.path.basename(words[0]), *words[1:]] if words else []


def _host_of(file: str) -> str:
    name = os.path.basename(file)
    match = _NAME.match(name)
    if match:
        return match[2]
    launcher = _LAUNCHER.match(name)
    return launcher[1] if launcher else ""


def _rank(file: str) -> Optional[int]:
    match = _NAME.match(os.path.basename(file))
    return int(match[1]) if match else None


def _stat(file: str) -> Tuple[int, float]:
    try:
        status = os.stat(file)
    except OSError:
        return 0, 0.0
    return status.st_size, status.st_mtime


def _expected(ranks: List[str], launchers: List[str]) -> Optional[int]:
    """Return the world size from the last or the first lines of the first ranks."""
    for file in ranks[:_SAMPLED]:
        for event in (log_lines.last(file), log_lines.first(file)):
            size = event.get("world_size", event.get("group_size"))
            if isinstance(size, int) and size > 0:
                return size
    if not ranks:
        events = chain.from_iterable(map(log_lines.tail, launchers))
        requested = [event.get("nproc_per_node") for event in events if event.get("event") == "launcher.agent"]
        return sum(number for number in requested if isinstance(number, int)) or None
    return 1 if len(ranks) == 1 and not launchers else None


def _ended(ranks: List[str], launchers: List[str], seen: int, expected: Optional[int]) -> Tuple[str, str]:
    signals: Dict[_Child, str] = {}
    for file in launchers:
        signals.update(_signals(file))
    states = Counter(_state(log_lines.last(file), "process.end") for file in ranks if _child(file) not in signals)
    above = Counter(_state(log_lines.last(file), "launcher.end") for file in launchers)
    parts: List[str] = []
    if states["failed"]:
        parts.append(say("{count} failed", count=states["failed"]))
    if states["no end"]:
        parts.append(say("{count} no end", count=states["no end"]))
    missing = max(0, (expected or 0) - seen)
    if missing and ranks:
        parts.append(say("{count} without a file", count=missing))
    because = joined(parts, by=", ")
    if states["running"] or above["running"]:
        return "running", because
    if signals:
        common = Counter(signals.values()).most_common(2)
        of_signals = [say("{count} {signal}", count=count, signal=name) for name, count in common]
        return "killed", joined([*of_signals, *parts], by=", ")
    if states["failed"] or above["failed"]:
        return "failed", because
    if states["no end"] or above["no end"] or (missing and ranks) or not ranks:
        return "no end", because or "no rank files" * (not ranks)
    return "well", ""


def _state(event: Dict[str, Any], name: str) -> str:
    if event.get("event") != name:
        return "running" if _alive(event) else "no end"
    return "failed" if event.get("failure") or event.get("exit_code") or event.get("uncaught") else "well"


def _signals(file: str) -> Dict[_Child, str]:
    """Return the signals that ended this launcher's children, except SIGTERM, which launchers send themselves. Each child is reported twice."""
    match = _LAUNCHER.match(os.path.basename(file))
    host = match[1] if match else ""
    return {
        (host, str(event.get("child_pid"))): str(event["signal"])
        for event in log_lines.tail(file)
        if event.get("event") == "launcher.child" and event.get("signal") not in (None, "", "SIGTERM")
    }


def _child(file: str) -> _Child:
    match = _NAME.match(os.path.basename(file))
    return (match[2], match[3]) if match else ("", "")


def _alive(event: Dict[str, Any]) -> bool:
    pid = event.get("pid")
    if event.get("host") != platform.node() or not isinstance(pid, int) or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True
