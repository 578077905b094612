"""How a sentence says where ranks left the sequence that all share, which statement of the job decided, and what to change there."""

from typing import Optional

from ddp_probe.judging.ledgers import as_site, spoken_name
from ddp_probe.judging.words import at, by_number, capital, counted, listed, named
from ddp_probe.shared.schema import Site
from ddp_probe.standing.deciding import Statement
from ddp_probe.standing.sequence import EXCEPTION, LOADER, SequenceEntry, SequenceParting

_MOST_STATEMENTS = 3
_REMEDIES = {
    "clock": "Decide by the step, which all ranks count alike, and not by each rank's own clock; or decide on rank 0 and broadcast the decision%s.",
    "random": "Draw the number on all ranks from a generator with the same seed, or draw it on rank 0 and broadcast it%s.",
    "file": "Look for the file on rank 0 alone, and broadcast what it found%s.",
    "finite": "Let all ranks skip the step if one has to%s.",
    "metric": "Reduce the value over all ranks before it is compared%s, so that all compare the same number.",
    EXCEPTION: "Let all ranks leave the step if one has failed%s, or let the exception end the job.",
}
_FLAGS = {
    "clock": "",
    "random": "",
    "file": "",
    "finite": ": ok = torch.isfinite(loss).float(); dist.all_reduce(ok, op=dist.ReduceOp.MIN), and take the branch by ok",
    "metric": ": dist.all_reduce(value), divided by the number of ranks",
    EXCEPTION: ": failed = torch.tensor(float(caught)); dist.all_reduce(failed, op=dist.ReduceOp.MAX), and take the branch by failed",
}
_EVEN = "Give all ranks the same number of batches: DistributedSampler, drop_last=True, or Join([model]) around the loop."
_SAME = "Let all ranks take the same branch%s: all_reduce what decides, or decide on one rank and broadcast the decision."


def told(left: SequenceParting) -> str:
    """Say at which entry the ranks left, what the others did there, and what decided."""
    return "%s%s%s" % (_departed(left), _repeated(left), decided(left))


def _departed(left: SequenceParting) -> str:
    if left.fewer:
        fewer = counted(abs(left.fewer), "backward pass", "backward passes")
        if not left.is_sure:
            return "For as many forwards, one of %s has made %s fewer than another: they parted before the entries that the ledgers still hold." % (
                named(left.ranks),
                fewer,
            )
        said = "%s %s made %s %s than %s for as many forwards: they parted before the entries that the ledgers still hold."
        which = "fewer" if left.fewer > 0 else "more"
        return said % (capital(named(left.ranks)), by_number(left.ranks, "has", "have"), fewer, which, named(left.others))
    if not left.is_sure:
        sides = "one side went on to %s, and the other to %s" % (spoken_entry(left.usual), spoken_entry(left.made))
        return "Their sequences part%s: %s." % (_after(left), sides)
    who, others = capital(named(left.ranks)), named(left.others)
    went = by_number(left.others, "goes", "go")
    if left.made is not None and left.made.ends_loader:
        said = "%s left the others%s: its DataLoader%s had no further batch, and %s %s on to %s."
        return said % (who, _after(left), at(as_site(left.made.site)), others, went, spoken_entry(left.usual))
    if left.made is not None and left.is_caught:
        said = "%s left the others at %s, which raised; the exception was caught and it went on, while %s returned from it."
        return said % (who, spoken_entry(left.made), others)
    said = "%s left the others%s: it went on to %s, and %s %s on to %s."
    return said % (who, _after(left), spoken_entry(left.made), others, went, spoken_entry(left.usual))


def _after(left: SequenceParting) -> str:
    return " after %s" % spoken_entry(left.shared) if left.shared is not None else ""


def spoken_entry(entry: Optional[SequenceEntry]) -> str:
    """Return an entry with its number and its line."""
    if entry is None:
        return "nothing that is recorded"
    name = "batch" if entry.op == LOADER else spoken_name(entry.op)
    number = "" if entry.is_pass and not entry.number else " number %d" % entry.number
    return "%s%s%s" % (name, number, at(as_site(entry.site)))


def _repeated(left: SequenceParting) -> str:
    """Say which earlier batch only the rank with the shorter loader has taken."""
    before = left.before
    return " Before, it alone took %s." % spoken_entry(before) if before is not None else ""


def decided(left: SequenceParting) -> str:
    """Name the statement that decided, or those that can have."""
    decision = left.decision
    if decision is None or not decision.statements:
        return ""
    shown = [_shown(statement) for statement in decision.statements[:_MOST_STATEMENTS]]
    if decision.is_sure or len(decision.statements) == 1:
        return " What decided: %s." % shown[0]
    return " One of these decided, the most likely first: %s." % listed(shown, _MOST_STATEMENTS)


def _shown(statement: Statement) -> str:
    within = " in %s" % statement.function if statement.function and not statement.function.startswith("<") else ""
    return "'%s'%s%s" % (statement.text, at(statement_site(statement)), within)


def remedy(left: SequenceParting) -> str:
    """Return the change to make, by what the statement that decided shows."""
    if left.made is not None and left.made.ends_loader:
        return _EVEN
    line = _line(left)
    if left.hint in _REMEDIES:
        change = _REMEDIES[left.hint] % _FLAGS[left.hint]
        return "Before line %d, %s%s" % (line, change[:1].lower(), change[1:]) if line else change
    return _SAME % (" in line %d" % line if line else "")


def statement_site(statement: Statement) -> Site:
    """Return the line of a statement that decided."""
    return Site(statement.file, statement.line, statement.function)


def _line(left: SequenceParting) -> int:
    statements = left.decision.statements if left.decision is not None else ()
    return statements[0].line if statements else 0
