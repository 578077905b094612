"""Groups files by launch. Several torchruns of one rendezvous write one folder each; a program that launches repeatedly writes into one folder.

Parts belong to one launch if their ranks or their launchers share a rendezvous, their times overlap, and no rank is in two of them.
"""

import os
from itertools import chain
from typing import Any, Callable, Dict, FrozenSet, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from ddp_probe.reading import log_lines
from ddp_probe.reading.log_lines import seconds
from ddp_probe.reading.model import LoggedProcess
from ddp_probe.shared import schema

_APART = 600.0  # Maximum seconds between the starts of two parts.
_SKEW = 5.0  # Maximum seconds between the clocks of two hosts.
_MOST_FILES = 256  # At most this many files of a folder are opened for their first line.
_LOOPBACK = ("localhost", "127.0.0.1", "::1", "0.0.0.0")  # noqa: S104  # compared with, not listened on

_Key = Tuple[str, ...]


class Part(NamedTuple):
    """A folder's part of a launch."""

    folder: str
    ranks: FrozenSet[int]
    keys: FrozenSet[_Key]  # The rendezvous of its ranks and of its launchers.
    world: int
    start: float
    end: Optional[float]  # None while a file has no last line.

    @property
    def whole(self) -> bool:
        """Return whether no rank is missing."""
        return bool(self.world) and len(self.ranks) >= self.world


def same(part: Part, other: Part) -> bool:
    """Return whether two parts belong to one launch."""
    return bool(part.keys & other.keys) and not part.ranks & other.ranks and _in_time(part, other)


def _in_time(part_of_launch: Part, other: Part) -> bool:
    first, later = sorted((part_of_launch, other), key=lambda part: part.start)
    return later.start - first.start <= _APART and (first.end is None or later.start <= first.end + _SKEW)


def _other(part: Part, named: Part) -> bool:
    """Return whether two folders are different launches although the user named them together."""
    kinds = {key[0] for key in part.keys} & {key[0] for key in named.keys}
    return bool(part.ranks & named.ranks) or bool(kinds and not part.keys & named.keys)


def beside(folder: str, siblings: Callable[[], Iterable[str]]) -> List[str]:
    """Return all folders of the same launch as this one, itself included, judged by the first lines of their files."""
    parts = [glance(folder)]
    if parts[0].whole or not parts[0].keys:
        return [folder]
    place, since = os.path.realpath(folder), parts[0].start - _APART
    others = [glance(other) for other in siblings() if os.path.realpath(other) != place and _touched(other) >= since]
    for part in sorted(others, key=lambda part: abs(part.start - parts[0].start)):
        if any(same(part, other) for other in parts) and not any(part.ranks & other.ranks for other in parts):
            parts.append(part)
    return [part.folder for part in sorted(parts, key=lambda part: (min(part.ranks, default=0), part.folder))]


def _touched(folder: str) -> float:
    """Return when a file was last added to a folder; reading the first lines of all folders would take too long."""
    try:
        return os.stat(folder).st_mtime
    except OSError:
        return 0.0


def _files(folder: str) -> List[str]:
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(".jsonl") and name.startswith(("rank", "launcher")))[:_MOST_FILES]
    except OSError:
        return []


def glance(folder: str) -> Part:
    """Return a folder's part of a launch, judged by the first and last lines of its files."""
    files = [os.path.join(folder, name) for name in _files(folder)]
    heads = list(chain.from_iterable(map(log_lines.head, files)))
    starts = [seconds(str(event.get("ts", ""))) or 0.0 for event in heads if str(event.get("event", "")).endswith(".start")]
    lasts = [log_lines.last(file) for file in files]
    over = [seconds(str(event.get("ts", ""))) or 0.0 for event in lasts if event.get("event") in ("process.end", "launcher.end")]
    return Part(
        folder,
        frozenset(event["rank"] for event in lasts if isinstance(event.get("rank"), int)),  # Not of the first lines: a program learns its rank late.
        frozenset(chain.from_iterable(map(_keys_in, heads))),
        max((event["world_size"] for event in heads + lasts if isinstance(event.get("world_size"), int)), default=0),
        min(starts, default=0.0),
        max(over) if over and len(over) == len(lasts) else None,
    )


def _keys_in(event: Dict[str, Any]) -> List[_Key]:
    keys = _keys(event.get("environment"), event.get("rendezvous"), event.get("nnodes"), event.get("host"))
    return keys + _met(str(event.get("init_method", "")), event.get("master_addr"), event.get("master_port"), event.get("host"))


def _met(method: str, address: Any, port: Any, host: Any) -> List[_Key]:
    """Return at which address a process group met: the one that the program gave, or that of the environment at the time of the call."""
    if method.startswith("tcp://"):
        address, _, port = method[len("tcp://") :].partition("?")[0].rstrip("/").rpartition(":")
    return [("ranks", _qualified(str(address), host), str(port))] if address and port else []


