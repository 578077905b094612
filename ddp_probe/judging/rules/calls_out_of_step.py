"""Equal calls of different lines met: one rank is a call ahead, or makes two calls in another order. It need not hang, and numbers are mixed."""

from typing import Iterator

from ddp_probe.judging import left_sequence
from ddp_probe.judging.ledgers import as_site, standings_of
from ddp_probe.judging.parted import (
    aborted,
    deciding_evidence,
    departed,
    evidence,
    explained,
    group,
    in_order,
    made_at_exit,
    of_kind,
    only_waits,
    sides,
)
from ddp_probe.judging.rule import ERROR, MEDIUM, WARNING, Finding, Rule
from ddp_probe.reading.model import Run
from ddp_probe.reading.rank_ledger import LedgerCall
from ddp_probe.standing.out_of_step import Mixed
from ddp_probe.standing.splits import MIXED, Split, record
from ddp_probe.wording.text import Text, joined, say
from ddp_probe.wording.words import at, listed, named

_MOST_ITEMS = 8  # Items whose order is told.
_TWO_NAMES = say(
    "Both lines call one function, each with a text of its own: what is added up there has two names.",
)
_NOTHING = ("barrier", "monitored_barrier")  # They exchange no numbers.

RULE = Rule(
    id="DDP661",
    slug="calls-out-of-step",
    cause="rank_divergent_control_flow",
    title="Equal torch.distributed calls of different lines met, because a rank makes one more, or makes two in another order.",
    symptom="Wrong numbers without any error, a barrier that keeps nobody, or a hang or an abort much later, at another line.",
    evidence=(
        "The ledgers: at one number of a group, ranks made the same operation at different lines, and both lines are on the way of one rank: its own "
        "calls show it, or the job's source. The two arms of one 'if' are not, nor a root and the others, nor join()."
    ),
    remedy="Let all ranks make the same calls in the same order: decide on one rank, broadcast the decision, and take the branch on all.",
    restart="no",  # The ranks make the same calls again.
)


def check(run: Run) -> Iterator[Finding]:
    """Name both lines, the number from which on the ranks are out of step, and the call that has no partner."""
    parting = of_kind(run, MIXED)
    mixed = parting.mixed if parting is not None else None
    if parting is None or mixed is None or _made_at_exit(run, parting, mixed):
        return
    barrier = mixed.calls[0][0].op in _NOTHING
    left = parting.sequence
    both = parting.blame == mixed.blame and {*mixed.calls[0][1], *mixed.calls[1][1]} <= set(mixed.blame)
    met = say(
        "{sides}: both are collective number {number}{group}, so they met.",
        sides=sides(parting),
        number=mixed.number,
        group=group(run, parting),
    )
    if mixed.orders:
        met = _of_one_loop(mixed, group(run, parting))
    why = departed(parting) or say(" {why}", why=_why(mixed))
    if mixed.has_other_names:
        met = joined([met, _TWO_NAMES])
    yield RULE.found(
        ranks=parting.blame,
        verdict=joined([in_order(parting, met, why), _since(mixed, barrier)]),
        evidence=[*deciding_evidence(run, mixed.calls[1][1][0], mixed.deciding), *evidence(run, parting)],
        when=parting.when,
        remedy=_remedy(mixed),
        change=left_sequence.change(left),
        explains=[*explained(run), *aborted(run)],
        confidence=MEDIUM if both else "high",
        severity=WARNING if barrier and not only_waits(run) else ERROR,
        cause="rank0_only_collective" if mixed.blame == (0,) and mixed.decision is not None and mixed.decision.on_rank else "",
    )


def _made_at_exit(run: Run, parting: Split, mixed: Mixed) -> bool:
    """Tell whether a rank had left its program by an exit call: what it runs at exit may meet any call of the others."""
    standings = standings_of(run)
    name = parting.group.id if parting.group is not None else ""
    ranks = [standings.ranks[rank] for rank in (*mixed.calls[0][1], *mixed.calls[1][1])]
    return any(made_at_exit(standing, record(standing, name, mixed.number)) for standing in ranks)


