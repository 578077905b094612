"""What a run leaves open where no rule found a cause: each rank that is not proven to have done well, and why, and what to try next."""

import os
import re
from typing import Dict, Iterator, List, Optional, Sequence, Set, Tuple

from ddp_probe import schema
from ddp_probe.diagnose import _next, _proof
from ddp_probe.diagnose._waits import stood
from ddp_probe.diagnose._who import place as line_of
from ddp_probe.diagnose.rule import Undecided
from ddp_probe.diagnose.words import clock, subject
from ddp_probe.read import inside as carried
from ddp_probe.read.failures import INTERRUPTED
from ddp_probe.read.model import Failed, LoggedCall, LoggedProcess, Run, one_line
from ddp_probe.schema import Failure


def open_questions(run: Run, told: Sequence[Undecided]) -> List[Undecided]:
    """Return why a run cannot be called clear, beyond what the rules have told; empty for one in which every rank is proven good."""
    known = {id(failure) for answer in told for failure in answer.explains}
    asked = [*_nothing(run), *_missing(run), *_elsewhere(run), *_failed(run, known), *_interrupted(run), *_waiting(run)]
    asked += _unproven(run, known, bool(asked or told))
    return asked or [*_texts(run), *([] if told else _launch(run))]


def _unproven(run: Run, known: Set[int], explained: bool) -> Iterator[Undecided]:
    """Tell every rank without a proof; where the failure of another one is told already, not those that merely followed from it."""
    for gap, processes in _proof.gaps(run):
        if explained and _followed(gap, processes, run, known):
            continue
        yield Undecided(gap.slug, _proof.sentence(gap, processes), next=gap.next)


def _followed(gap: _proof.Gap, processes: List[LoggedProcess], run: Run, known: Set[int]) -> bool:
    if gap.slug == _proof.EXIT_CODE:
        return all(id(process.death) in known for process in processes)
    if gap.slug == _proof.SIGNAL:
        return all(process.signal == "SIGTERM" or id(process.death) in known for process in processes)
    return gap.slug != _proof.RUNNING and (gap.slug != _proof.NO_END or bool(run.failures))


def _nothing(run: Run) -> Iterator[Undecided]:
    if run.processes or run.texts:
        return
    if run.inventory.unreadable and not run.launchers:
        file, why = next(iter(run.inventory.unreadable.items()))
        more = len(run.inventory.unreadable) - 1
        said = "%s (%s)%s" % (why.rstrip("."), os.path.basename(file) or file, " and %d more" % more if more else "")
        yield Undecided("unreadable", "What there is of the run cannot be read: %s." % said, next=_readable(why))
        return
    none = [call for launcher in run.launchers for call in launcher.calls(schema.LauncherGroup) if call.begin.asked == 0]
    if none:
        where = line_of(none[0].site)
        yield Undecided("no-rank-wrote", "No rank was started: the launch was asked for 0 processes at %s." % where, next=_next.NONE_ASKED)
        return
    failures = [launcher.end.failure for launcher in run.launchers if launcher.end is not None and launcher.end.failure is not None]
    told = ["its launcher failed with %s" % _said(f) for f in failures[:1]]
    what = told[0] if told else "there is only its launcher's" if run.launchers else "there is none that can be read"
    yield Undecided("no-rank-wrote", "No rank left a file: %s." % what, next=_next.EARLY if run.launchers else _next.OTHER_RUN)


def _readable(why: str) -> str:
    return _next.EARLY if why.startswith("It holds no") else _next.UNREADABLE


def _rank_of(file: str) -> Optional[int]:
    found = re.match(r"rank(\d{1,7})\.", os.path.basename(file))
    return int(found.group(1)) if found else None


def _missing(run: Run) -> Iterator[Undecided]:
    if not run.missing or not run.processes:
        return
    closed = {rank: file for file in run.inventory.unreadable for rank in [_rank_of(file)] if rank is not None and rank in run.missing}
    for rank, file in sorted(closed.items()):
        why = run.inventory.unreadable[file].rstrip(".")
        yield Undecided("unreadable", "The file of rank %d cannot be read: %s (%s)." % (rank, why, os.path.basename(file)), next=_readable(why))
    missing = [rank for rank in run.missing if rank not in closed]
    if not missing:
        return
    ends = {run.death(rank) for rank in missing}
    codes = sorted({str(death.signal or death.exit_code) for death in ends if death is not None and (death.signal or death.exit_code)})
    how = "; the launcher tells of exit code %s" % ", ".join(codes) if codes else ""
    what = "left no file" if not run.astray else "have no file here, though their launcher tells of one"
    yield Undecided("missing-ranks", "%s %s, of %s that there should be%s." % (subject(missing), what, run.expected, how), next=_next.MISSING)


def _elsewhere(run: Run) -> Iterator[Undecided]:
    if run.elsewhere:
        yield unseen(run)


