"""What the rules say of a split: who is where, since when, which lines show it, and which failures it accounts for."""

from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from ddp_probe.judging import decided_values, left_sequence
from ddp_probe.judging.disagreements import disagreement
from ddp_probe.judging.facts import fact
from ddp_probe.judging.ledgers import Standing, Standings, as_site, described, spoken_name, standings_of
from ddp_probe.judging.rule import Evidence
from ddp_probe.judging.waiting import waited
from ddp_probe.reading import alive, rank_stacks
from ddp_probe.reading.failures import PEER_GONE
from ddp_probe.reading.model import Death, Failed, LoggedProcess, Run
from ddp_probe.reading.rank_ledger import LedgerCall
from ddp_probe.reading.whole_ledger import Record
from ddp_probe.shared import schema, settings
from ddp_probe.shared.alignment import AlignedCall
from ddp_probe.shared.ledger_schema import PAIRED
from ddp_probe.shared.mask_forms import Expression
from ddp_probe.shared.schema import Site
from ddp_probe.standing import splits
from ddp_probe.standing.arms import rank_branch
from ddp_probe.standing.deciding import Deciding
from ddp_probe.standing.sequence import SequenceParting
from ddp_probe.standing.splits import ALONE, MISSING, Split, record
from ddp_probe.standing.stalls import CALLS_ABOUT_GROUPS, PASSES
from ddp_probe.wording.text import Text, about, joined, say
from ddp_probe.wording.words import at, clock, counted, listed, named, quoted

_LINES = 3  # Lines of each side.
_MOST = 6  # Pieces of evidence about a sequence.
_PASSES = {"forward": "{count} forward {count:pass|passes}", "backward": "{count} backward {count:pass|passes}"}


def of_kind(run: Run, *kinds: str) -> Optional[Split]:
    """Return where the ranks part, if that is one of these kinds."""
    parting = split(run)
    return parting if parting is not None and parting.kind in kinds else None


def group(run: Run, parting: Split) -> str:
    """Name the group if it is not the default one, which is the first with all ranks."""
    shared = parting.group
    largest = max((each.size for each, _ in standings_of(run).groups.values()), default=0)
    if shared is None or (shared.nth == 1 and shared.size == largest):
        return ""
    return say(" of the group of ranks {ranks}", ranks=shared.ranks)


def waiting(run: Run, parting: Split) -> Text:
    """Say who waits in what, where, for how long."""
    ranks = [standings_of(run).ranks[rank] for rank in parting.here]
    longest = max(ranks, key=lambda standing: standing.lasted())
    return say(
        "{who} {who:waits|wait} {where}, for {seconds:.0f} s since {when}",
        who=named(parting.here),
        where=_waits_in(run, parting, ranks[0]),
        seconds=longest.lasted(),
        when=clock(longest.since()),
    )


def _waits_in(run: Run, parting: Split, standing: Standing) -> str:
    if parting.what in PASSES:
        phase = spoken_name(parting.what)
        return say("in {phase} number {number}{at}", phase=phase, number=parting.number, at=at(standing.entry))
    if standing.inside is None:
        template = "for collective number {number}{group}, which they have enqueued on the device"
        return say(template, number=parting.number, group=group(run, parting))
    if parting.what:
        return standing.where()
    template = "{where} (number {number}{group})"
    return say(template, where=standing.where(), number=parting.number, group=group(run, parting))


def absent(run: Run, parting: Split) -> Text:
    """Say where the absent ranks are, alike ranks in one clause."""
    ranks = standings_of(run).ranks
    parts = [_stands_at(standing, same) for standing, same in _places([ranks[rank] for rank in parting.there])]
    return say("{absent}{behind}", absent=listed(parts, 4), behind=_behind(run, parting))


def _stands_at(standing: Standing, ranks: Sequence[int]) -> Text:
    who = named(ranks)
    where = about(standing.where(), ranks=who)
    if standing.left is not None:
        return say("{who} {how}", who=who, how=where)
    return say("{who} {who:is|are} {where}", who=who, where=where)


def _places(standings: Sequence[Standing]) -> List[Tuple[Standing, List[int]]]:
    """Return the ranks that stand at one place together."""
    places: dict[Tuple[object, ...], Tuple[Standing, List[int]]] = {}
    for standing in standings:
        site, phase = standing.site, standing.phase.name if standing.phase is not None and standing.inside is None else ""
        how = standing.left.how if standing.left is not None else standing.inside.op if standing.inside is not None else phase
        places.setdefault((how, site.file if site else "", site.line if site else 0), (standing, []))[1].append(standing.rank)
    return list(places.values())


