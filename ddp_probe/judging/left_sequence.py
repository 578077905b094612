"""How a sentence says where ranks left the sequence that all share, which statement of the job decided, and what to change there."""

from typing import List, Optional

from ddp_probe.judging import decided_together
from ddp_probe.judging.change import Change
from ddp_probe.judging.ledgers import as_site, spoken_name
from ddp_probe.reading.whole_ledger import LedgerSite
from ddp_probe.shared.schema import Site
from ddp_probe.standing.deciding import Deciding, Statement
from ddp_probe.standing.sequence import EXCEPTION, LOADER, SequenceEntry, SequenceParting
from ddp_probe.wording.words import at, by_number, capital, counted, listed, named, place

_MOST_STATEMENTS = 3
_REMEDIES = {
    "clock": "Decide by the step, which all ranks count alike, and not by each rank's own clock.",
    "random": "Draw the number from a generator with the same seed on all ranks.",
    "file": "Look for the file on rank 0 alone, and broadcast what it found.",
    "finite": "Let all ranks skip the step if one has to.",
    "metric": "Reduce the value over all ranks before it is compared, so that all compare the same number.",
    EXCEPTION: (
        "Let the exception end the job. If the job has to go on: catch it before the first collective of the step, exchange there whether a rank "
        "has failed (failed = torch.tensor(float(caught)); dist.all_reduce(failed, op=dist.ReduceOp.MAX)), and let all ranks leave the step together."
    ),
}
_TOGETHER = "Then all ranks take the branch as soon as one of them does."
_EVEN = "Give all ranks the same number of batches: DistributedSampler, drop_last=True, or Join([model]) around the loop."
_TURNS = "Let the loop in line %d have the same turns on all ranks: go over what all ranks have, in one order."
_BY_RANK = (
    "Let all ranks take the branch in line %d, or none: what is called there needs all of them. One rank alone can call model.module, "
    "which exchanges nothing."
)
_CALLED = "Let all ranks come to the same calls behind line %d: a hook, a cache or a decorator there answers on some of them alone."
_ORDER = "Let all ranks make these passes in one order, that%s and that%s: decide on one rank and broadcast the decision."
_THREAD = "Read what the function in the thread raised: call result() on its future, which raises it here, and let it end the rank."
_HELD_BACK = "Let all ranks hold their gradients back in the same steps: decide%s by what all ranks count alike, such as the step."
_SAME = "Let all ranks take the same branch%s: all_reduce what decides, or decide on one rank and broadcast the decision."


def told(left: SequenceParting) -> str:
    """Say which statement decided, at which entry the ranks left, and what the others did there."""
    if left.fewer:
        return _before_the_ring(left)
    if left.is_swapped:
        sides = "%s went on to %s, and %s to %s" % (named(left.sides[1]), spoken_entry(left.usual), named(left.sides[0]), spoken_entry(left.made))
        said = "%s made the backward passes of one step in another order%s: %s. The gradients of different models met, and are mixed.%s"
        return said % (capital(named(left.ranks)), _after(left), sides, _decided(left))
    if not left.is_sure:
        sides = "one side went on to %s, and the other to %s" % (_reached(left.usual, left.made), _reached(left.made, left.usual))
        return "Their sequences part%s: %s.%s" % (_after(left), sides, _decided(left))
    who = "%s left the others" % capital(named(left.ranks))
    statement = sure_statement(left.decision)
    if left.is_in_thread:
        return "%s in a side thread%s:%s" % (who, _unread(statement), _departed(left, ","))
    if statement is None:
        return "%s%s%s%s" % (who, _departed(left, ""), _repeated(left), _decided(left))
    return "%s at %s:%s%s%s" % (who, shown_statement(statement), _departed(left, ","), _repeated(left), _in_generator(left))


def _unread(statement: Optional[Statement]) -> str:
    """Say where the job waits for a thread without reading what it raised."""
    return ", whose exceptions stay unread at %s" % shown_statement(statement) if statement is not None else ""


def _in_generator(left: SequenceParting) -> str:
    """Name what decided in the generator whose end is the end of the loop."""
    decision = left.decision
    if decision is None or decision.loop is None or decision.statements[0].kind == "call":
        return ""
    shown = [shown_statement(statement) for statement in decision.statements[:_MOST_STATEMENTS]]
    return " Its generator decides that by %s." % listed(shown, _MOST_STATEMENTS)


def _before_the_ring(left: SequenceParting) -> str:
    fewer = counted(abs(left.fewer), "backward pass", "backward passes")
    if not left.is_sure:
        said = "For as many forwards, one of %s has made %s fewer than another: they parted before the entries that the ledgers still hold."
        return said % (named(left.ranks), fewer)
    said = "%s %s made %s %s than %s for as many forwards: they parted before the entries that the ledgers still hold."
    which = "fewer" if left.fewer > 0 else "more"
    return said % (capital(named(left.ranks)), by_number(left.ranks, "has", "have"), fewer, which, named(left.others))


