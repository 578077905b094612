"""How a sentence says where ranks left the sequence that all share, which statement of the job decided, and what to change there."""

from typing import List, Optional

from ddp_probe.judging import decided_together
from ddp_probe.judging.change import Change
from ddp_probe.judging.ledgers import as_site, spoken_name
from ddp_probe.reading.whole_ledger import LedgerSite
from ddp_probe.shared.schema import Site
from ddp_probe.standing.deciding import Deciding, Statement
from ddp_probe.standing.sequence import EXCEPTION, LOADER, SequenceEntry, SequenceParting
from ddp_probe.wording.text import Text, joined, say
from ddp_probe.wording.words import at, counted, listed, named, place, quoted, within

_MOST_STATEMENTS = 3
_MOST_ARMS = 2  # Further lines at which the others make the call that the ranks which left did not come to.
_REMEDIES = {
    "clock": say("Decide by the step, which all ranks count alike, and not by each rank's own clock."),
    "random": say("Draw the number from a generator with the same seed on all ranks."),
    "file": say("Look for the file on rank 0 alone, and broadcast what it found."),
    "finite": say("Let all ranks skip the step if one has to."),
    "metric": say("Reduce the value over all ranks before it is compared, so that all compare the same number."),
    EXCEPTION: say(
        "Let the exception end the job. If the job has to go on: catch it before the first collective of the step, exchange "
        "there whether a rank has failed (failed = torch.tensor(float(caught)); dist.all_reduce(failed, "
        "op=dist.ReduceOp.MAX)), and let all ranks leave the step together."
    ),
}
_INSTEAD = {
    "clock": say("Or: decide by the step, which all ranks count alike, and not by each rank's own clock."),
    "random": say("Or: draw the number from a generator with the same seed on all ranks."),
    "file": say("Or: look for the file on rank 0 alone, and broadcast what it found."),
    "finite": say("Or: let all ranks skip the step if one has to."),
    "metric": say("Or: reduce the value over all ranks before it is compared, so that all compare the same number."),
}
"""The same after edits that let all ranks decide together."""
_TOGETHER = say("Then all ranks take the branch as soon as one of them does.")
_EVEN = say("Give all ranks the same number of batches: DistributedSampler, drop_last=True, or Join([model]) around the loop.")
_TURNS = "Let the loop in line {line} have the same turns on all ranks: go over what all ranks have, in one order."
_BY_RANK = (
    "Let all ranks take the branch in line {line}, or none: what is called there needs all of them. One rank alone can call "
    "model.module, which exchanges nothing."
)
_CALLED = "Let all ranks come to the same calls behind line {line}: a hook, a cache or a decorator there answers on some of them alone."
_ORDER = "Let all ranks make these passes in one order, that{first} and that{second}: decide on one rank and broadcast the decision."
_NEW_GROUP = (
    "Let all ranks call new_group, also those that are not in the group, before line {line} tells them "
    "apart: outside the group it returns an object that a rank need not use."
)
_MODEL = "Let all ranks pass the same model forward{at}: decide on one rank, and broadcast the decision."
_THREAD = say("Read what the function in the thread raised: call result() on its future, which raises it here, and let it end the rank.")
_HELD_BACK = "Let all ranks hold their gradients back in the same steps: decide{where} by what all ranks count alike, such as the step."
_SAME = "Let all ranks take the same branch{where}: all_reduce what decides, or decide on one rank and broadcast the decision."


def told(left: SequenceParting) -> Text:
    """Say which statement decided, at which entry the ranks left, and what the others did there."""
    if left.fewer:
        return _before_the_ring(left)
    usual, made = spoken_entry(left.usual), spoken_entry(left.made)
    if left.is_swapped:
        order = say(
            "{who:capital} made the backward passes of one step in another order{after}: {others} went on to {usual}, and "
            "{side} to {made}. The gradients of different models met, and are mixed.",
            who=named(left.ranks),
            after=_after(left),
            others=named(left.sides[1]),
            usual=usual,
            side=named(left.sides[0]),
            made=made,
        )
        return joined([order, decided_by(left.decision)])
    if left.is_other_model:
        numbers = [entry.model if entry is not None else 0 for entry in (left.usual, left.made)]
        met = say(
            "{who:capital} passed different models forward{after}: {others} {others:its|their} model {first} "
            "in {usual}, and {side} {side:its|their} model {second} in {made}, as a rank counts them when it "
            "comes to them. Until then, these two had not met: what DDP exchanges is mixed.",
            who=named(sorted((*left.sides[0], *left.sides[1]))),
            after=_after(left),
            others=named(left.sides[1]),
            first=numbers[0],
            usual=usual,
            side=named(left.sides[0]),
            second=numbers[1],
            made=made,
        )
        return joined([met, decided_by(left.decision)])
    if not left.is_sure:
        template = "Their sequences part{after}: one side went on to {usual}, and the other to {made}."
        usual, made = _reached(left.usual, left.made), _reached(left.made, left.usual)
        return joined([say(template, after=_after(left), usual=usual, made=made), decided_by(left.decision)])
    statement = sure_statement(left.decision)
    if left.is_in_thread:
        return _departed_in_thread(left, statement)
    if statement is None:
        return joined([_departed(left), _repeated(left), decided_by(left.decision)])
    return joined([_departed_at(left, statement), _repeated(left), _in_generator(left)])