def _behind(run: Run, parting: Split) -> str:
    if parting.what in PASSES and parting.there:
        passes = {standings_of(run).ranks[rank].times(parting.what) for rank in parting.there}
        if len(passes) != 1:
            return ""
        return say(", after {passes}", passes=say(_PASSES[parting.what], count=passes.pop()))
    if parting.group is None or parting.what or not parting.there:
        return ""
    inside = standings_of(run).ranks[parting.here[0]].inside
    if inside is not None and inside.op in CALLS_ABOUT_GROUPS:
        return ""  # These are not counted with the collectives of the group.
    counts = [standings_of(run).ranks[rank].count(parting.group.id) for rank in parting.there]
    low, high = parting.number - max(counts), parting.number - min(counts)
    if low == high:
        return say(" ({collectives} behind)", collectives=counted(low, "collective"))
    return say(" ({low} to {high} collectives behind)", low=low, high=high)


def sides(parting: Split) -> Text:
    """Say which ranks made which call at the number at which they differ."""
    parts = [
        say(
            "{who} {who:calls|call} {call}{at}",
            who=named(ranks),
            call=described(call.op, call.elements, call.dtype, call.root),
            at=at(as_site(call.site)),
        )
        for call, ranks in parting.calls[:4]
    ]
    more = len(parting.calls) - len(parts)
    calls = listed(parts, by="; ")
    if more > 0:
        return say("{calls:capital}; and {more}", calls=calls, more=counted(more, "more call"))
    return say("{calls:capital}", calls=calls)


def evidence(run: Run, parting: Split) -> List[Evidence]:
    """Return lines of the ledgers of both sides; a line's number is that of the record."""
    standings = standings_of(run)
    if parting.calls:
        return [item for call, ranks in parting.calls[:4] for item in _of_call(standings, parting, call, ranks)]
    shown = [*_first(parting.here), *_first(parting.there)]
    if parting.blame != parting.here and any(_has_own_line(standings.ranks[rank]) for rank in parting.there):
        shown = [*_first(parting.there), *parting.here[:1]]  # The report shows the source of the first line.
    return [stands(run, rank) for rank in shown]


def sequence_evidence(run: Run, left: Optional[SequenceParting], rest: Sequence[Evidence]) -> List[Evidence]:
    """Return the statement that decided, what both sides did there, and the rest, each line once: the report shows the source of the first."""
    if left is None:
        return list(rest)
    items = [*_left_sequence(run, left), *rest]
    lines = {(item.site.file, item.site.line) if item.site is not None else ("", 0): item for item in reversed(items)}
    return [item for item in items if item in lines.values()][:_MOST]


def deciding_evidence(run: Run, rank: int, decision: Optional[Deciding]) -> List[Evidence]:
    """Return the statement that took a rank away, if no other can have."""
    statement = left_sequence.sure_statement(decision)
    if statement is None:
        return []
    ledger = standings_of(run).ranks[rank].ledger
    return [Evidence(ledger.path, 1, left_sequence.statement_site(statement), quoted(statement.text))]


def before_it_left(parting: Split, gone: Standing) -> Optional[SequenceParting]:
    """Return where a rank parted from the others while it ran its program; None for one that failed, whose exception says more."""
    left = parting.left
    if left is None or (gone.left is not None and gone.left.failure is not None):
        return None
    made = left.made
    last = record(gone, made.group, made.number) if made is not None and not made.is_pass else None
    return None if made_at_exit(gone, last) else left


def made_at_exit(standing: Standing, made: Optional[Record]) -> bool:
    """Tell whether a rank had left its program by an exit call before it made a call: what it runs at exit is not a step of the program."""
    called = standing.process.final(schema.ProcessExit)
    return made is not None and called is not None and standing.wall(made.entered_ns) >= called.when


def _left_sequence(run: Run, left: SequenceParting) -> Iterator[Evidence]:
    standings = standings_of(run).ranks
    for statement in left_sequence.deciding_statements(left.decision)[:2]:
        values = decided_values.compared_in(run, left, statement)
        text = quoted(statement.text)
        if values:
            text = say("{code}: {values}", code=text, values=values)
        yield Evidence(standings[left.ranks[0]].ledger.path, 1, left_sequence.statement_site(statement), text)
    makers, others = (left.ranks, left.others) if left.is_sure or not left.sides else left.sides
    for entry, rank in ((left.made, makers[0]), (left.usual, (others or makers)[0])):
        site = as_site(entry.site) if entry is not None else None
        if entry is not None and site is not None:
            text = say("rank {rank}: {entry}", rank=rank, entry=left_sequence.spoken_entry(entry))
            yield Evidence(standings[rank].ledger.path, entry.record, site, text)


