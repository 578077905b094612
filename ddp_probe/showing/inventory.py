"""What was read, in a few lines: a verdict is only as reliable as the files behind it."""

import os
import time
from collections import Counter
from typing import Dict, Iterable, Iterator, List, Optional, Tuple

from ddp_probe.reading import bundled, find, fold_file, glance
from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.showing.language import ENGLISH, Language
from ddp_probe.showing.rank_state import NO_FILE, RankState
from ddp_probe.showing.ranks_table import hosts, who
from ddp_probe.wording.text import say as text_of
from ddp_probe.wording.words import command as command_of
from ddp_probe.wording.words import moment

_SHOWN = 4  # Maximum unreadable files named.
_OLD = 600.0  # Seconds after which the newest run may not be the run that is meant.


def title(run: Run, rank_states: List[RankState], say: Language = ENGLISH) -> str:
    """Return the run in one line: its name, its launcher, its ranks and its hosts."""
    if not run.processes and not run.launchers:
        return say("plain log without the probe's files") if run.texts else say("nothing to read")
    by = launcher(run)
    names = [process.host for process in (*run.processes, *run.launchers)]
    size = say.counted(len(rank_states) + len(run.elsewhere), "rank")
    parts = [say("run %s") % (run.name or say("without a name")), say("by %s") % by if by else "", size]
    return say(", ").join(part for part in parts if part) + (say(" on %s") % hosts(names) if any(names) else "")


def launcher(run: Run) -> str:
    """Return what launched the ranks; empty if nothing did or it is unknown."""
    names = [process.start.launcher for process in run.launchers if isinstance(process.start, schema.LauncherStart)]
    names += [process.started.launcher for process in run.processes]
    return next((name for name in names if name and name != "none"), "")


def rows(run: Run, rank_states: List[RankState], say: Language = ENGLISH) -> Iterator[Tuple[str, str]]:
    """Yield the label and sentence of each line."""
    if run.processes or run.launchers:
        yield "began", since(run, say)
    yield "read", _read(run, say)
    if run.processes or run.missing:
        yield "ranks", _ranks(run, rank_states, say)
    if run.elsewhere:
        yield "not seen", say("%s: on hosts without any file here") % say.text(who(run.elsewhere))
    yield from _faults(run, say)
    if run.inventory.clock_spread is not None and run.inventory.clock_spread >= 0.001:
        yield "clocks", say("the hosts' clocks are %.3f s apart; all times are aligned to one clock") % run.inventory.clock_spread
    for note in run.inventory.notes:
        yield "note", bundled.shown(say.text(note))
    looks = find.looks_at(run.folders[0]) if run.is_newest and run.folders else []
    if looks:
        template = "attach has seen this job from outside, too: {command}"
        yield "note", say.text(text_of(template, command=command_of("report", os.path.basename(looks[0]))))
    if run.is_newest and not run.running and age(run) > _OLD:
        yield "note", say("no path was given, so this is the newest run; a job that was started since has left none: python -m ddp_probe status")


def age(run: Run) -> float:
    """Return for how many seconds it has been since the last that was heard of a run."""
    return time.time() - heard(run)


def heard(run: Run) -> float:
    """Return when a run was last heard of; 0 if it has no process."""
    return max([process.last_when for process in (*run.processes, *run.launchers)] or [0.0])


def began(run: Run) -> float:
    """Return when a run began; 0 if it has no process."""
    return min([process.start_when for process in (*run.launchers, *run.processes)] or [0.0])


def since(run: Run, say: Language = ENGLISH) -> str:
    """Say when a run began, and with which command; of the newest run, how old it is."""
    when = say.text(moment(began(run)))
    if run.is_newest:
        when = say("%s, last heard of %s ago") % (when, _span(age(run)))
    words = command(run)
    return say(": ").join([when, glance.typed(words)] if words else [when])


def spaced(run: Run) -> List[str]:
    """Return the paths and the words of the command in which there is a space, at which no line is to be broken."""
    return [text for text in (*map(near, run.folders or run.inventory.files), *command(run)) if " " in text]


def command(run: Run) -> List[str]:
    """Return the words of the command that started a run; empty if no process recorded it."""
    return next((words for process in (*run.launchers, *run.processes) for words in [getattr(process.start, "argv", [])] if words), [])