def _in_generator(left: SequenceParting) -> str:
    """Name what decided in the generator whose end is the end of the loop."""
    decision = left.decision
    if decision is None or decision.loop is None or decision.statements[0].kind == "call":
        return ""
    shown = [shown_statement(statement) for statement in decision.statements[:_MOST_STATEMENTS]]
    return say("Its generator decides that by {statements}.", statements=listed(shown, _MOST_STATEMENTS))


def _before_the_ring(left: SequenceParting) -> Text:
    passes = counted(abs(left.fewer), "backward pass", "backward passes")
    if not left.is_sure:
        template = (
            "For as many forwards, one of {who} has made {passes} fewer than another: they parted before the entries that the ledgers still hold."
        )
        fewer = say(template, who=named(left.ranks), passes=passes)
        return joined([fewer, _passes_at(left)])
    template = (
        "{who:capital} {who:has|have} made {passes} more than {others} for as many forwards: they parted before the entries "
        "that the ledgers still hold."
    )
    if left.fewer > 0:
        template = (
            "{who:capital} {who:has|have} made {passes} fewer than {others} for as many forwards: they parted before the "
            "entries that the ledgers still hold."
        )
    fewer = say(template, who=named(left.ranks), passes=passes, others=named(left.others))
    return joined([fewer, _passes_at(left)])


def _passes_at(left: SequenceParting) -> str:
    """Say at which line the backward passes are made, if it is one."""
    site = as_site(left.passes_at)
    if site is None:
        return ""
    return say("All the backward passes that they hold are made at {where}.", where=place(site))


def _departed(left: SequenceParting) -> Text:
    """Say what the ranks that left and the others did."""
    who = named(left.ranks)
    if left.made is not None and left.is_caught:
        return say(
            "{who:capital} left the others at {made}, which raised; the exception was caught and {who:it|they} went on, "
            "while {others} returned from it.",
            who=who,
            made=spoken_entry(left.made),
            others=named(left.others),
        )
    return say("{who:capital} left the others{after}: {paths}", who=who, after=_after(left), paths=_paths(left))


def _departed_at(left: SequenceParting, statement: Statement) -> Text:
    """Say at which statement the ranks left, and what they and the others did."""
    return say(
        "{who:capital} left the others at {statement}: {went}",
        who=named(left.ranks),
        statement=shown_statement(statement),
        went=_went_on(left),
    )


def _departed_in_thread(left: SequenceParting, statement: Optional[Statement]) -> Text:
    """Say that the ranks left in a thread, and at which line the job waits for it without reading what it raised."""
    who, went = named(left.ranks), _went_on(left)
    if statement is None:
        return say("{who:capital} left the others in a side thread: {went}", who=who, went=went)
    return say(
        "{who:capital} left the others in a side thread, whose exceptions stay unread at {statement}: {went}",
        who=who,
        statement=shown_statement(statement),
        went=went,
    )


def _went_on(left: SequenceParting) -> Text:
    """Say what the ranks that left and the others did, behind a colon."""
    if left.made is not None and left.is_caught:
        return say(
            "{who:it|they} caught what {made} raised and went on, while {others} returned from it.",
            who=named(left.ranks),
            made=spoken_entry(left.made),
            others=named(left.others),
        )
    if left.shared is None:
        return _paths(left)
    return say("after {entry}, {paths}", entry=spoken_entry(left.shared), paths=_paths(left))


def _paths(left: SequenceParting) -> Text:
    """Say to which entries the ranks that left and the others went on."""
    who, others, usual = named(left.ranks), named(left.others), _reached(left.usual, left.made)
    for site in left.arms[:_MOST_ARMS]:
        usual = say("{entry} or at {where}", entry=usual, where=place(as_site(site)))
    if left.made is not None and left.made.ends_loader:
        return say(
            "{who:its|their} DataLoader{at} had no further batch, and {others} {others:goes|go} on to {usual}.",
            who=who,
            at=at(as_site(left.made.site)),
            others=others,
            usual=usual,
        )
    return say(
        "{who:it|they} went on to {made}, and {others} {others:goes|go} on to {usual}.",
        who=who,
        made=_reached(left.made, left.usual),
        others=others,
        usual=usual,
    )


def _after(left: SequenceParting) -> str:
    return say(" after {entry}", entry=spoken_entry(left.shared)) if left.shared is not None else ""


def spoken_entry(entry: Optional[SequenceEntry]) -> Text:
    """Return an entry with its number and its line."""
    if entry is None:
        return say("nothing that is recorded")
    where = at(as_site(entry.site))
    if entry.ends_loader:
        return say("the end of the DataLoader{at}", at=where)
    name = say("batch") if entry.op == LOADER else spoken_name(entry.op)
    if entry.number:
        name = say("{entry} number {number}", entry=name, number=entry.number)
    if entry.is_held_back:
        return say("{entry} under no_sync(){at}", entry=name, at=where)
    return say("{entry}{at}", entry=name, at=where)


