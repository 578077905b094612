"""Asynchronous work was thrown away before anybody had waited for it: what is read next may be the tensor before or after the call."""

from collections import Counter
from typing import Dict, Iterator, Tuple

from ddp_probe.judging.ledgers import Standing, as_site, standings_of
from ddp_probe.judging.rule import MEDIUM, WARNING, Evidence, Finding, Rule
from ddp_probe.reading.model import Run
from ddp_probe.reading.whole_ledger import LedgerSite, Record
from ddp_probe.wording.text import say
from ddp_probe.wording.words import at, named

_RANKS = 4  # Ledgers that are read as a whole for one line of the job.
_MOST = 3  # Lines of the job that are reported.
_Line = Tuple[str, LedgerSite]

RULE = Rule(
    id="DDP643",
    slug="work-never-waited-for",
    cause="work_never_waited_for",
    title="A call with async_op=True returned work that was never waited for.",
    symptom="Nothing fails and nothing hangs. Now and then a rank reads a tensor that is not reduced yet, or changes one that is still being sent.",
    evidence="The ledgers: at one line, all work of a call was discarded before its wait() or is_completed() was called.",
    remedy="Keep what the call returns and call wait() on it before the tensor is used, or leave out async_op=True.",
    restart="no",  # The call stands in the code.
    severity=WARNING,
)


def check(run: Run) -> Iterator[Finding]:
    """Name each line whose work nobody has waited for, and the ranks that came there."""
    ranks = standings_of(run).ranks
    times: Dict[_Line, Counter[int]] = {}
    for rank, standing in ranks.items():
        for (op, site), count in standing.ledger.dropped.items():
            if site is not None:
                times.setdefault((op, site), Counter())[rank] += count
    lines = sorted(line for line, counts in times.items() if all(_always(ranks[rank], line) for rank in sorted(counts)[:_RANKS]))
    for line in lines[:_MOST]:
        yield _finding(run, line, times[line])


def _always(standing: Standing, line: _Line) -> bool:
    """Tell whether no work of this line was waited for, alone or as a part of a batch."""
    records = standing.process.whole_ledger().records
    batches = {record.site for record in records if record.op == "batch_isend_irecv"}
    same = [record for record in records if (record.op, record.site) == line and record.is_async and not record.is_inner]
    return line[1] not in batches and bool(same) and all(record.state == "dropped" for record in same)


def _finding(run: Run, line: _Line, counts: "Counter[int]") -> Finding:
    op, site = line[0], as_site(line[1])
    who = sorted(counts)
    often = say("once")
    if max(counts.values()) > 1:
        often = say("up to {count} times", count=max(counts.values()))
    return RULE.found(
        ranks=who,
        verdict=say(
            "{who:capital} called {op} with async_op=True{where} and discarded the work, {often}. This is not a hang, "
            "but what is read next may be from before the call.",
            who=named(who),
            op=op,
            where=at(site),
            often=often,
        ),
        evidence=[_shown(run, rank, line) for rank in who[:_MOST]],
        when=_began(run, who[0], line),
        remedy=say(
            "Write work = ... and work.wait() before the tensor of {op}{where} is used, or leave out async_op=True.",
            op=op,
            where=at(site),
        ),
        confidence=MEDIUM,
    )


def _first(standing: Standing, line: _Line) -> Record:
    dropped = [record for record in standing.process.whole_ledger().records if record.state == "dropped"]
    return next(record for record in dropped if (record.op, record.site) == line)


def _began(run: Run, rank: int, line: _Line) -> float:
    standing = standings_of(run).ranks[rank]
    return standing.wall(_first(standing, line).entered_ns)


def _shown(run: Run, rank: int, line: _Line) -> Evidence:
    standing = standings_of(run).ranks[rank]
    first = _first(standing, line)
    text = say(
        "rank {rank}: the work was discarded {lasted:.1f} ms after the call",
        rank=rank,
        lasted=(first.left_ns - first.entered_ns) * 1e-6,
    )
    return Evidence(standing.ledger.path, first.number, as_site(line[1]), text)
