"""The place where each rank stands, by ledger and log: in which collective, at which number of its group; in which phase; or that it has left.

A rank stands in a call that has not returned, or that raised because the others did not come. Which rank is to blame is said in standing/splits.py.
"""

from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ddp_probe.judging.exit_calls import by_exit_call
from ddp_probe.judging.facts import fact
from ddp_probe.judging.open_wraps import open_wrap, record_of
from ddp_probe.judging.waiting import TIMED_OUT, starting, waited
from ddp_probe.reading import rank_stacks
from ddp_probe.reading.failures import PEER_GONE
from ddp_probe.reading.job_line import job_line, own_frames
from ddp_probe.reading.logged_call import LoggedCall, LogLine
from ddp_probe.reading.model import Failed, LoggedProcess, Run
from ddp_probe.reading.rank_ledger import RankLedger
from ddp_probe.reading.whole_ledger import LedgerSite, Phase, Record
from ddp_probe.shared import schema, settings
from ddp_probe.shared.ledger_schema import PAIRED
from ddp_probe.shared.own_code import task, waits_for_its_processes
from ddp_probe.standing import rank_standing
from ddp_probe.standing.rank_standing import LedgerStanding, Left, StandingsOf
from ddp_probe.standing.stalls import PASSES, WRAP
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import at, clock, counted, named, place, quoted, within

SERVED = "processes"
"""The task of a rank that waits for processes that it has started, and that compute."""
_SLACK = 0.1  # Seconds; file systems write coarse times.
_BEGINS = ("<module>", "_run_module_as_main")
_CUT = 16  # Frames; of a longer stack the outermost may be left out.
_Frames = Tuple[Tuple[str, int], ...]


class _Look(NamedTuple):
    """The main thread of a rank at one time."""

    when: float  # On its host's clock.
    frames: List[schema.Site]
    at: LogLine
    is_dump: bool = False
    is_served: bool = False  # Processes that it has started compute while it stands.


class OwnLine(NamedTuple):
    """The innermost line of the job's code at which a rank is, and whether it stands there."""

    site: schema.Site
    at: LogLine  # What shows it.
    before: Optional[schema.Site] = None  # Another line at which it was since then.
    moves: bool = False  # It was at different lines: it still runs.
    task: str = ""  # The function that evaluates or saves, as its name says; or that it imports, is in a debugger, or waits for its own processes.
    holds_gil: bool = False  # C code that does not give the GIL back: no other thread of the process could run.

    @property
    def is_work(self) -> bool:
        """Tell whether it does something that may take long, and end."""
        return self.moves or bool(self.task)


def own_line(process: LoggedProcess, ledger: RankLedger, latest: float, since: float) -> Optional[OwnLine]:
    """Return where a rank is that stands since then; `latest` is until when the run is known; both are on the clock of its host."""
    looks = sorted(_looks(process, ledger, latest, since), key=lambda look: look.when)
    found = [(look, site) for look in looks for site in [job_line(look.frames)] if site is not None]
    if not found:
        return None
    last, site = found[-1]
    before = next((one for _, one in reversed(found) if (one.file, one.line) != (site.file, site.line)), None)
    moves = len({_job_frames(look.frames) for look, _ in found}) > 1
    doing = task([(frame.file, frame.function) for frame in last.frames]) or (SERVED if last.is_served else "")
    return OwnLine(site, last.at, before, moves, doing, last.is_dump and len(looks) == 1)


def _unheard(run: Run, process: LoggedProcess, moved: float) -> Optional[LoggedCall[schema.LauncherSilent]]:
    """Return what was seen from outside of a rank in which no Python code ran, if it has not moved since."""
    calls = [call for other in [*run.launchers, *run.processes] if other.host == process.host for call in other.calls(schema.LauncherSilent)]
    later = [call for call in calls if call.begin.child_pid == process.pid and call.when > moved]
    return max(later, key=lambda call: call.when, default=None)


def _seen_line(call: Optional[LoggedCall[schema.LauncherSilent]]) -> Optional[OwnLine]:
    """Return the line of a rank in which native code holds the GIL, if py-spy was there to read it."""
    site = job_line(rank_stacks.main_frames(call.begin.threads)) if call is not None else None
    return OwnLine(site, call.at, holds_gil=not call.begin.paused) if call is not None and site is not None else None