def _reached(entry: Optional[SequenceEntry], other: Optional[SequenceEntry]) -> Text:
    """Return an entry with its line; if the other side is at the same line, with the line by which it came there."""
    site = as_site(way_apart(entry, other))
    if site is None:
        return spoken_entry(entry)
    return say("{entry}, reached from {where}", entry=spoken_entry(entry), where=place(site))


def way_apart(entry: Optional[SequenceEntry], other: Optional[SequenceEntry]) -> Optional[LedgerSite]:
    """Return the outermost line of an entry's way that the other's lacks, if both are made at one line; else None."""
    if entry is None or other is None or entry.site != other.site:
        return None
    return next((site for site, others in zip(entry.way, other.way) if site != others), None)


def _repeated(left: SequenceParting) -> str:
    """Say which earlier batch only the rank with the shorter loader has taken."""
    before = left.before
    return say("Before, it alone took {entry}.", entry=spoken_entry(before)) if before is not None else ""


def deciding_statements(decision: Optional[Deciding]) -> List[Statement]:
    """Return the statements that decided, or can have: the loop before those in its generator."""
    if decision is None:
        return []
    loop = [decision.loop] if decision.loop is not None else []
    return [*loop, *decision.statements]


def sure_statement(decision: Optional[Deciding]) -> Optional[Statement]:
    """Return the statement that decided, if no other can have."""
    if decision is None:
        return None
    return decision.loop or (decision.statements[0] if len(decision.statements) == 1 else None)


def in_another_order(decision: Optional[Deciding]) -> Text:
    """Say that ranks make the same calls in another order, and what decides it."""
    statement = sure_statement(decision)
    if statement is None:
        return say("The ranks make these calls in another order.")
    template = "The ranks make these calls in another order, by {statement}."
    return say(template, statement=shown_statement(statement))


def decided_by(decision: Optional[Deciding]) -> str:
    """Name the statement that decided, or those that can have."""
    if decision is None or not decision.statements:
        return ""
    shown = [shown_statement(statement) for statement in decision.statements[:_MOST_STATEMENTS]]
    if len(shown) == 1:
        return say("What decided: {statement}.", statement=shown[0])
    template = "One of these decided, the most likely first: {statements}."
    return say(template, statements=listed(shown, _MOST_STATEMENTS))


def shown_statement(statement: Statement) -> Text:
    """Return a statement with its line and its function."""
    code, where = quoted("'%s'" % statement.text), at(statement_site(statement))
    return say("{code}{at}{within}", code=code, at=where, within=within(statement.function))


def shown_decision(decision: Optional[Deciding], otherwise: Text) -> Text:
    """Return the statement that decided with its line, or what stands for it if that is not known."""
    statement = sure_statement(decision)
    return shown_statement(statement) if statement is not None else otherwise


def change(left: Optional[SequenceParting]) -> Change:
    """Return what to change: edits of the `if` that decided, if it can be edited, and what its condition asks for in words."""
    if left is None:
        return []
    has_skipped = left.before is not None and left.decision is not None  # A batch, after which its loader was at its end too early.
    if left.made is not None and left.made.ends_loader and not has_skipped:
        return [_EVEN]
    if left.is_in_thread:
        return [_THREAD]
    if left.is_swapped:
        sites = [entry.site if entry is not None else None for entry in (left.usual, left.made)]
        first, second = (at(as_site(site)) for site in sites)
        return [say(_ORDER, first=first, second=second)]
    if left.is_other_model:
        return [say(_MODEL, at=at(as_site(left.made.site if left.made is not None else None)))]
    return _change_of_statement(left)


def _change_of_statement(left: SequenceParting) -> Change:
    statement = sure_statement(left.decision)
    line = _line(left)
    if statement is not None and statement.kind == "for":
        return [say(_TURNS, line=line)]
    if statement is not None and statement.kind == "call":
        return [say(_CALLED, line=line)]
    in_line = say(" in line {line}", line=line) if line else ""
    if left.holds_back:
        return [say(_HELD_BACK, where=in_line)]
    makes_group = any(entry is not None and entry.op == "new_group" for entry in (left.made, left.usual))
    if left.hint == "rank" and line and makes_group:
        return [say(_NEW_GROUP, line=line)]
    if left.hint == "rank" and line:
        return [say(_BY_RANK, line=line)]
    edits = decided_together.edits(statement) if statement is not None and left.hint != EXCEPTION else []
    if edits:
        return [*edits, _TOGETHER, *([_INSTEAD[left.hint]] if left.hint in _INSTEAD else [])]
    if left.hint in _REMEDIES:
        return [_REMEDIES[left.hint]]
    return [say(_SAME, where=in_line)]


def statement_site(statement: Statement) -> Site:
    """Return the line of a statement that decided."""
    return Site(statement.file, statement.line, statement.function)


def _line(left: SequenceParting) -> int:
    statements = left.decision.statements if left.decision is not None else ()
    statement = sure_statement(left.decision) or (statements[0] if statements else None)
    return statement.line if statement is not None else 0