def _maker(mixed: Mixed) -> int:
    """Return which of the two sides makes the call that the other does not make there."""
    return 0 if mixed.calls[0][0].site == mixed.extra else 1


def _of_one_loop(mixed: Mixed, group_name: str) -> Text:
    """Say which loop the ranks go through in different orders, and where its items met first."""
    (call, usual), (_, others) = mixed.calls
    return say(
        "{who:capital} and {others} go through {loop} in different orders: in collective number {number}{group}, {call}{where}, different items met.",
        who=named(usual),
        others=named(others),
        loop=left_sequence.shown_decision(mixed.deciding, say("a loop")),
        number=mixed.number,
        group=group_name,
        call=call.op,
        where=at(as_site(call.site)),
    )


def _orders(mixed: Mixed) -> Text:
    """Say in which orders both sides take the items, numbered as the first side takes them."""
    clauses = []
    for (_, ranks), order in zip(mixed.calls, mixed.orders):
        clauses.append(say("{who} {who:takes|take} {items}", who=named(ranks), items=listed(order, _MOST_ITEMS)))
    return say("Numbered in one order, {first}, and {second}.", first=clauses[0], second=clauses[1])


def _why(mixed: Mixed) -> str:
    if mixed.orders:
        return _orders(mixed)
    if mixed.has_other_names:
        return left_sequence.decided_by(mixed.deciding) or say("The ranks go different ways there.")
    if mixed.extra is None:
        return left_sequence.in_another_order(mixed.deciding)
    maker = _maker(mixed)
    under: str = ""
    if mixed.decision is not None:
        under = say(", under the 'if' in line {line}", line=mixed.decision.line)
    return say(
        "{makers:capital} {makers:makes|make} {calls}{where}{under}, which {others} {others:does|do} not make at this point.",
        makers=named(mixed.calls[maker][1]),
        calls=_counted(mixed, mixed.calls[maker][0]),
        where=at(as_site(mixed.extra)),
        under=under,
        others=named(mixed.calls[1 - maker][1]),
    )


def _counted(mixed: Mixed, call: LedgerCall) -> Text:
    if mixed.ahead < 2:
        return say("the {call}", call=call.op)
    return say("{count} calls from that", count=mixed.ahead)


def _since(mixed: Mixed, barrier: bool) -> Text:
    """Say how much has met what it does not belong to."""
    if mixed.orders:
        return say(
            "What they exchanged is mixed: {count} {count:call has|calls have} met for different items.",
            count=mixed.mixed,
        )
    if barrier:
        return say(
            "A barrier that meets another one keeps nobody waiting: {count} {count:call has|calls have} met from different lines.",
            count=mixed.mixed,
        )
    return say(
        "What they exchanged is mixed: {count} {count:call has|calls have} met from different lines.",
        count=mixed.mixed,
    )


def _remedy(mixed: Mixed) -> Text:
    statement = left_sequence.sure_statement(mixed.deciding)
    if mixed.orders and statement is not None:
        return say(
            "Let all ranks go through the loop in line {line} in one order: go over the sorted names, sorted(...).",
            line=statement.line,
        )
    first, second = [at(as_site(call.site)) for call, _ in mixed.calls]
    if mixed.has_other_names:
        return say(
            "Let all ranks take one way, that{first} or that{second}: decide on one rank, and broadcast it.",
            first=first,
            second=second,
        )
    if mixed.extra is None:
        return say(
            "Let all ranks make these calls in one order, that{first} and that{second}: sort them by what all ranks agree on.",
            first=first,
            second=second,
        )
    call = mixed.calls[_maker(mixed)][0]
    if mixed.decision is not None:
        return say(
            "Move the {call}{where} out of the 'if' in line {line}, so that all ranks make it, or remove it.",
            call=call.op,
            where=at(as_site(mixed.extra)),
            line=mixed.decision.line,
        )
    return say(
        "Let all ranks make the {call}{where}, or none: decide on one rank, broadcast the decision, and take the branch on all.",
        call=call.op,
        where=at(as_site(mixed.extra)),
    )