def is_served(look: schema.Event) -> bool:
    """Tell whether processes that a rank has started compute while it stands."""
    if not isinstance(look, schema.HangSuspected):
        return False
    frames = [(frame.file, frame.function) for frame in rank_stacks.main_frames(look.threads)]
    return waits_for_its_processes(frames, look.still or 0.0, look.children)


def _looks(process: LoggedProcess, ledger: RankLedger, latest: float, since: float) -> Iterator[_Look]:
    calls: List[LoggedCall[Any]] = [*process.calls(schema.HangSuspected), *process.calls(schema.Stacks)]
    for call in calls:
        when = ledger.when(call.begin.mono_ns) if call.begin.mono_ns else call.when - process.offset
        frames = rank_stacks.main_frames(call.begin.threads)
        if frames and when >= since and not came_after(process, when):
            yield _Look(when, frames, call.at, is_served=is_served(call.begin))
    dump = rank_stacks.dumped(process.file)
    if dump is not None and _is_new(process, since, dump.when, latest):
        yield _Look(min(dump.when, latest), rank_stacks.main_frames(dump.threads), LogLine(rank_stacks.dump_of(process.file), 1), is_dump=True)


def _is_new(process: LoggedProcess, since: float, when: float, latest: float) -> bool:
    """Tell whether faulthandler's text is of the last standstill. A copied file has the time of the copy: then nothing may have been over since."""
    if when > latest + _SLACK:
        return all(came_after(process, call.when - process.offset) for call in process.calls(schema.HangOver))
    return when + _SLACK >= since


def came_after(process: LoggedProcess, when: float) -> bool:
    """Tell whether a time on the clock of its host is after the signal from outside that ended the process."""
    return process.stood_until is not None and when > process.stood_until


def _job_frames(frames: Sequence[schema.Site]) -> _Frames:
    """Return the lines of the job's code: library code that waits may be at other lines each time."""
    return tuple((frame.file, frame.line) for frame in own_frames(frames))


_PATIENCE = 60.0  # Seconds; a rank that waits for less may only be a little ahead. For a job that does not say.


