"""What a run leaves open if no rule found a cause: each rank that is not proven to have finished normally, why, and what to try next."""

import os
import platform
import re
from itertools import chain
from typing import Dict, Iterator, List, Optional, Sequence, Set, Tuple

from ddp_probe.judging import proof
from ddp_probe.judging.disagreements import disagreements
from ddp_probe.judging.ledgers import ledger_off, standings_of
from ddp_probe.judging.parted import so_far
from ddp_probe.judging.rule import Undecided, explained
from ddp_probe.judging.waiting import joined as is_in_a_group
from ddp_probe.judging.waiting import stood
from ddp_probe.judging.who import ranks_of
from ddp_probe.reading import job_line as carried
from ddp_probe.reading import proc_files
from ddp_probe.reading.failures import INTERRUPTED
from ddp_probe.reading.job_line import job_line
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import Failed, LoggedProcess, Run, one_line
from ddp_probe.reading.process_files import NO_EVENT
from ddp_probe.reading.rank_stacks import main_frames
from ddp_probe.shared import schema
from ddp_probe.shared.schema import Failure
from ddp_probe.wording.text import Text, about, joined, say
from ddp_probe.wording.words import capital, clock, command, counted, listed, named, place, quoted

_SHOWN = 4  # Ranks whose place is said.
_STATES = {
    "R": say("computing"),
    "S": say("asleep"),
    "D": say("waiting for a disk or a device"),
    "T": say("stopped"),
    "t": say("stopped by a debugger"),
}


def open_questions(run: Run, undecideds: Sequence[Undecided]) -> List[Undecided]:
    """Return why a run is not clear, beyond what the rules said; empty if every rank is proven to have finished normally."""
    known = set(map(id, explained(undecideds)))
    asked = [*_nothing(run), *_missing(run), *_elsewhere(run), *_failed(run, known), *_interrupted(run), *_waiting(run)]
    asked += _unproven(run, known, bool(asked or undecideds))
    asked += [] if asked or undecideds else [*_without_ledger(run), *disagreements(run)]
    return asked or ([] if undecideds else [*_texts(run), *_launch(run)])


def _unproven(run: Run, known: Set[int], explained: bool) -> Iterator[Undecided]:
    """Yield every rank without a proof; if the failure of another rank is reported already, not those that only followed from it."""
    for gap, processes in proof.gaps(run):
        if explained and _followed(gap, processes, run, known):
            continue
        because = joined([proof.sentence(gap, processes), *_stood(gap, processes, run)])
        yield Undecided(gap.slug, because, next=gap.next)


def _stood(gap: proof.Gap, processes: List[LoggedProcess], run: Run) -> List[str]:
    """Say where the ranks without an end line were, or are if all wait: look first at a rank that is elsewhere."""
    runs = gap.slug == proof.RUNNING
    parting = so_far(run) if runs else ""
    if parting:
        return [parting]
    if gap.slug != proof.NO_END and not (runs and all(map(_by_stack, processes))):
        return []
    known = standings_of(run).ranks
    places: Dict[str, List[int]] = {}
    for process in processes:
        where = known[process.rank].where() if process.rank in known else _by_stack(process)
        if where and process.rank is not None:
            places.setdefault(where, []).append(process.rank)
    left = {standing.left.how for standing in known.values() if standing.left is not None}
    sentences: List[str] = []
    for where, ranks in list(places.items())[:_SHOWN]:
        who = named(ranks)
        stand = about(where, ranks=who)
        if where in left:
            sentences.append(say("{who:capital} {how}.", who=who, how=stand))
        elif runs:
            sentences.append(say("{who:capital} {who:is|are} {where}.", who=who, where=stand))
        else:
            sentences.append(say("{who:capital} {who:was|were} {where}.", who=who, where=stand))
    return sentences


def _by_stack(process: LoggedProcess) -> str:
    """Return the line of the job at which a process reported that it waits; empty if it has moved on since, or reported nothing."""
    call, over = process.final(schema.HangSuspected), process.final(schema.HangOver)
    line = job_line(main_frames(call.begin.threads)) if call is not None and (over is None or over.when < call.when) else None
    return "" if line is None else say("at {where} in {function}", where=place(line), function=line.function)


