"""What the rules say of a split: who is where, since when, which lines show it, and which failures it accounts for."""

from typing import Iterator, List, Optional, Sequence, Tuple

from ddp_probe.judging._splits import split
from ddp_probe.judging._waits import PEER_GONE, waited
from ddp_probe.judging.ledgers import Standing, View, as_site, described, view
from ddp_probe.judging.rule import Evidence
from ddp_probe.judging.words import at, by_number, capital, clock, counted, listed, named
from ddp_probe.reading.model import Death, Failed, Run
from ddp_probe.reading.rank_ledger import LedgerCall
from ddp_probe.reading.splits import PASSES, Split, record
from ddp_probe.shared.alignment import AlignedCall
from ddp_probe.shared.schema import Site

_LINES = 3  # Of each side.


def of_kind(run: Run, *kinds: str) -> Optional[Split]:
    """Return where the ranks part, if that is one of these kinds."""
    found = split(run)
    return found if found is not None and found.kind in kinds else None


def group(run: Run, found: Split) -> str:
    """Name the group if it is not the default one, which is the first with all ranks."""
    one = found.group
    largest = max((each.size for each, _ in view(run).groups.values()), default=0)
    return "" if one is None or (one.nth == 1 and one.size == largest) else " of the group of ranks %s" % one.ranks


def waiting(run: Run, found: Split) -> str:
    """Say who waits in what, where, for how long."""
    ranks = [view(run).ranks[rank] for rank in found.here]
    if found.what in PASSES:
        what = "in %s number %d%s" % (PASSES[found.what], found.number, at(ranks[0].entry))
    elif ranks[0].inside is None:
        what = "for collective number %d%s, which they have given to the device" % (found.number, group(run, found))
    else:
        number = "" if found.what else " (number %d%s)" % (found.number, group(run, found))
        what = ranks[0].where() + number
    longest = max(ranks, key=lambda one: one.lasted())
    verb = by_number(found.here, "waits", "wait")
    return "%s %s %s, for %.0f s since %s" % (named(found.here), verb, what, longest.lasted(), clock(longest.since()))


def absent(run: Run, found: Split) -> str:
    """Say where the ranks are that do not come, alike ones in one clause."""
    ranks = view(run).ranks
    parts = [
        "%s %s%s" % (named(same), "" if standing.left is not None else by_number(same, "is ", "are "), standing.where())
        for standing, same in _places([ranks[rank] for rank in found.there])
    ]
    return listed(parts, 4) + _behind(run, found)


def _places(standings: Sequence[Standing]) -> List[Tuple[Standing, List[int]]]:
    """Return the ranks that stand at one place together."""
    found: dict[Tuple[object, ...], Tuple[Standing, List[int]]] = {}
    for one in standings:
        site, phase = one.site, one.phase.name if one.phase is not None and one.inside is None else ""
        how = one.left.how if one.left is not None else one.inside.op if one.inside is not None else phase
        found.setdefault((how, site.file if site else "", site.line if site else 0), (one, []))[1].append(one.rank)
    return list(found.values())


def _behind(run: Run, found: Split) -> str:
    if found.what in PASSES and found.there:
        passes = {view(run).ranks[rank].times(found.what) for rank in found.there}
        return ", after %s" % counted(passes.pop(), found.what + " pass", found.what + " passes") if len(passes) == 1 else ""
    if found.group is None or found.what or not found.there:
        return ""
    counts = [view(run).ranks[rank].count(found.group.id) for rank in found.there]
    low, high = found.number - max(counts), found.number - min(counts)
    return " (%s behind)" % counted(low, "collective") if low == high else " (%d to %d collectives behind)" % (low, high)


def sides(found: Split) -> str:
    """Say which ranks made which call at the number at which they differ."""
    parts = [
        "%s %s %s%s"
        % (named(ranks), by_number(ranks, "calls", "call"), described(call.op, call.elements, call.dtype, call.root), at(as_site(call.site)))
        for call, ranks in found.calls[:4]
    ]
    more = len(found.calls) - len(parts)
    return "%s%s" % (capital("; ".join(parts)), "; and %s" % counted(more, "more call") if more > 0 else "")