def stands(run: Run, rank: int) -> Evidence:
    """Return the line of a rank's ledger that shows where it stands."""
    standing = standings_of(run).ranks[rank]
    return _line(standing, say("{who} {where}", who=named([rank]), where=standing.where()))


def _has_own_line(standing: Standing) -> bool:
    """Tell whether a rank is at another line than its last call: by its stacks, or because it left from there."""
    return standing.own is not None or (standing.left is not None and standing.left.site is not None)


def _first(ranks: Sequence[int]) -> Sequence[int]:
    return ranks[:_LINES]


def _of_call(standings: Standings, parting: Split, call: LedgerCall, ranks: Sequence[int]) -> Iterator[Evidence]:
    for rank in ranks[:1]:
        standing = standings.ranks[rank]
        made = record(standing, parting.group.id if parting.group is not None else "", parting.number)
        text = say(
            "{who}: collective number {number} is {call}",
            who=named(ranks),
            number=parting.number,
            call=described(call.op, call.elements, call.dtype, call.root),
        )
        yield Evidence(standing.ledger.path, made.number if made is not None else 1, as_site(call.site), text)


def _line(standing: Standing, text: str) -> Evidence:
    last = standing.inside or standing.ledger.last
    if standing.left is not None and standing.left.failure is not None:
        at_line = standing.left.failure.at
        return Evidence(at_line.file, at_line.line, standing.left.failure.site, text)
    if standing.left is not None and standing.left.site is not None:
        last_words = standing.process.over[1]
        return Evidence(last_words.file, last_words.line, standing.left.site, text)
    if standing.own is not None:
        return Evidence(standing.own.at.file, standing.own.at.line, standing.own.site, text)
    return Evidence(standing.ledger.path, last.number if last is not None else 1, standing.site, text)


def explained(run: Run) -> List[Failed]:
    """Return the failures that follow from ranks that part: time-outs, and lost peers."""
    return [failure for failure in run.failures if failure.fatal and (waited(failure) or failure.consequence == PEER_GONE)]


def aborted(run: Run) -> List[Death]:
    """Return the ends by abort(): gloo and NCCL abort a process that gets another length than it expects."""
    return [death for death in run.deaths if death.signal == "SIGABRT"]


def both_blamed(parting: Split) -> bool:
    """Tell whether those that wait are blamed with those that do not come, as nothing tells which of them is wrong."""
    return parting.left is None and bool(set(parting.here) & set(parting.blame))


def in_order(parting: Split, stand: str, why: str) -> Text:
    """Return where the ranks are and why; the statement that decided is said first, if it is known."""
    left = parting.decided
    if left is None or left_sequence.sure_statement(left.decision) is None:
        return say("{stand}{why}", stand=stand, why=why)
    return joined([left_sequence.told(left), stand])


def under_if(parting: Split) -> Text:
    """Say under which `if` the guilty ranks make their call; only for a split whose branch is known."""
    return say(
        " The call of {who} is under the 'if' in line {line}, whose branch the others do not take.",
        who=named(parting.blame),
        line=parting.branch,
    )


def departed(parting: Split) -> str:
    """Say how the guilty rank leaves the sequence of calls that all make."""
    departure = parting.departure
    if parting.sequence is not None:
        return say(" {sentence}", sentence=left_sequence.told(parting.sequence))
    if departure is None:
        return ""
    usual, made = _call(departure.usual), _call(departure.made)
    if usual == made:
        usual, made = say("{call} of its own group", call=usual), say("{call} of another group", call=made)
    if departure.others:
        went = say(
            " At this point {others} {others:calls|call} {usual}, and rank {rank} calls {made}.",
            others=named(departure.others),
            usual=usual,
            rank=departure.rank,
            made=made,
        )
    else:
        template = " Before, rank {rank} called {usual} at this point, and now it calls {made}."
        went = say(template, rank=departure.rank, usual=usual, made=made)
    return joined([went, left_sequence.decided_by(parting.deciding)])