def _followed(gap: proof.Gap, processes: List[LoggedProcess], run: Run, known: Set[int]) -> bool:
    if gap.slug == proof.EXIT_CODE:
        return all(id(process.death) in known for process in processes)
    if gap.slug == proof.SIGNAL:
        return all(process.signal == "SIGTERM" or id(process.death) in known for process in processes)
    return gap.slug != proof.RUNNING and (gap.slug != proof.NO_END or bool(run.failures))


def _nothing(run: Run) -> Iterator[Undecided]:
    if run.processes or run.texts or run.failures:
        return
    if run.inventory.unreadable and not run.launchers:
        file, why = next(iter(run.inventory.unreadable.items()))
        yield Undecided("unreadable", _unreadable(file, why, len(run.inventory.unreadable) - 1), next=_readable(why))
        return
    calls = list(chain.from_iterable(launcher.calls(schema.LauncherGroup) for launcher in run.launchers))
    none = [call for call in calls if call.begin.asked == 0]
    if none:
        because = say("No rank was started: the launch was asked for 0 processes at {where}.", where=place(none[0].site))
        yield Undecided("no-rank-wrote", because, next=proof.NEXT_NONE_ASKED)
        return
    ends = [launcher.end for launcher in run.launchers]
    failures = [end.failure for end in ends if end is not None and end.failure is not None]
    running = dict(_running(run))
    if running and not failures:
        states = listed([_in_state(pid, state) for pid, state in running.items()], 4)
        because = say("No rank left a file, and {states}: torch is not imported there yet, or the probe was not loaded.", states=states)
        then = say("See where they are: {look}.", look=command("attach", str(next(iter(running)))))
        yield Undecided("no-rank-wrote", because, next=then)
        return
    if calls and not failures and all(call.end is not None and call.failure is None for call in calls):
        because = say(
            "The launch of {processes} at {where} returned without an error, but none created a process group.",
            processes=counted(sum(call.begin.asked or 0 for call in calls), "process", "processes"),
            where=place(calls[0].site),
        )
        yield Undecided("no-rank-wrote", because, next=proof.NEXT_NO_GROUP)
        return
    if failures:
        because = say("No rank left a file: its launcher failed with {error}.", error=_error(failures[0]))
    elif run.launchers:
        because = say("No rank left a file: there is only its launcher's.")
    else:
        because = say("No rank left a file: there is no readable one.")
    then = proof.NEXT_EARLY if run.launchers else proof.NEXT_OTHER_RUN
    yield Undecided("no-rank-wrote", because, next=then)


def _unreadable(file: str, why: str, more: int) -> Text:
    reason, name = quoted(why.rstrip(".")), quoted(os.path.basename(file) or file)
    if more:
        return say("The files of the run cannot be read: {why} ({file}) and {more} more.", why=reason, file=name, more=more)
    return say("The files of the run cannot be read: {why} ({file}).", why=reason, file=name)


def _in_state(pid: int, state: str) -> Text:
    if state in _STATES:
        return say("process {pid} is {state}", pid=pid, state=_STATES[state])
    return say("process {pid} is in state {state}", pid=pid, state=state)


def _running(run: Run) -> Iterator[Tuple[int, str]]:
    """Yield the processes that launchers of this host have started and that run, with the kernel's letter: none of them has written."""
    for launcher in run.launchers:
        group = launcher.final(schema.LauncherGroup)
        for pid in group.end.children.values() if group is not None and group.end is not None and launcher.host == platform.node() else ():
            now = proc_files.stat(pid)
            if now is not None and now.parent == launcher.pid and now.state not in proc_files.GONE:
                yield pid, now.state


def _readable(why: str) -> Text:
    return proof.NEXT_EARLY if why == NO_EVENT else proof.NEXT_UNREADABLE


def _rank_of(file: str) -> Optional[int]:
    match = re.match(r"rank(\d{1,7})\.", os.path.basename(file))
    return int(match.group(1)) if match else None


