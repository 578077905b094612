"""What dumps of torch's Flight Recorder say beside a finding from the ledgers: more evidence, or a contradiction, which is never silent.

The recorder knows what C++ issues, such as the reductions of DistributedDataParallel, and whether a collective was started and completed; it numbers
other calls than the ledger does. So its entries are matched with the ledger's records by time: both are of one process on one host.
"""

import os
from dataclasses import replace
from itertools import chain
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence

from ddp_probe.judging import rule
from ddp_probe.judging.ledgers import Standing, called, described, standings_of
from ddp_probe.judging.parted import split
from ddp_probe.judging.rule import Evidence, Finding
from ddp_probe.reading import flight_recorder
from ddp_probe.reading.flight_recorder import RecorderEntry, Recording
from ddp_probe.reading.job_line import own_frames
from ddp_probe.reading.model import Run
from ddp_probe.reading.whole_ledger import Record
from ddp_probe.shared import ledger_schema as schema
from ddp_probe.shared.schema import Site
from ddp_probe.standing.splits import Split, record
from ddp_probe.standing.stalls import BACKWARD
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import at, listed, quoted

_SIDE = 3  # Dumps that are read on each side, at most.
_BEFORE, _AFTER = 0.05, 1.0  # Seconds: clocks that are read one after another; a call that is made after all that the ledger holds.
_SAME_NAME = frozenset(("all_reduce", "broadcast", "reduce", "gather", "scatter"))  # Named so in the recorder too, on every backend.
_STATES = {
    "": say("in an unknown state"),
    "scheduled": say("scheduled"),
    "started": say("started"),
    "completed": say("completed"),
}
_LOWER = {rule.HIGH: rule.MEDIUM, rule.MEDIUM: rule.LOW}


class DumpEvidence(NamedTuple):
    """What a dump says, as evidence of its rank."""

    said: str
    evidence: Evidence


class DumpAnswer(NamedTuple):
    """What the dump of one rank adds, and what it contradicts."""

    adds: Optional[DumpEvidence]
    contradicts: List[Evidence]


def beside(finding: Finding, run: Run) -> Finding:
    """Return a finding from the ledgers with what the dumps of its ranks say; without dumps, unchanged."""
    parted = split(run)
    dumps = flight_recorder.find(sorted({os.path.dirname(process.file) for process in run.processes})) if parted is not None else {}
    if parted is None or not dumps:
        return finding
    answers = [_answer(run, parted, recording) for recording in _read(run, parted, dumps)]
    against = list(chain.from_iterable(answer.contradicts for answer in answers))
    alike: Dict[str, Evidence] = {}  # One rank for all that say the same.
    for answer in reversed(answers):
        if answer.adds is not None:
            alike[answer.adds.said] = answer.adds.evidence
    finding.evidence.extend([*reversed(list(alike.values())), *against])
    for evidence in against:
        run.inventory.notes.append(say("{dump}. Which of them is right is not known.", dump=evidence.text))
    return replace(finding, confidence=_LOWER.get(finding.confidence, finding.confidence)) if against else finding


def _read(run: Run, parted: Split, dumps: Dict[int, str]) -> Iterator[Recording]:
    """Read the dumps of some ranks of both sides; say which cannot be read."""
    chosen: List[int] = []
    for side in (parted.here, parted.there):
        chosen += [rank for rank in side if rank in dumps][:_SIDE]
    for rank in dict.fromkeys(chosen):
        recording = flight_recorder.read(dumps[rank], rank)
        if recording.problem:
            run.inventory.notes.append(
                say(
                    "The Flight Recorder dump of rank {rank}, {file}, was not read: {problem}.",
                    rank=rank,
                    file=quoted(os.path.basename(recording.path)),
                    problem=quoted(recording.problem),
                )
            )
        elif rank in standings_of(run).ranks:
            yield recording


def _answer(run: Run, parted: Split, recording: Recording) -> DumpAnswer:
    standing = standings_of(run).ranks[recording.rank]
    process = standing.process
    entries = [entry for entry in recording.entries if not entry.is_p2p and entry.created_ns * 1e-9 > process.start_when - process.offset - _AFTER]
    if not entries:  # The dump is empty, or a process with this rank has left it that was there before.
        return DumpAnswer(None, [])
    mine = _record(standing, parted, recording.rank)
    matched = _matching(standing, mine, entries) if mine is not None else None
    contradicts = list(_contradictions(standing, parted, mine, matched, entries, recording))
    if contradicts:
        return DumpAnswer(None, contradicts)
    last = entries[-1]
    template = "its last collective is {call}"
    if _from_cpp(last):
        template = "its last collective is {call} (issued by C++; the ledger does not hold it)"
    said = say(template, call=_described(last))
    text = say("the Flight Recorder of rank {rank}: {said}", rank=recording.rank, said=said)
    return DumpAnswer(DumpEvidence(said, _shown(recording, last, text)), [])


def _record(standing: Standing, parted: Split, rank: int) -> Optional[Record]:
    """Return the rank's record of the call at which the ranks part, if it made the call."""
    if parted.group is None or parted.what or not (parted.calls or rank in parted.here):
        return None
    return record(standing, parted.group.id, parted.number)