def _call(made: AlignedCall) -> Text:
    return say("{call}{at}", call=made.op, at=at(Site(made.file, made.line)) if made.file else "")


def doubt(run: Run, parting: Split) -> str:
    """Say what is not known."""
    dark = [rank for rank in parting.unknown if rank in standings_of(run).ranks and standings_of(run).ranks[rank].ledger.complete]
    rest = [rank for rank in parting.unknown if rank not in dark]
    doubts: List[Text] = []
    if rest:
        doubts.append(say("There is no complete ledger of {who}.", who=named(rest)))
    if dark:
        template = "It is not known where {who} stood before the exception that ended the wait."
        doubts.append(say(template, who=named(dark)))
    return say(" {doubts}", doubts=joined(doubts)) if doubts else ""


def only_waits(run: Run) -> bool:
    """Tell whether no rank failed for another reason: then the point at which the ranks part is the cause."""
    return all(standing.left is None or standing.left.failure is None for standing in standings_of(run).ranks.values())


# At which call the ranks of a run part, by standing/splits.py, plus what the logs and the job's source add.


@fact
def split(run: Run) -> Optional[Split]:
    """Return where the ranks of a run part first; None if they do not."""
    return _split(run, standings_of(run))


def so_far(run: Run) -> str:
    """Say where the ranks of a run that goes on part now: others have waited for a moment, which need not be a hang yet."""
    parting = _split(run, standings_of(run).now()) if run.running else None
    if parting is None or not parting.blame or not parting.here or parting.calls:
        return ""
    return say(
        "{waiting:capital}; {absent}.{departed}",
        waiting=waiting(run, parting),
        absent=absent(run, parting),
        departed=departed(parting),
    )


def left_by_then(run: Run) -> str:
    """Say where a rank had left the others when the run was ended from outside: it need not have been a hang yet."""
    parting = _split(run, standings_of(run).now())
    left = parting.left if parting is not None else None
    return say(" {sentence}", sentence=left_sequence.told(left)) if left is not None else ""


def _split(run: Run, standings: Standings) -> Optional[Split]:
    parted = splits.differing(standings)
    mixed = splits.out_of_step(standings, parted)
    if mixed is not None:
        return splits.by_sequence(standings, mixed)
    if parted is not None:
        return _in_sequence(standings, splits.narrowed(standings, parted), _by_source(parted))
    stall = splits.halt(standings, halted(run, standings)) or splits.stalled(standings)
    if stall is None:
        if aborted(run) or explained(run) or (_ended_well(standings) and disagreement(standings) is not None):
            return splits.of_sequence(standings)
        return splits.of_swapped(standings) if _ended_well(standings) else None
    return _in_sequence(standings, stall, _in_a_branch(standings, stall))


def _in_sequence(standings: Standings, found: Split, branched: Optional[Split]) -> Split:
    """Return a split with what the sequence says: by an `if` on the rank, unless the sequence denies it."""
    by_source = splits.by_sequence(standings, branched) if branched is not None else None
    if branched is not None and by_source is not None and by_source.blame == branched.blame:
        return by_source
    return splits.by_sequence(standings, found)


def _ended_well(standings: Standings) -> bool:
    return all(standing.left is not None and standing.left.failure is None for standing in standings.ranks.values())


def _by_source(parted: Split) -> Optional[Split]:
    """Blame the one side whose call stands under an `if` on the rank; None if the majority decides, or if both sides do, or neither."""
    branches = [(line, ranks) for call, ranks in parted.calls for line in [rank_branch(call.site)] if line is not None]
    if len(parted.blame) <= len(parted.there) or len(branches) != 1 or len({call.site for call, _ in parted.calls}) < 2:
        return None
    return parted._replace(branch=branches[0][0], blame=branches[0][1])


def _in_a_branch(standings: Standings, stall: Split) -> Optional[Split]:
    """Return a wait of the one side that is in a collective under an `if` on the rank, unless the majority says that the other side is wrong."""
    if stall.kind != MISSING or stall.departure is not None:
        return None
    branches = {}
    for side in (stall.here, stall.there):
        calls = [standings.ranks[rank].inside for rank in side]
        lines = {rank_branch(call.site) if call is not None and call.op not in PAIRED else None for call in calls}
        line = lines.pop() if len(lines) == 1 else None
        if line is not None:
            branches[side] = line
    if len(branches) != 1:
        return None
    ((side, line),) = branches.items()
    inside = standings.ranks[side[0]].inside
    if inside is None or not set(side) <= set(stall.blame):
        return None
    others = stall.there if side == stall.here else stall.here
    when = min(standings.ranks[rank].since() for rank in side)
    return stall._replace(kind=ALONE, group=inside.group, number=inside.seq, here=side, there=others, blame=side, when=when, what="", branch=line)