class Standing(LedgerStanding):
    """The place where one rank stands, by its ledger and its log."""

    __slots__ = ("_own_line", "is_lost", "process", "unheard")

    def __init__(self, run: Run, process: LoggedProcess, ledger: RankLedger) -> None:
        stood = process.stood_until is not None
        fatal = [failure for failure in process.failures if failure.fatal and not (stood and came_after(process, failure.when - process.offset))]
        waited_out = any(waited(failure) for failure in fatal)
        lost = any(failure.consequence == PEER_GONE for failure in fatal)
        joining = any(starting(failure) and TIMED_OUT.search(failure.text) for failure in fatal)
        phase = rank_standing.open_phase(ledger) or (_ended_phase(ledger) if waited_out or lost else None)
        phase = phase or open_wrap(process, ledger, gave_up=waited_out or lost)
        rank = process.rank if process.rank is not None else -1
        super().__init__(rank, ledger, process.offset, rank_standing.inside(ledger, waited_out or lost or joining), phase)
        self.process = process
        self.waited_out = waited_out
        is_dark = not fatal and process.ended is None and not stood and self.rank not in run.running and _raised_last(ledger)
        self.left = None if is_dark or stood or (self.inside is not None and (self.waited_out or lost or joining)) else _left(run, process, fatal)
        self.is_lost = is_dark or ((lost or self.waited_out) and self.inside is None and self.phase is None)
        self.until = self._until(run)
        self.is_alive = run.stands_until(process) is not None
        self.runs = self.until > process.last_when
        self.unheard = _unheard(run, process, self.moved())
        self._own_line: Optional[Tuple[Optional[OwnLine]]] = None

    def records(self) -> List[Record]:
        """Return the calls that the ledger holds, read again."""
        return self.process.whole_ledger().records

    def sequence(self) -> List[Record]:
        """Return the calls and the passes that the ledger holds, read again."""
        sequence = self.process.whole_ledger().sequence
        if self.phase is not None and self.phase.name == WRAP:
            groups = [calls.group for calls in self.ledger.groups.values()]
            return [*sequence, record_of(self.phase, sequence, groups)]
        return sequence

    def _until(self, run: Run) -> float:
        until = run.stands_until(self.process)
        if until is not None:
            return until
        known = [self.process.last_when, self.moved()]
        death = self.process.death
        return max([*known, death.when] if death is not None else known)

    @property
    def known(self) -> bool:
        """Return whether the ledger is complete, so that what is missing in it did not happen."""
        return self.ledger.complete and not self.is_lost

    @property
    def own(self) -> Optional[OwnLine]:
        """Return the line of the job at which its stacks show it, if it is in no call and has not left."""
        if self._own_line is None:
            free = self.inside is None and self.left is None
            latest = self.until - self.process.offset
            own = own_line(self.process, self.ledger, latest, self._stood_since()) if free else None
            self._own_line = (own or _seen_line(self.unheard) if free else None,)
        return self._own_line[0]

    def _stood_since(self) -> float:
        """Return since when it stands, on the clock of its host: in a backward pass that raised at last, since it entered that."""
        phase = self.phase
        return self.ledger.moved if phase is None or phase.is_open else self.ledger.when(phase.entered_ns)

    @property
    def holds_gil(self) -> bool:
        """Tell whether its process was seen to run while no Python code in it did."""
        return self.unheard is not None and not self.unheard.begin.paused

    @property
    def resumed(self) -> float:
        """Return when it ran again after a pause."""
        last = self.process.final(schema.ProcessResumed)
        return last.when if last is not None else 0.0

    @property
    def site(self) -> Optional[schema.Site]:
        """Return the line of the job where it stands, or made its last call."""
        if self.own is not None:
            return self.own.site
        record, phase = self.inside or self.ledger.last, self.phase
        if self.inside is None and phase is not None:
            return as_site(phase.site)
        return as_site(record.site) if record is not None else None

    @property
    def entry(self) -> Optional[schema.Site]:
        """Return the line of the job that entered its phase; if it is in none, the line at which it stands."""
        return (as_site(self.phase.site) if self.phase is not None else None) or self.site

    @property
    def is_working(self) -> bool:
        """Tell whether it is in a phase that takes long, or by its stacks still runs, evaluates or saves, or waits for its own processes."""
        if super().is_working or self.inside is not None or self.left is not None or self.own is None:
            return super().is_working
        if self.phase is None:
            return self.own.is_work
        return bool(self.own.task) if self.phase.name == "forward" else self.waits_for_data and self.own.task == SERVED

    @property
    def stands(self) -> bool:
        """Tell whether a stack of it is newer than its last call."""
        return self.own is not None

    @property
    def waits_for_data(self) -> bool:
        """Tell whether it waits for a batch of its DataLoader."""
        return self.is_in("dataloader")

    def batches(self) -> Tuple[int, bool]:
        """Return how many batches its DataLoader has given, and whether that has ended; the end is the last time that it was asked."""
        phase = next((phase for phase in self.ledger.phases if phase.name == "dataloader"), None)
        if phase is None:
            return 0, False
        raised = phase.state == "raised"
        return phase.times - raised, raised and not phase.has_failed

    def where(self) -> str:
        """Say where it stands."""
        if self.left is not None:
            return self.left.how
        if self.inside is not None:
            return called(self.inside)
        if self.phase is not None:
            return self._in_phase(spoken(self.phase), as_site(self.phase.site))
        if self.own is not None:
            return self._at_own_line(self.own)
        last = self.ledger.last
        after = ""
        if last is not None:
            ranks = named([self.rank])
            after = say("; {ranks:its|their} last call was {call}{at}", ranks=ranks, call=last.op, at=at(as_site(last.site)))
        if self.unheard is not None and self.holds_gil:
            return say(
                "in native code that holds the GIL: process {pid} runs, and no Python code in it has since {when}{after}",
                pid=self.process.pid,
                when=clock(self.unheard.when - (self.unheard.begin.since or 0.0)),
                after=after,
            )
        return say("outside any collective since {when}{after}", when=clock(self.since()), after=after)

    def _at_own_line(self, own: OwnLine) -> Text:
        """Say at which line it is, and for how long, if it stands there."""
        where = _standing_at(own)
        if own.moves:
            return where
        if own.holds_gil:
            return say("{where}, for {seconds:.0f} s", where=where, seconds=self.lasted())
        return say("{where} for {seconds:.0f} s", where=where, seconds=self.lasted())

    def _in_phase(self, phase: str, entry: Optional[schema.Site]) -> Text:
        """Say at which line it entered its phase, since when, and at which line it is now, if its stacks show another."""
        own, since = self.own, clock(self.since())
        if own is None:
            return say("in {phase}{at} since {when}", phase=phase, at=at(entry), when=since)
        where = _standing_at(own)
        if entry is None or (entry.file, entry.line) == (own.site.file, own.site.line):
            if own.holds_gil:
                return say("in {phase} {where}, since {when}", phase=phase, where=where, when=since)
            return say("in {phase} {where} since {when}", phase=phase, where=where, when=since)
        if own.moves:
            template = "in {phase} since {when}, called at {entry}, {where}"
            return say(template, phase=phase, when=since, entry=place(entry), where=where)
        template = "in {phase} since {when}, called at {entry}, now {where}"
        return say(template, phase=phase, when=since, entry=place(entry), where=where)


