"""What was read, in a few lines: a verdict is only as reliable as the files behind it."""

import os
from collections import Counter
from typing import Dict, Iterable, Iterator, List, Optional, Tuple

from ddp_probe import schema
from ddp_probe.read import bundled, fold_file
from ddp_probe.read.model import LoggedProcess, Run
from ddp_probe.report.rank_state import NO_FILE, RankState
from ddp_probe.report.ranks import hosts, who

_SHOWN = 4  # Maximum unreadable files named.


def title(run: Run, rank_states: List[RankState]) -> str:
    """Return the run in one line: its name, its launcher, its ranks and its hosts."""
    if not run.processes and not run.launchers:
        return "plain log without the probe's files" if run.texts else "nothing to read"
    by = launcher(run)
    names = [each.host for each in (*run.processes, *run.launchers)]
    parts = ["run %s" % (run.name or "without a name"), "by %s" % by if by else "", _count(len(rank_states) + len(run.elsewhere), "rank")]
    return ", ".join(part for part in parts if part) + (" on %s" % hosts(names) if any(names) else "")


def launcher(run: Run) -> str:
    """Return what launched the ranks; empty if nothing did or it is unknown."""
    names = [process.start.launcher for process in run.launchers if isinstance(process.start, schema.LauncherStart)]
    names += [process.started.launcher for process in run.processes]
    return next((name for name in names if name and name != "none"), "")


def rows(run: Run, rank_states: List[RankState]) -> Iterator[Tuple[str, str]]:
    """Yield the label and sentence of each line."""
    yield "read", _read(run)
    if run.processes or run.missing:
        yield "ranks", _ranks(run, rank_states)
    if run.elsewhere:
        yield "not seen", "%s: on hosts without any file here" % who(run.elsewhere)
    yield from _faults(run)
    if run.inventory.clock_spread is not None and run.inventory.clock_spread >= 0.001:
        yield "clocks", "the hosts' clocks are %.3f s apart; all times are aligned to one clock" % run.inventory.clock_spread
    for note in run.inventory.notes:
        yield "note", bundled.shown(note)


def ends(rank_states: List[RankState]) -> Dict[str, List[int]]:
    """Return how the ranks ended, as in the table, to the list of ranks; the most common end first."""
    found: Dict[str, List[int]] = {}
    for state in rank_states:
        found.setdefault(state.end, [])
        if state.rank is not None:
            found[state.end].append(state.rank)
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def _read(run: Run) -> str:
    inventory = run.inventory
    text = "%s, %s" % (_count(len(inventory.files), "file"), _count(inventory.lines + sum(log.lines for log in run.texts), "line"))
    sources = run.folders or inventory.files
    return text + (", in " if run.folders else ": ") * bool(sources) + _some([near(source) for source in sources])


def _ranks(run: Run, rank_states: List[RankState]) -> str:
    seen = "%d wrote" % len(run.processes)
    expected = "%d expected, " % run.expected if run.expected else ""
    ended = ends(rank_states)
    if len(ended) == 1:
        return "%s%s: %s" % (expected, seen, next(iter(ended)) if len(rank_states) == 1 else "all %s" % next(iter(ended)))
    words = ["%s %s" % (who(ranks), "never started, or wrote no file" if end == NO_FILE else end) for end, ranks in ended.items()]
    return "%s%s: %s" % (expected, seen, "; ".join(words))


def _faults(run: Run) -> Iterator[Tuple[str, str]]:
    """Yield what could not be read, or was not written."""
    inventory = run.inventory
    reasons: Counter[str] = Counter()
    for counted in inventory.skipped.values():
        reasons.update(counted)
    if reasons:
        counts = ", ".join("%d %s" % (count, reason) for reason, count in reasons.most_common())
        yield "skipped", "%s (%s), in %s" % (_count(sum(reasons.values()), "line"), counts, _some([near(file, run) for file in inventory.skipped]))
    for file, why in list(inventory.unreadable.items())[:_SHOWN]:
        yield "unread", "%s: %s" % (near(file, run), why)
    if len(inventory.unreadable) > _SHOWN:
        yield "unread", "%d more" % (len(inventory.unreadable) - _SHOWN)
    processes = [*run.launchers, *run.earlier, *run.processes]
    strange = unknown(processes)
    if strange:
        yield "unknown", "%s from an unknown version of the probe: %s" % (_count(sum(strange.values()), "event"), _some(sorted(strange)))
    full = [near(process.file, run) for process in processes if process.full]
    if full:
        yield "full", "%s reached DDP_PROBE_MAX_BYTES; later events are missing" % _some(full)
    own = [process.rank for process in run.processes if process.ended is not None and process.ended.faults and process.rank is not None]
    if own:
        yield "faults", "the probe itself had faults on %s; see probe.fault" % who(own)
    if run.earlier:
        yield "earlier", "%s from earlier generations, not in the table" % _count(len(run.earlier), "file")


def unknown(processes: Iterable[LoggedProcess]) -> Dict[str, int]:
    """Return how many events of each unknown name there are."""
    found: Counter[str] = Counter()
    for process in processes:
        found.update(process.unknown)
    return dict(found)


def near(path: str, run: Optional[Run] = None) -> str:
    """Return the shortest usable path: only the file name if one folder or one file was read."""
    path = os.path.normpath(bundled.shown(path))
    folder, name = os.path.split(path)
    if run is not None and len(run.folders) == 1 and os.path.normpath(bundled.shown(run.folders[0])) == folder:
        return name
    if run is not None and [os.path.normpath(bundled.shown(file)) for file in run.inventory.files] == [path]:
        return name
    if run is not None and fold_file.SUFFIX + os.sep in path:  # Its name says on which host it is.
        return name
    here = os.getcwd() + os.sep
    return path[len(here) :] if path.startswith(here) and len(path) > len(here) else path


def _count(number: int, name: str) -> str:
    return "%d %s%s" % (number, name, "" if number == 1 else "s")


def _some(names: List[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (" and %d more" % (len(names) - _SHOWN) if len(names) > _SHOWN else "")