# Distinguishes a process that does not run from one that waits: the kernel says so, or it was silent while others reported a hang.
#
# A rank that hangs still has a thread that says so. If it has written nothing, the process did not run: SIGSTOP, Ctrl-Z, a debugger, a frozen
# container. Or native code held the GIL: that is known if somebody looked from outside while it did.

_LATE = 5.0  # Seconds by which the thread may be late on a busy machine.
_EARLY = 0.1  # Seconds by which two clocks read one after the other may differ.
_STOPPED = ("T", "t")
_SAID = Expression(r"process (?P<pid>\d{1,10}) is in state (?P<state>[Tt])\b")


def halted(run: Run, standings: Standings) -> Dict[int, str]:
    """Return the ranks whose process does not run, each with how that is known."""
    halts = {
        rank: how
        for rank, standing in standings.ranks.items()
        for how in [_stopped(run, standing) or _was_stopped(run, standing) or _silent(run, standing, standings)]
        if how
    }
    return halts if len(halts) < len(standings.ranks) else {}


def _stopped(run: Run, standing: Standing) -> str:
    process = standing.process
    if standing.rank not in run.running or process.pid <= 0:
        return ""
    state = alive.state_of(process)
    if state not in _STOPPED:
        return ""
    return say("is stopped (process {pid} is in state {state})", pid=process.pid, state=state)


def _was_stopped(run: Run, standing: Standing) -> str:
    """Say what the launcher said, while the job hung, about a process that is gone now: only an existing process has a state in the kernel."""
    process = standing.process
    if standing.unheard is not None and standing.unheard.begin.paused:
        state = standing.unheard.begin.state
        return say("was paused (process {pid} was in state {state})", pid=process.pid, state=state)
    if standing.rank in run.running:
        return ""
    for launcher in run.launchers:
        call = launcher.final(schema.LauncherHang)
        match = _SAID.search(call.begin.said) if call is not None and call.when > standing.ledger.moved + process.offset else None
        if match is not None and int(match["pid"]) == process.pid and launcher.host == process.host:
            return say("was stopped (process {pid} was in state {state})", pid=process.pid, state=match["state"])
    return ""


def _silent(run: Run, standing: Standing, standings: Standings) -> str:
    """Say that a rank was there and has written nothing; one that is seen to run is not stopped."""
    if standing.holds_gil or (standing.rank in run.running and alive.state_of(standing.process)):
        return ""
    death = run.death(standing.rank)
    if run.stands_until(standing.process) is None and (death is None or not death.signal):
        return ""  # It may have ended by itself at any time: nothing shows that it was there until it was killed.
    return _unheard(standing, standings)


def _unheard(standing: Standing, standings: Standings) -> str:
    """Say since when a rank has written nothing although it should have said twice that it hangs, and others on its host have."""
    process, after = standing.process, _after(standing.process)
    if (
        after is None
        or standing.left is not None
        or not standing.known
        or process.full
        or process.holes
        or process.offset
        or process.count(schema.Fault)
    ):
        return ""
    moved = standing.ledger.moved
    if standing.until - moved < 2 * after + _LATE or process.last_when >= moved + after - _EARLY or _dumped(process, moved):
        return ""
    others = [rank for rank, other in standings.ranks.items() if rank != standing.rank and _speaks_of(other, process, moved + after)]
    if not others:
        return ""
    return say(
        "has run no Python code since {when} (its watcher has written nothing, but that of {others} has): it was stopped, or "
        "native code held the GIL",
        when=clock(moved),
        others=named(others[:1]),
    )


def _after(process: LoggedProcess) -> Optional[float]:
    after = settings.get(settings.HANG_AFTER, process.started.environment) if process.start is not None else None
    return float(after) if after is not None else None


def _speaks_of(other: Standing, process: LoggedProcess, since: float) -> bool:
    """Tell whether another rank on the host has written that it hangs, at a time when this one should have."""
    last = other.process.final(schema.HangSuspected)
    return last is not None and other.process.host == process.host and last.when >= since


def _dumped(process: LoggedProcess, moved: float) -> bool:
    dump = rank_stacks.dumped(process.file)
    return dump is not None and dump.when >= moved