def _standing_at(own: OwnLine) -> Text:
    """Say at which line of the job's code a rank is, by its stacks."""
    line, function = place(own.site), within(own.site.function)
    if own.before is not None:
        before = place(own.before)
        return say("still running: at {before}, then at {line}{within}", before=before, line=line, within=function)
    if own.moves:
        template = "still running, at {line}{within}"
    elif own.holds_gil:
        template = "at {line}{within}, in C code that holds the GIL"
    else:
        template = "at {line}{within}"
    return say(template, line=line, within=function)


def called(record: Record) -> Text:
    """Say which call a rank is in."""
    call = described(record.op, record.elements, record.dtype, record.peer)
    return say("in {call}{at}", call=call, at=at(as_site(record.site)))


def described(op: str, elements: int, dtype: str, root: int) -> Text:
    """Return a call as a sentence has it: all_reduce of 16 float32 elements."""
    size, ends = "", ""
    if elements and dtype:
        size = say(" of {count} {dtype} {count:element|elements}", count=elements, dtype=dtype)
    elif elements:
        size = say(" of {elements}", elements=counted(elements, "element"))
    if op in PAIRED:
        ends = say(" with rank {rank}", rank=root)
    elif root >= 0:
        ends = say(" from root {rank}", rank=root)
    return say("{call}{size}{ends}", call=op, size=size, ends=ends)


_SPOKEN = {
    "dataloader": say("the DataLoader, waiting for a batch"),
    "backward": say("backward"),
    "forward": say("DDP's forward"),
    "optimizer": say("the optimizer's step"),
    "validate": say("validation"),
    "test": say("a test loop"),
    "checkpoint": say("saving a checkpoint"),
    "save": say("torch.save"),
    "load": say("torch.load"),
    WRAP: say("the wrap of a model"),
}


def spoken(phase: Phase) -> str:
    """Return a phase as a sentence has it."""
    name = spoken_name(phase.name)
    return say("{phase} number {number}", phase=name, number=phase.times) if phase.name == "backward" else name


def spoken_name(phase: str) -> str:
    """Return the name of a phase as a sentence has it."""
    return _SPOKEN.get(phase, phase)


def as_site(site: Optional[LedgerSite]) -> Optional[schema.Site]:
    """Return a line of the job as findings have it."""
    return schema.Site(site.file, site.line, site.function) if site is not None and site.file else None


def _ended_phase(ledger: RankLedger) -> Optional[Phase]:
    """Return the pass that raised because other ranks were gone, if the rank has called nothing since: DDP meets the others in both."""
    called_at = ledger.last.entered_ns if ledger.last is not None else 0
    raised = [phase for phase in _passes(ledger) if phase.state == "raised" and phase.left_ns >= called_at]
    return max(raised, key=lambda phase: phase.left_ns, default=None)