def evidence(run: Run, found: Split) -> List[Evidence]:
    """Return lines of the ledgers of both sides; a line's number is that of the record."""
    seen = view(run)
    if found.calls:
        return [one for call, ranks in found.calls[:4] for one in _of_call(seen, found, call, ranks)]
    shown = [*_first(found.here), *_first(found.there)]
    if any(_has_own_line(seen.ranks[rank]) for rank in found.there):
        shown = [*_first(found.there), *found.here[:1]]  # The report shows the source of the first line.
    return [stands(run, rank) for rank in shown]


def stands(run: Run, rank: int) -> Evidence:
    """Return the line of a rank's ledger that shows where it stands."""
    standing = view(run).ranks[rank]
    return _line(standing, "%s %s" % (named([rank]), standing.where()))


def _has_own_line(standing: Standing) -> bool:
    """Tell whether a rank is at another line than its last call: by its stacks, or because it left from there."""
    return standing.own is not None or (standing.left is not None and standing.left.site is not None)


def _first(ranks: Sequence[int]) -> Sequence[int]:
    return ranks[:_LINES]


def _of_call(seen: View, found: Split, call: LedgerCall, ranks: Sequence[int]) -> Iterator[Evidence]:
    for rank in ranks[:1]:
        standing = seen.ranks[rank]
        one = record(standing, found.group.id if found.group is not None else "", found.number)
        text = "%s: collective number %d is %s" % (named(ranks), found.number, described(call.op, call.elements, call.dtype, call.root))
        yield Evidence(standing.ledger.path, one.number if one is not None else 1, as_site(call.site), text)


def _line(standing: Standing, text: str) -> Evidence:
    last = standing.inside or standing.ledger.last
    if standing.left is not None and standing.left.failure is not None:
        at_line = standing.left.failure.at
        return Evidence(at_line.file, at_line.line, standing.left.failure.site, text)
    if standing.left is not None and standing.left.site is not None:
        return Evidence(standing.process.last_at.file, standing.process.last_at.line, standing.left.site, text)
    if standing.own is not None:
        return Evidence(standing.own.at.file, standing.own.at.line, standing.own.site, text)
    return Evidence(standing.ledger.path, last.number if last is not None else 1, standing.site, text)


def explained(run: Run) -> List[Failed]:
    """Return the failures that follow from ranks that part: time-outs, and lost peers."""
    return [failure for failure in run.failures if failure.fatal and (waited(failure) or failure.consequence == PEER_GONE)]


def aborted(run: Run) -> List[Death]:
    """Return the ends by abort(): gloo and NCCL abort a process that gets another length than it expects."""
    return [death for death in run.deaths if death.signal == "SIGABRT"]


def departed(found: Split) -> str:
    """Say how the guilty rank leaves the sequence of calls that all make."""
    one = found.departure
    if one is None:
        return ""
    usual, made = _call(one.usual), _call(one.made)
    if usual == made:
        usual, made = "%s of its own group" % usual, "%s of another group" % made
    if one.others:
        return " At this point %s %s %s, and rank %d calls %s." % (named(one.others), by_number(one.others, "calls", "call"), usual, one.rank, made)
    return " Before, rank %d called %s at this point, and now it calls %s." % (one.rank, usual, made)


def _call(made: AlignedCall) -> str:
    return "%s%s" % (made.op, at(Site(made.file, made.line)) if made.file else "")


def doubt(found: Split) -> str:
    """Say what is not known."""
    return " There is no complete ledger of %s." % named(found.unknown) if found.unknown else ""


def only_waits(run: Run) -> bool:
    """Tell whether no rank has failed for a reason of its own: then where the ranks part is the cause."""
    return all(standing.left is None or standing.left.failure is None for standing in view(run).ranks.values())