def unseen(run: Run) -> Undecided:
    """Say which ranks are of hosts of which no file is here, and how to read them with the rest."""
    place = os.path.join(os.path.dirname(os.path.normpath(run.folders[0])) if run.folders else "ddp_probe_runs", "2*")
    near = os.path.relpath(place) if place.startswith(os.getcwd() + os.sep) else place
    who = subject(run.elsewhere, "is of another host", "are of other hosts")
    return Undecided(
        "not-seen",
        "%s, of which no file is here: whether all went well there is not known." % who,
        next="The folders of those hosts belong to this run. Copy them beside it, and name them all: python -m ddp_probe report %s" % near,
    )


def _failed(run: Run, known: Set[int]) -> Iterator[Undecided]:
    """Tell the first failures that no rule knows, alike ones of several ranks in one sentence."""
    fatal = [failure for failure in run.failures if failure.fatal and id(failure) not in known and (failure.process or failure.uncaught)]
    if known and all(failure.consequence for failure in fatal):
        return
    own = [failure for failure in fatal if not failure.consequence] or [failure for failure in fatal if failure.consequence != INTERRUPTED]
    for (text, site), alike in _alike(own)[:3]:
        ranks = sorted({failure.rank for failure in alike if failure.rank is not None})
        who = subject(ranks) if ranks else alike[0].at.file
        place = " at %s" % site if site else " (%s:%d)" % alike[0].at
        then = _next.FAILURE % (site or "its last line", *alike[0].at, " --rank %d" % ranks[0] if ranks else "")
        yield Undecided("unrecognised-failure", "%s failed with %s%s, which no rule can name the cause of." % (who, text, place), next=then)


def _interrupted(run: Run) -> Iterator[Undecided]:
    """Tell where each rank stood when a person ended the job: that is where it hung, if it did."""
    stopped = [failure for failure in run.failures if failure.consequence == INTERRUPTED and failure.process is not None]
    for where, alike in _places(stopped)[:6]:
        who = subject(sorted(f.rank for f in alike if f.rank is not None), "was", "were")
        yield Undecided("interrupted", "%s interrupted %s." % (who, where), next=_next.HUNG)


def _places(failures: Sequence[Failed]) -> List[Tuple[str, List[Failed]]]:
    groups: Dict[str, List[Failed]] = {}
    for failure in failures:
        groups.setdefault(stood(failure), []).append(failure)
    return list(groups.items())


def _launch(run: Run) -> Iterator[Undecided]:
    """Tell of a launch that failed although each rank seems well."""
    for launcher in run.launchers:
        calls = [call.failure for call in launcher.calls(schema.LauncherGroup) if call.failure is not None]
        failure = launcher.end.failure if launcher.end is not None and launcher.end.failure is not None else next(iter(calls), None)
        code = getattr(launcher.end, "exit_code", None)
        if failure is not None:
            how = "failed with %s" % _said(failure)
            yield Undecided("launch-failed", "The launcher on %s %s" % (launcher.host, how), next=_next.LAUNCHER)
        elif code:
            how = "ended with exit code %d, and every rank with 0" % code
            yield Undecided("launch-failed", "The launcher on %s %s." % (launcher.host, how), next=_next.LAUNCHER)


def _said(failure: Failure) -> str:
    return one_line(failure.type, failure.message, carried.inside(failure.message, failure.cause_message, failure.cause), 300)


def _alike(failures: Sequence[Failed]) -> List[Tuple[Tuple[str, str], List[Failed]]]:
    groups: Dict[Tuple[str, str], List[Failed]] = {}
    for failure in failures:
        site = "%s:%d" % (failure.site.file, failure.site.line) if failure.site else ""
        groups.setdefault((failure.said(200), site), []).append(failure)
    return list(groups.items())


def _waiting(run: Run) -> Iterator[Undecided]:
    """Tell who is inside a call that did not come back, and since when."""
    groups: Dict[Tuple[str, str], List[Tuple[LoggedProcess, LoggedCall]]] = {}  # type: ignore[type-arg]  # calls of any kind
    for process in run.processes:
        call = process.waiting
        if call is not None:
            site = "%s:%d" % (call.site.file, call.site.line) if call.site else "an unknown line"
            groups.setdefault((call.name, site), []).append((process, call))
    for (name, site), inside in groups.items():
        since = min(call.when for _, call in inside)
        ranks = sorted(process.rank for process, _ in inside if process.rank is not None)
        then = _next.WAITING % inside[0][0].pid
        yield Undecided("waiting", "%s did not come back from %s at %s, since %s." % (subject(ranks), name, site, clock(since)), next=then)


def _texts(run: Run) -> Iterator[Undecided]:
    if run.texts and not run.processes:
        yield Undecided(
            "plain-log",
            "The log holds no failure that is known, and without the probe's files nothing shows that all ranks did well.",
            next=_next.TRACED,
        )