def _passes(ledger: RankLedger) -> List[Phase]:
    return [phase for phase in ledger.phases if phase.name in PASSES]


def _raised_last(ledger: RankLedger) -> bool:
    """Tell whether the last that a rank did was a call or a pass that raised: if its log has no end, the exception is unknown."""
    failed = [phase for phase in ledger.phases if phase.has_failed]
    ended = [(phase.entered_ns, phase.state) for phase in (*_passes(ledger), *failed)]
    if ledger.last is not None:
        ended.append((ledger.last.entered_ns, ledger.last.state))
    return bool(ended) and max(ended)[1] == "raised"


def _left(run: Run, process: LoggedProcess, fatal: List[Failed]) -> Optional[Left]:
    """Return how a rank left by itself; what only followed from the others does not count."""
    own = next((failure for failure in fatal if not failure.consequence and not waited(failure)), None)
    if own is not None:
        error = quoted(own.said(120).rstrip("."))
        return Left(say("failed with {error} at {where}", error=error, where=place(own.site)), own.when, own, own.site)
    death = process.death or (run.death(process.rank) if process.rank is not None else None)
    if fatal or (death is not None and (death.signal == "SIGTERM" or (death.signal and _gave_up_before(run, death.when)))):
        return None
    if death is not None and death.signal:
        ranks = named([process.rank] if process.rank is not None else [])
        return Left(say("{ranks:was|were} ended by {signal}", ranks=ranks, signal=death.signal), process.last_when)
    if process.ended is not None:
        return Left(_ended(process), process.over[0], None, process.exit_call)
    if death is not None and death.exit_code is not None:
        how = say("ended with exit code {code} and without a last line", code=death.exit_code)
        return Left(how, death.when)
    if _is_lost_by_all(run, process):
        return Left(say("left no last line"), process.last_when)
    if process.rank not in run.running and any(run.ranks[rank].host == process.host for rank in run.running if rank in run.ranks):
        return Left(say("no longer runs, and left no last line"), process.last_when)
    return None


def _ended(process: LoggedProcess) -> Text:
    code, by = process.exit_code, by_exit_call(process)
    ended = say("ended with exit code {code}", code=code) if code is not None else say("ended")
    return say("{ended}, {by}", ended=ended, by=by) if by else ended


def _leave(standings: Dict[int, Standing]) -> None:
    """Take the ranks that run what is registered for their exit as ranks that have left, if others are still in a call of their program.

    An exit call tells of it, or the rank's stack, if that of another rank shows that stacks begin with the program here. A rank whose batches
    have run out says more by that.
    """
    exits = {rank: left for rank, each in standings.items() for left in [_at_exit(each.process)] if left is not None}
    rest = [each for rank, each in standings.items() if rank not in exits and each.left is None]
    calls = [each for each in rest if each.inside is not None or each.in_backward]
    if not exits or not calls:
        return
    whole = any(_begins(frames) for each in calls for frames in _stacks(each.process))
    for rank, left in exits.items():
        each = standings[rank]
        if not whole and each.process.final(schema.ProcessExit) is None:
            continue
        if (each.left is None or each.left.failure is None) and not each.batches()[1]:
            each.left, each.inside, each.phase = left, None, None


def _begins(frames: Sequence[schema.Site]) -> bool:
    """Tell whether a stack begins with the program."""
    return bool(frames) and frames[0].function in _BEGINS


def _stacks(process: LoggedProcess) -> Iterator[List[schema.Site]]:
    """Yield the stacks of the main thread, the last one first, without those that were taken after a signal from outside."""
    calls: List[LoggedCall[Any]] = [*process.calls(schema.HangSuspected), *process.calls(schema.Stacks)]
    for call in sorted(calls, key=lambda call: call.when, reverse=True):
        if not came_after(process, call.when - process.offset):
            yield rank_stacks.main_frames(call.begin.threads)