def _matching(standing: Standing, mine: Record, entries: Sequence[RecorderEntry]) -> Optional[RecorderEntry]:
    """Return the first entry that was made while the rank was in this call."""
    begun = _wall(standing, mine.entered_ns) - _BEFORE
    left = _wall(standing, mine.left_ns) + _BEFORE if mine.left_ns else None
    near = [entry for entry in entries if begun <= entry.created_ns * 1e-9 and (left is None or entry.created_ns * 1e-9 <= left)]
    return min(near, key=lambda entry: abs(entry.created_ns * 1e-9 - begun - _BEFORE), default=None)


def _contradictions(
    standing: Standing,
    parted: Split,
    mine: Optional[Record],
    matched: Optional[RecorderEntry],
    entries: Sequence[RecorderEntry],
    recording: Recording,
) -> Iterator[Evidence]:
    """Yield what cannot both be true, in the words of both."""
    last = standing.ledger.last
    if mine is not None:
        yield from _about_the_call(standing, mine, matched, entries, recording)
    elif standing.rank in parted.there and last is not None:
        later = [entry for entry in entries if _is_later(standing, entry) and not _may_be_from_cpp(standing, entry)]
        if later:
            what = say(
                "after {call} its ledger holds no call of torch.distributed",
                call=described(last.op, last.elements, last.dtype, last.peer),
            )
            yield _against(recording, later[0], what, say("it then began {call}", call=_described(later[0])))


def _about_the_call(
    standing: Standing, mine: Record, matched: Optional[RecorderEntry], entries: Sequence[RecorderEntry], recording: Recording
) -> Iterator[Evidence]:
    ours = say("its ledger has it {where}", where=called(mine))
    if matched is None:
        if recording.written > _wall(standing, mine.entered_ns) + _AFTER and entries[0].created_ns * 1e-9 < _wall(standing, mine.entered_ns):
            earlier = say("its last collective is an earlier one, {call}", call=_described(entries[-1]))
            yield _against(recording, entries[-1], ours, earlier)
        return
    if _differs(mine, matched):
        yield _against(recording, matched, ours, say("it is in {call}", call=_described(matched)))
    elif matched.state == "completed" and mine.state in ("open", "raised") and not mine.is_issued:
        ours = say("its ledger has it {where}, which has not ended well", where=called(mine))
        yield _against(recording, matched, ours, _described(matched))


def _differs(mine: Record, entry: RecorderEntry) -> bool:
    """Tell whether two names or sizes cannot be of one call; the recorder's names differ between backends for most operations."""
    if mine.op in _SAME_NAME and (entry.op in _SAME_NAME or "barrier" in entry.op) and mine.op != entry.op:
        return True
    return mine.op == entry.op and mine.op in _SAME_NAME and mine.tensors == 1 and entry.elements not in (None, mine.elements)


def _is_later(standing: Standing, entry: RecorderEntry) -> bool:
    """Tell whether an entry was made after the ledger's last call had been entered and left."""
    last = standing.ledger.last
    return last is not None and entry.created_ns * 1e-9 > _wall(standing, max(last.entered_ns, last.left_ns)) + _BEFORE


def _from_cpp(entry: RecorderEntry) -> bool:
    """Tell whether no public function of torch.distributed is on the stack: DDP and autograd issue such collectives."""
    return bool(entry.frames) and not any(
        frame.function in schema.COLLECTIVES and frame.file.endswith("distributed_c10d.py") for frame in entry.frames
    )


def _may_be_from_cpp(standing: Standing, entry: RecorderEntry) -> bool:
    """Without frames, a collective of a rank that has a backward pass may be one of DDP's."""
    return _from_cpp(entry) or (not entry.frames and standing.times(BACKWARD) > 0)


def _wall(standing: Standing, mono_ns: int) -> float:
    return standing.ledger.when(mono_ns)  # On the clock of the rank's host, as the recorder's times are.


def _described(entry: RecorderEntry) -> Text:
    sizes = [quoted("x".join(map(str, size))) for size in entry.sizes]
    return say(
        "{call}{sizes}{at}{number}, {state}",
        call=quoted("%s:%s" % (entry.backend, entry.op)),
        sizes=say(" of {sizes}", sizes=listed(sizes)) if sizes else "",
        at=at(_site(entry)),
        number=say(", number {number} of its group by torch's count", number=entry.seq) if entry.seq else "",
        state=_STATES.get(entry.state) or quoted(entry.state),
    )


def _site(entry: RecorderEntry) -> Optional[Site]:
    """Return the innermost line of the job."""
    sites = own_frames([frame for frame in reversed(entry.frames) if frame.file])
    return sites[-1] if sites else None


def _shown(recording: Recording, entry: RecorderEntry, text: str) -> Evidence:
    return Evidence(recording.path, entry.number, _site(entry), text)


def _against(recording: Recording, entry: RecorderEntry, ours: Text, theirs: Text) -> Evidence:
    template = "Rank {rank}: {ledger}; by torch's Flight Recorder, {recorder}"
    return _shown(recording, entry, say(template, rank=recording.rank, ledger=ours, recorder=theirs))