def _keys(environment: Any, rendezvous: Any, nodes: Any, host: Any) -> List[_Key]:
    """Return what identifies the launch of a process: the master address of its ranks, and the rendezvous of its launcher."""
    env: Dict[str, Any] = environment if isinstance(environment, dict) else {}
    keys: List[_Key] = []
    if env.get("MASTER_ADDR") and env.get("MASTER_PORT"):
        keys.append(("ranks", _qualified(str(env["MASTER_ADDR"]), host), str(env["MASTER_PORT"])))
    given: Dict[str, Any] = rendezvous if isinstance(rendezvous, dict) else {}
    if given.get("endpoint") and not str(nodes or "1:1").endswith(":1"):
        address, _, port = str(given["endpoint"]).rpartition(":")
        keys.append(("launchers", str(given.get("id", "")), _qualified(address, host), port))
    return keys


def _qualified(address: str, host: Any) -> str:
    """Add the host to a loopback address: each host has one."""
    return "%s of %s" % ("loopback", host) if address in _LOOPBACK else address


def split(processes: Sequence[LoggedProcess]) -> List[List[LoggedProcess]]:
    """Return the launches in these files, oldest first."""
    folders: Dict[str, List[LoggedProcess]] = {}
    for process in processes:
        folders.setdefault(os.path.dirname(process.file), []).append(process)
    groups: List[_Group] = []
    for folder, members in sorted(folders.items(), key=lambda item: min(process.start_when for process in item[1])):
        part = _part(folder, members)
        fitting = [group for group in groups if group.takes(part)]
        if not fitting:
            groups.append(_Group(part))
        else:
            fitting[-1].add(part)
        (fitting or groups)[-1].processes.extend(members)
    return list(chain.from_iterable(_in_turn(group.processes) for group in groups))


class _Group:
    """The parts of one launch, or of several that were named together."""

    def __init__(self, part: Part) -> None:
        self.processes: List[LoggedProcess] = []
        self._parts = [part]
        self._keys: Optional[FrozenSet[_Key]] = part.keys  # Those of each part; None if they differ.
        self._ranks = set(part.ranks)

    def takes(self, part: Part) -> bool:
        """Return whether a part can belong here. Ten thousand hosts have one rendezvous, and no rank twice: then they need not be compared."""
        if part.keys == self._keys and self._ranks.isdisjoint(part.ranks):
            return True
        return not any(_other(own, part) and not same(own, part) for own in self._parts)

    def add(self, part: Part) -> None:
        """Take a part in."""
        self._parts.append(part)
        self._keys = self._keys if part.keys == self._keys else None
        self._ranks |= part.ranks


def _part(folder: str, processes: List[LoggedProcess]) -> Part:
    keys = chain.from_iterable(map(_keys_of, processes))
    workers = [process for process in processes if not process.is_launcher]
    return Part(
        folder,
        frozenset(process.rank for process in workers if process.rank is not None),
        frozenset(keys),
        max((process.world_size or 0 for process in workers), default=0),
        min(process.start_when for process in processes),
        max(process.last_when for process in processes) if all(process.end for process in processes) else None,
    )


def _keys_of(process: LoggedProcess) -> List[_Key]:
    if process.is_launcher:
        keys: List[_Key] = []
        for agent in process.calls(schema.LauncherAgent):
            keys += _keys({}, agent.begin.rendezvous, agent.begin.nnodes, process.host)
        return keys
    call = process.first(schema.InitProcessGroup)
    met = _met(call.begin.init_method, call.begin.master_addr, call.begin.master_port, process.host) if call is not None else []
    return _keys(process.started.environment, {}, "", process.host) + met


def _in_turn(group: List[LoggedProcess]) -> List[List[LoggedProcess]]:
    """Split consecutive launches of one program: a rank that starts again after its last line begins the next launch."""
    above = set(map(id, parents(group)))
    launchers = [process for process in group if process.is_launcher or id(process) in above]
    ranks = [process for process in group if not (process.is_launcher or id(process) in above)]
    launches: List[List[LoggedProcess]] = [[]]
    held: Dict[Optional[int], LoggedProcess] = {}
    for process in sorted(ranks, key=lambda process: process.start_when):
        before = held.get(process.rank) if process.rank is not None else None
        if before is not None and generation(process) <= generation(before) and before.last_when < process.start_when:
            launches.append([])
            held = {}
        launches[-1].append(process)
        held[process.rank] = process
    return [[*launchers, *launch] for launch in launches]


def parents(processes: Sequence[LoggedProcess]) -> List[LoggedProcess]:
    """Return the solo programs that started the ranks by multiprocessing: they are launchers, not ranks."""
    promoted = any(process.started.role == "promoted" for process in processes)
    return [process for process in processes if promoted and process.started.role == "solo" and not process.calls(schema.InitProcessGroup)]


def generation(process: LoggedProcess) -> int:
    """Return how many times the launcher had restarted its ranks before this process."""
    text = process.started.environment.get("TORCHELASTIC_RESTART_COUNT", "0")
    return int(text) if text.isdigit() and text.isascii() and len(text) < 7 else 0


def choose(launches: Sequence[List[LoggedProcess]]) -> int:
    """Return the index of the launch to report: the last that did not end well, else the last."""
    bad = [number for number, launch in enumerate(launches) if not _ended_well(launch)]
    return bad[-1] if bad else len(launches) - 1


def _ended_well(launch: List[LoggedProcess]) -> bool:
    above = parents(launch)
    ends = [process.end for process in launch if not process.is_launcher and process not in above]
    return all(end is not None and not getattr(end, "uncaught", False) and not getattr(end, "exit_code", None) for end in ends)