def _span(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return "%d %s" % (seconds // size, unit)
    return "%d s" % max(seconds, 0)


def ends(rank_states: List[RankState]) -> Dict[str, List[int]]:
    """Return how the ranks ended, as in the table, to the list of ranks; the most common end first."""
    ranks_of: Dict[str, List[int]] = {}
    for state in rank_states:
        ranks_of.setdefault(state.end, [])
        if state.rank is not None:
            ranks_of[state.end].append(state.rank)
    return dict(sorted(ranks_of.items(), key=lambda item: -len(item[1])))


def _read(run: Run, say: Language) -> str:
    inventory = run.inventory
    lines = inventory.lines + sum(log.lines for log in run.texts)
    text = say(", ").join((say.counted(len(inventory.files), "file"), say.counted(lines, "line")))
    sources = run.folders or inventory.files
    return text + (say(", in ") if run.folders else say(": ")) * bool(sources) + _some([near(source) for source in sources], say)


def _ranks(run: Run, rank_states: List[RankState], say: Language) -> str:
    seen = say("%d wrote") % len(run.processes)
    expected = say("%d expected, ") % run.expected if run.expected else ""
    ended = ends(rank_states)
    if len(ended) == 1:
        end = say.state(next(iter(ended)))
        return expected + seen + say(": ") + (end if len(rank_states) == 1 else say("all %s") % end)
    never = say("never started, or wrote no file")
    words = ["%s %s" % (say.text(who(ranks)), never if end == NO_FILE else say.state(end)) for end, ranks in ended.items()]
    return expected + seen + say(": ") + say("; ").join(words)


def _faults(run: Run, say: Language) -> Iterator[Tuple[str, str]]:
    """Yield what could not be read, or was not written."""
    inventory = run.inventory
    reasons: Counter[str] = Counter()
    for counted in inventory.skipped.values():
        reasons.update(counted)
    if reasons:
        counts = ", ".join("%d %s" % (count, reason) for reason, count in reasons.most_common())
        files = _some([near(file, run) for file in inventory.skipped], say)
        yield "skipped", say("%s (%s), in %s") % (say.counted(sum(reasons.values()), "line"), counts, files)
    for file, why in list(inventory.unreadable.items())[:_SHOWN]:
        yield "unread", near(file, run) + say(": ") + why
    if len(inventory.unreadable) > _SHOWN:
        yield "unread", say("%d more") % (len(inventory.unreadable) - _SHOWN)
    processes = [*run.launchers, *run.earlier, *run.processes]
    strange = unknown(processes)
    if strange:
        count = say.counted(sum(strange.values()), "event")
        yield "unknown", say("%s from an unknown version of the probe: %s") % (count, _some(sorted(strange), say))
    full = [near(process.file, run) for process in processes if process.full]
    if full:
        yield "full", say("%s reached DDP_PROBE_MAX_BYTES; later events are missing") % _some(full, say)
    ranks = [process.rank for process in run.processes if process.ended is not None and process.ended.faults and process.rank is not None]
    if ranks:
        yield "faults", say("the probe itself had faults on %s; see probe.fault") % say.text(who(ranks))
    if run.earlier:
        yield "earlier", say("%s from earlier generations, not in the table") % say.counted(len(run.earlier), "file")


def unknown(processes: Iterable[LoggedProcess]) -> Dict[str, int]:
    """Return how many events of each unknown name there are."""
    counts: Counter[str] = Counter()
    for process in processes:
        counts.update(process.unknown)
    return dict(counts)


def near(path: str, run: Optional[Run] = None) -> str:
    """Return the shortest usable path: only the file name if one folder or one file was read."""
    path = _shown(path)
    folder, name = os.path.split(path)
    if run is not None and len(run.folders) == 1 and _shown(run.folders[0]) == folder:
        return name
    if run is not None and list(map(_shown, run.inventory.files)) == [path]:
        return name
    if run is not None and fold_file.SUFFIX + os.sep in path:  # Its name says on which host it is.
        return name
    here = os.getcwd() + os.sep
    return path[len(here) :] if path.startswith(here) and len(path) > len(here) else path


def _shown(path: str) -> str:
    """Return a path as a person would name it; an address keeps its two slashes."""
    return bundled.shown(os.path.normpath(path))


def _some(names: List[str], say: Language) -> str:
    return ", ".join(names[:_SHOWN]) + (say(" and %d more") % (len(names) - _SHOWN) if len(names) > _SHOWN else "")