def _missing(run: Run) -> Iterator[Undecided]:
    if not run.missing or not run.processes:
        return
    ranks = ((_rank_of(file), file) for file in run.inventory.unreadable)
    closed = {rank: file for rank, file in ranks if rank is not None and rank in run.missing}
    for rank, file in sorted(closed.items()):
        why = run.inventory.unreadable[file]
        because = say(
            "The file of rank {rank} cannot be read: {why} ({file}).",
            rank=rank,
            why=quoted(why.rstrip(".")),
            file=quoted(os.path.basename(file)),
        )
        yield Undecided("unreadable", because, next=_readable(why))
    missing = [rank for rank in run.missing if rank not in closed]
    if not missing:
        return
    ends = {run.death(rank) for rank in missing}
    codes = sorted({str(death.signal or death.exit_code) for death in ends if death is not None and (death.signal or death.exit_code)})
    how: str = say("; the launcher reports exit code {codes}", codes=listed(codes)) if codes else ""
    template = "{who:capital} left no file, of {expected} expected{how}."
    if run.astray:
        template = "{who:capital} {who:has|have} no file here, although the launcher reports one, of {expected} expected{how}."
    because = say(template, who=named(missing), expected=run.expected, how=how)
    yield Undecided("missing-ranks", because, next=proof.NEXT_MISSING)


def _without_ledger(run: Run) -> Iterator[Undecided]:
    """Yield the ranks of a group without a file, or without the ledger that they should have: calls that differ may be silent."""
    absent = sorted(standings_of(run).unknown - set(run.ranks))
    if absent:
        because = say("{who:capital} left no file, and the ledgers of others hold a group with {who}.", who=named(absent))
        yield Undecided("missing-ranks", because, next=proof.NEXT_MISSING)
    lost = [process.rank for process in run.processes if process.rank is not None and _lacks_ledger(process)]
    if lost:
        because = say(
            "{who:capital} {who:has|have} no complete ledger here: it is not known whether all ranks made the same calls.",
            who=named(lost),
        )
        yield Undecided("no-ledger", because, next=proof.NEXT_LEDGER)


def _lacks_ledger(process: LoggedProcess) -> bool:
    """Tell whether a rank was in a group with others and wrote a ledger, of which nothing, or not all, is here."""
    if process.last_world_size == 1 or not is_in_a_group(process) or ledger_off(process):
        return False
    return process.ledger is None or bool(process.ledger.problem)


def _elsewhere(run: Run) -> Iterator[Undecided]:
    if run.elsewhere:
        yield unseen(run)


def unseen(run: Run) -> Undecided:
    """Say which ranks are on hosts without a file here, and how to read them with the rest."""
    beside = os.path.join(os.path.dirname(os.path.normpath(run.folders[0])) if run.folders else "ddp_probe_runs", "2*")
    near = os.path.relpath(beside) if beside.startswith(os.getcwd() + os.sep) else beside
    because = say(
        "{who:capital} {who:is on another host|are on other hosts}, without a file here: it is not known whether all went well there.",
        who=named(run.elsewhere),
    )
    if run.not_gathered:
        then = say("Start gather again on all hosts: what has arrived is kept, and the rest is added.")
    else:
        then = say(
            "The folders of those hosts belong to this run. Start '{gather}' as a job of one process on each "
            "host, which brings them together; or copy them beside it, and name them all: {report}",
            gather=command("gather"),
            report=command("report", near),
        )
    return Undecided("not-seen", because, next=then)


def _failed(run: Run, known: Set[int]) -> Iterator[Undecided]:
    """Yield the first failures that no rule knows, equal ones of several ranks in one sentence."""
    fatal = [failure for failure in run.failures if failure.fatal and id(failure) not in known and (failure.process or failure.uncaught)]
    if known and all(failure.consequence for failure in fatal):
        return
    failures = [failure for failure in fatal if not failure.consequence] or [failure for failure in fatal if failure.consequence != INTERRUPTED]
    for alike in _alike(failures)[:3]:
        yield Undecided("unrecognised-failure", _unknown(alike), next=_traceback(alike))


def _unknown(alike: Sequence[Failed]) -> Text:
    ranks, first = _ranks(alike), alike[0]
    who = capital(named(ranks)) if ranks else quoted(first.at.file)
    error = quoted(first.said(200))
    if first.site:
        template = "{who} failed with {error} at {where}, and no rule knows the cause."
        return say(template, who=who, error=error, where=place(first.site))
    template = "{who} failed with {error} ({where}), and no rule knows the cause."
    return say(template, who=who, error=error, where=_line_of_log(first))


def _traceback(alike: Sequence[Failed]) -> Text:
    ranks, first = _ranks(alike), alike[0]
    if first.process is None:  # A plain log has no events.
        if first.site:
            template = "Start at {where}; the whole traceback is in {log}."
            return say(template, where=place(first.site), log=_line_of_log(first))
        return say("Start at its last line; the whole traceback is in {log}.", log=_line_of_log(first))
    logs = command("logs", "--rank", str(ranks[0])) if ranks else command("logs")
    if first.site:
        template = "Start at {where}; the whole traceback is in {log}, and {logs} shows what was done before."
        return say(template, where=place(first.site), log=_line_of_log(first), logs=logs)
    template = "Start at its last line; the whole traceback is in {log}, and {logs} shows what was done before."
    return say(template, log=_line_of_log(first), logs=logs)