def _departed(left: SequenceParting, comma: str) -> str:
    """Say what the ranks that left and the others did; the clause comes behind a colon with a comma, or behind the ranks."""
    others = named(left.others)
    it, its = by_number(left.ranks, "it", "they"), by_number(left.ranks, "its", "their")
    if left.made is not None and left.is_caught:
        if comma:
            return " %s caught what %s raised and went on, while %s returned from it." % (it, spoken_entry(left.made), others)
        return " at %s, which raised; the exception was caught and %s went on, while %s returned from it." % (spoken_entry(left.made), it, others)
    go_on = "%s %s on to %s" % (others, by_number(left.others, "goes", "go"), _reached(left.usual, left.made))
    start = "%s%s" % (_after(left), comma) if left.shared is not None else ""
    if left.made is not None and left.made.ends_loader:
        ended = "%s DataLoader%s had no further batch" % (its, at(as_site(left.made.site)))
        return "%s%s %s, and %s." % (start, "" if comma else ":", ended, go_on)
    return "%s%s %s went on to %s, and %s." % (start, "" if comma else ":", it, _reached(left.made, left.usual), go_on)


def _after(left: SequenceParting) -> str:
    return " after %s" % spoken_entry(left.shared) if left.shared is not None else ""


def spoken_entry(entry: Optional[SequenceEntry]) -> str:
    """Return an entry with its number and its line."""
    if entry is None:
        return "nothing that is recorded"
    if entry.ends_loader:
        return "the end of the DataLoader%s" % at(as_site(entry.site))
    name = "batch" if entry.op == LOADER else spoken_name(entry.op)
    number = "" if entry.is_pass and not entry.number else " number %d" % entry.number
    under = " under no_sync()" if entry.is_held_back else ""
    return "%s%s%s%s" % (name, number, under, at(as_site(entry.site)))


def _reached(entry: Optional[SequenceEntry], other: Optional[SequenceEntry]) -> str:
    """Return an entry with its line; if the other side is at the same line, with the line by which it came there."""
    site = as_site(way_apart(entry, other))
    return spoken_entry(entry) + (", reached from %s" % place(site) if site is not None else "")


def way_apart(entry: Optional[SequenceEntry], other: Optional[SequenceEntry]) -> Optional[LedgerSite]:
    """Return the outermost line of an entry's way that the other's lacks, if both are made at one line; else None."""
    if entry is None or other is None or entry.site != other.site:
        return None
    return next((site for site, others in zip(entry.way, other.way) if site != others), None)


def _repeated(left: SequenceParting) -> str:
    """Say which earlier batch only the rank with the shorter loader has taken."""
    before = left.before
    return " Before, it alone took %s." % spoken_entry(before) if before is not None else ""


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


def in_another_order(decision: Optional[Deciding]) -> str:
    """Say that ranks make the same calls in another order, and what decides it."""
    statement = sure_statement(decision)
    return "The ranks make these calls in another order%s." % (", by %s" % shown_statement(statement) if statement is not None else "")


def _decided(left: SequenceParting) -> str:
    """Name the statement that decided, or those that can have."""
    decision = left.decision
    if decision is None or not decision.statements:
        return ""
    shown = [shown_statement(statement) for statement in decision.statements[:_MOST_STATEMENTS]]
    if len(shown) == 1:
        return " What decided: %s." % shown[0]
    return " One of these decided, the most likely first: %s." % listed(shown, _MOST_STATEMENTS)


def shown_statement(statement: Statement) -> str:
    """Return a statement with its line and its function."""
    within = " in %s" % statement.function if statement.function and not statement.function.startswith("<") else ""
    return "'%s'%s%s" % (statement.text, at(statement_site(statement)), within)


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
        return [_ORDER % tuple(at(as_site(site)) for site in sites)]
    statement = sure_statement(left.decision)
    line = _line(left)
    if statement is not None and statement.kind == "for":
        return [_TURNS % line]
    if statement is not None and statement.kind == "call":
        return [_CALLED % line]
    if left.holds_back:
        return [_HELD_BACK % (" in line %d" % line if line else "")]
    if left.hint == "rank" and line:
        return [_BY_RANK % line]
    edits = decided_together.edits(statement) if statement is not None and left.hint != EXCEPTION else []
    said = [_REMEDIES[left.hint]] if left.hint in _REMEDIES else []
    if edits:
        return [*edits, _TOGETHER, *("Or: %s%s" % (text[:1].lower(), text[1:]) for text in said)]
    return said or [_SAME % (" in line %d" % line if line else "")]


def statement_site(statement: Statement) -> Site:
    """Return the line of a statement that decided."""
    return Site(statement.file, statement.line, statement.function)


def _line(left: SequenceParting) -> int:
    statements = left.decision.statements if left.decision is not None else ()
    statement = sure_statement(left.decision) or (statements[0] if statements else None)
    return statement.line if statement is not None else 0