def _at_exit(process: LoggedProcess) -> Optional[Left]:
    """Return that a rank has left its program: it made an exit call, or was found in a function of the job that runs at exit."""
    frames = next(_stacks(process), [])
    site = job_line(frames) if _is_at_exit(frames) else None
    called = process.final(schema.ProcessExit)
    if site is None and called is not None and process.ended is None:
        how = say("has left its program {by}", by=by_exit_call(process))
        return Left(how, called.when, None, called.site, True)
    if site is None:
        return None
    when = process.over[0] if process.ended is not None else process.last_when
    by = by_exit_call(process)
    if by:
        template = "has left its program {by}, and runs {function} at {where} as it exits"
        how = say(template, by=by, function=frames[0].function, where=place(site))
    else:
        template = "has left its program, and runs {function} at {where} as it exits"
        how = say(template, function=frames[0].function, where=place(site))
    return Left(how, when, None, process.exit_call or site, True)


def _is_at_exit(frames: Sequence[schema.Site]) -> bool:
    """Tell whether a stack begins in a function of the job, which nothing of the program has called: the interpreter calls it at exit."""
    return 0 < len(frames) < _CUT and not frames[0].function.startswith("<") and job_line(frames[:1]) is not None


def _is_lost_by_all(run: Run, process: LoggedProcess) -> bool:
    """Tell whether every other rank has failed because a peer was gone, and only this one wrote nothing: it was the first to go."""
    lost = {failure.rank for failure in run.failures if failure.fatal and failure.consequence == PEER_GONE}
    return process.rank not in run.running and process.rank not in lost and len(lost) == len(run.ranks) - 1 > 0 and run.expected == len(run.ranks)


def _gave_up_before(run: Run, when: float) -> bool:
    """Tell whether a rank had stopped waiting by then: the launcher ends the others after that, by SIGKILL if they do not stop."""
    return any(failure.when <= when and waited(failure) for failure in run.failures)


Standings = StandingsOf[Standing]


@fact
def standings_of(run: Run) -> Standings:
    """Return where the ranks stand."""
    standings: Dict[int, Standing] = {}
    for rank, process in run.ranks.items():
        kept = process.ledger
        if kept is not None and (kept.groups or not kept.problem):
            standings[rank] = Standing(run, process, kept)
    _leave(standings)
    groups = rank_standing.groups_of(standings.values())
    everyone = {*range(run.expected or 0), *run.ranks, *rank_standing.members_of(groups)}
    unknown = {rank for rank in everyone if rank not in standings or not standings[rank].known} if standings else set()
    _note(run, standings)
    return Standings(standings, groups, unknown, _patience(run))


def _patience(run: Run) -> float:
    """Return after how many seconds a wait is a hang, as DDP_PROBE_HANG_AFTER of the job says."""
    known = [process.started.environment for process in run.processes]
    given = [settings.get(settings.HANG_AFTER, environment) for environment in known if settings.HANG_AFTER.name in environment]
    return max((max(0.1, float(each)) for each in given if each), default=_PATIENCE)


def ledger_off(process: LoggedProcess) -> bool:
    """Tell whether a rank was told to write no ledger."""
    return not settings.get(settings.LEDGER, process.started.environment)


def _note(run: Run, standings: Dict[int, Standing]) -> None:
    """Say in the inventory which ledgers are missing, torn, or another process's."""
    notes = run.inventory.notes
    off = sorted(rank for rank, process in run.ranks.items() if ledger_off(process))
    if off:
        notes.append(
            say(
                "The {who:ledger|ledgers} of {who} {who:was|were} off (DDP_PROBE_LEDGER): it is not known whether all ranks made the same calls.",
                who=named(off),
            )
        )
    if not any(process.ledger_file for process in run.processes):
        return
    without = sorted(rank for rank, process in run.ranks.items() if not process.ledger_file)
    if without:
        notes.append(say("There is no ledger of {who}.", who=named(without)))
    for rank, process in sorted(run.ranks.items()):
        kept = process.ledger
        if kept is not None and kept.problem and len(notes) < 20:  # enough to see what is wrong
            notes.append(say("The ledger of rank {rank}: {problem}", rank=rank, problem=quoted(kept.problem)))
    torn = sorted(rank for rank, standing in standings.items() if standing.ledger.torn)
    if torn:
        notes.append(say("The ledgers of {who} hold records that are not plausible.", who=named(torn)))