def _line_of_log(failure: Failed) -> Text:
    return place(schema.Site(failure.at.file, failure.at.line))


def _ranks(failures: Sequence[Failed]) -> List[int]:
    return sorted(set(ranks_of(failures)))


def _interrupted(run: Run) -> Iterator[Undecided]:
    """Say where each rank was when a person ended the job: that is the line where it hung, if it did."""
    stopped = [failure for failure in run.failures if failure.consequence == INTERRUPTED and failure.process is not None]
    for where, alike in _places(stopped)[:6]:
        because = say("{who:capital} {who:was|were} interrupted {where}.", who=named(_ranks(alike)), where=where)
        yield Undecided("interrupted", because, next=proof.NEXT_HUNG)


def _places(failures: Sequence[Failed]) -> List[Tuple[str, List[Failed]]]:
    groups: Dict[str, List[Failed]] = {}
    for failure in failures:
        groups.setdefault(stood(failure), []).append(failure)
    return list(groups.items())


def _launch(run: Run) -> Iterator[Undecided]:
    """Yield a launch that failed although each rank seems well."""
    for launcher in run.launchers:
        calls = [call.failure for call in launcher.calls(schema.LauncherGroup) if call.failure is not None]
        failure = launcher.end.failure if launcher.end is not None and launcher.end.failure is not None else next(iter(calls), None)
        code = getattr(launcher.end, "exit_code", None)
        if failure is not None:
            because = say("The launcher on {host} failed with {error}", host=quoted(launcher.host), error=_error(failure))
            yield Undecided("launch-failed", because, next=proof.NEXT_LAUNCHER)
        elif code:
            because = say(
                "The launcher on {host} ended with exit code {code}, and every rank with 0.",
                host=quoted(launcher.host),
                code=code,
            )
            yield Undecided("launch-failed", because, next=proof.NEXT_LAUNCHER)


def _error(failure: Failure) -> Text:
    inner = carried.inside(failure.message, failure.cause_message, failure.cause)
    return quoted(one_line(failure.type, failure.message, inner, 300))


def _alike(failures: Sequence[Failed]) -> List[List[Failed]]:
    """Return the failures with one text at one line together."""
    groups: Dict[Tuple[str, str], List[Failed]] = {}
    for failure in failures:
        site = "%s:%d" % (failure.site.file, failure.site.line) if failure.site else ""
        groups.setdefault((failure.said(200), site), []).append(failure)
    return list(groups.values())


def _waiting(run: Run) -> Iterator[Undecided]:
    """Yield the ranks that are inside a call that did not return, and since when."""
    groups: Dict[Tuple[str, str], List[Tuple[LoggedProcess, LoggedCall]]] = {}  # type: ignore[type-arg]  # calls of any kind
    for process in run.processes:
        call = process.waiting
        if call is not None:
            site = place(call.site)
            groups.setdefault((call.name, site), []).append((process, call))
    for (name, where), inside in groups.items():
        since = min(call.when for _, call in inside)
        because = say(
            "{who:capital} did not return from {call} at {where}, since {when}.",
            who=named([process.rank for process, _ in inside if process.rank is not None]),
            call=name,
            where=where,
            when=clock(since),
        )
        then = say(
            "Look at the ranks that are missing: these may wait for them. If it still runs, {look} shows where each stands.",
            look=command("attach", str(inside[0][0].pid)),
        )
        yield Undecided("waiting", because, next=then)


def _texts(run: Run) -> Iterator[Undecided]:
    if run.processes:
        return
    empty = [os.path.basename(log.file) for log in run.texts if not log.lines]
    if empty:
        because = say("{files} {count:is|are} empty.", files=listed([quoted(file) for file in empty[:3]]), count=len(empty))
        yield Undecided("empty-log", because, next=proof.NEXT_EMPTY)
    elif run.texts:
        because = say("The log holds no known failure, but only the probe's files can show that all ranks finished normally.")
        yield Undecided("plain-log", because, next=proof.NEXT_TRACED)
