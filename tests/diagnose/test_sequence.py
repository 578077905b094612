"""Which rank left the sequence that all ranks share, and at which entry."""

from collections import Counter
from typing import List

from ddp_probe.judging.left_sequence import told
from ddp_probe.reading import ledger_text, whole_ledger
from ddp_probe.reading.whole_ledger import LedgerSite
from ddp_probe.standing.sequence import SequenceEntry, entries, part, parted_before

_LINES = {"forward": 10, "backward": 12, "optimizer": 13, "dataloader": 8, "barrier": 30, "all_reduce": 20}


def _made(text: str) -> List[SequenceEntry]:
    """Return the entries of a line such as `forward backward optimizer*3 barrier@30 forward!`: ! raised, @ at another line."""
    entries: List[SequenceEntry] = []
    counts: Counter[str] = Counter()
    for word in text.split():
        raised = word.endswith("!")
        op, _, line = word.rstrip("!").partition("@")
        counts[op if op not in ("barrier", "all_reduce") else "calls"] += 1
        is_pass = op not in ("barrier", "all_reduce")
        number = counts[op] if is_pass else counts["calls"]
        way = (LedgerSite("train.py", int(line or _LINES[op]), "main"),)
        entries.append(SequenceEntry(op, number, way, is_pass, raised, "" if is_pass else "all", 0 if is_pass else 2))
    return entries


_STEP = "dataloader forward backward optimizer "


def test_a_skipped_backward_is_found_at_its_step_although_only_the_last_one_waits() -> None:
    """A rank that skips one backward of 20 left there, not where the job hangs."""
    whole = _STEP * 20 + "all_reduce"
    short = _STEP * 9 + "dataloader forward " + _STEP * 10 + "all_reduce"
    parting = part({0: _made(whole), 1: _made(short)})
    assert parting is not None
    assert parting.ranks == (1,)
    assert parting.is_sure
    assert (parting.shared.op, parting.shared.number) == ("forward", 10)  # type: ignore[union-attr]
    assert (parting.usual.op, parting.made.op) == ("backward", "dataloader")  # type: ignore[union-attr]


def test_a_forward_that_raised_and_was_caught_is_where_its_rank_left() -> None:
    """A forward that raised on one rank tells which rank left, and at which number."""
    whole = _made(_STEP * 20)
    caught = _made(_STEP * 14 + "dataloader forward! " + _STEP * 5 + "barrier")
    parting = part({0: whole, 1: caught})
    assert parting is not None
    assert parting.ranks == (1,)
    assert (parting.made.op, parting.made.number, parting.made.raised) == ("forward", 15, True)  # type: ignore[union-attr]


def test_what_only_one_rank_does_by_itself_is_no_parting() -> None:
    """A rank that logs with a loader and a forward of its own has not left the sequence if all go on alike."""
    plain = _STEP * 5 + "barrier " + _STEP * 5 + "barrier"
    more = _STEP * 5 + "dataloader@70 forward@71 dataloader@70! barrier " + _STEP * 5 + "barrier"
    assert part({0: _made(more), 1: _made(plain)}) is None


def test_arms_with_the_same_call_are_no_parting() -> None:
    """Two lines of one call, each made by one rank, meet."""
    one = _STEP * 3 + "all_reduce@20 " + _STEP * 3 + "barrier"
    other = _STEP * 3 + "all_reduce@22 " + _STEP * 3 + "barrier"
    assert part({0: _made(one), 1: _made(other)}) is None


_JOINED = "dataloader forward all_reduce@10 backward optimizer "
_STAND_IN = "all_reduce@7 "


def test_a_rank_that_stands_in_under_join_has_not_left() -> None:
    """A rank whose loader ends earlier and which makes the calls of the others until theirs have ended has left only at the line after that."""
    for turns in (1, 30):
        short = _JOINED * 5 + "dataloader! " + _STAND_IN * (turns + 1)
        long = _JOINED * (5 + turns) + "dataloader! " + _STAND_IN
        assert part({0: _made(short + _STEP * 3), 1: _made(long + _STEP * 3)}) is None
        parting = part({0: _made(long + "forward barrier@30"), 1: _made(short + "forward backward@31")})
        assert parting is not None
        assert (parting.shared.op, parting.shared.number) == ("forward", 6 + turns)  # type: ignore[union-attr]


def test_a_rank_whose_loader_ends_earlier_has_left_if_it_does_not_stand_in() -> None:
    """Calls behind the loop that are fewer than those of the others, or not all from one line, do not make up for batches."""
    others = _made(_JOINED * 8 + "dataloader! " + _STAND_IN)
    for behind in (_STAND_IN * 3, _STAND_IN * 2 + "all_reduce@20 " * 2):
        parting = part({0: _made(_JOINED * 5 + "dataloader! " + behind + "barrier@30"), 1: others, 2: others})
        assert parting is not None
        assert parting.ranks == (0,)
        assert parting.made is not None
        assert parting.made.ends_loader


def test_a_rank_that_is_slower_has_not_left() -> None:
    """A sequence that is the beginning of another one does not part from it."""
    assert part({0: _made(_STEP * 9), 1: _made(_STEP * 7 + "dataloader")}) is None


def test_an_evaluation_on_one_rank_is_found_if_its_forwards_meet_those_of_the_others() -> None:
    """Forwards that send buffers meet: three more of them put a rank ahead."""
    rest = [_made(_STEP * 12 + "dataloader forward") for _ in range(3)]
    ahead = _made(_STEP * 6 + "forward@40 forward@40 forward@40 " + _STEP * 6 + "dataloader forward")
    parting = part({0: ahead, 1: rest[0], 2: rest[1], 3: rest[2]})
    assert parting is None or parting.ranks == (0,)
    waits = _made(_STEP * 6 + "forward@40 forward@40 forward@40 " + _STEP * 4 + "dataloader forward backward barrier")
    parting = part({0: waits, 1: rest[0], 2: rest[1], 3: rest[2]})
    assert parting is not None
    assert parting.ranks == (0,)


def test_the_others_may_take_two_arms_of_one_if() -> None:
    """If the others make the call that a rank does not come to in two arms, both lines are told."""
    sequences = {rank: _made(_STEP * 3 + "barrier@%d " % line + _STEP * 3) for rank, line in ((0, 40), (1, 41), (3, 40))}
    parting = part({**sequences, 2: _made(_STEP * 6)})
    assert parting is not None
    assert (parting.ranks, parting.others) == ((2,), (0, 1, 3))
    assert parting.usual is not None
    assert (parting.usual.site.line, [site.line for site in parting.arms]) == (40, [41])
    assert "ranks 0-1, 3 go on to barrier number 1 at train.py:40 or at train.py:41." in told(parting)


def _in_pair(text: str) -> List[SequenceEntry]:
    """Return entries of which the calls at line 50 are of a group of two ranks."""
    return [entry._replace(group="pair", size=2) if entry.site.line == 50 else entry for entry in _made(text)]


def test_calls_of_a_group_part_only_its_members() -> None:
    """Ranks that evaluate in a group of their own have not left; if one member does not come to its call, that one has."""
    alone = _STEP + "all_reduce@50 "
    healthy = {0: _made(_STEP * 12), 1: _made(_STEP * 12), 2: _in_pair(alone * 12), 3: _in_pair(alone * 12)}
    assert part(healthy, {"pair": {2, 3}, "all": {0, 1, 2, 3}}) is None
    skips = {0: _in_pair(alone * 6), 1: _in_pair(alone * 4 + _STEP + alone), 2: _made(_STEP * 6)}
    parting = part(skips, {"pair": {0, 1}})
    assert parting is not None
    assert (parting.ranks, parting.others) == ((1,), (0,))


def test_like_calls_of_groups_side_by_side_are_compared() -> None:
    """A rank that leaves out the call in its pair has left, as the ranks of the other pair make theirs in each step."""
    step = "dataloader backward all_reduce@50 optimizer barrier "
    others = _in_pair(step * 8)
    skips = [entry._replace(group="other pair") if entry.group == "pair" else entry for entry in others]
    del skips[5 * 3 + 1 : 5 * 3 + 3]
    parting = part({0: others, 1: others, 3: skips}, {"pair": {0, 1}, "other pair": {2, 3}, "all": {0, 1, 2, 3}})
    assert parting is not None
    assert parting.ranks == (3,)


def test_the_majority_tells_who_left() -> None:
    """Of four ranks the one whose sequence differs has left, be it the first or another."""
    for guilty in (0, 2):
        sequences = {rank: _made(_STEP * 5 + ("barrier@50 " if rank == guilty else "") + _STEP * 3) for rank in range(4)}
        parting = part(sequences)
        assert parting is not None
        assert parting.ranks == (guilty,)
        assert parting.is_sure


def test_the_past_of_two_ranks_tells_who_left() -> None:
    """Of two ranks that one has left which does what neither did before at this point."""
    epoch = _STEP * 3 + "barrier "
    parting = part({0: _made(epoch * 4), 1: _made(epoch * 3 + _STEP * 3 + _STEP)})
    assert parting is not None
    assert parting.ranks == (1,)
    assert (parting.shared.op, parting.usual.op) == ("optimizer", "barrier")  # type: ignore[union-attr]


def test_a_batch_that_was_taken_twice_brings_a_loader_to_its_end_too_early() -> None:
    """If one loader ends earlier, an earlier request for a batch that only its rank made is told."""
    whole = _made(_STEP * 12)
    twice = _made(_STEP * 4 + "dataloader " + _STEP * 6 + "dataloader! barrier")
    parting = part({0: whole, 1: twice})
    assert parting is not None
    assert parting.ranks == (1,)
    assert parting.before is not None
    assert parting.before.number == 6


def test_passes_that_were_skipped_before_the_ring_begins_are_counted() -> None:
    """A rank with one backward pass fewer for as many forwards has left, however long ago; rings that begin elsewhere are no sign of that."""
    whole = [entry._replace(number=entry.number + 900_000) for entry in _made(_STEP * 9)]
    short = [entry._replace(number=entry.number - (entry.op == "backward")) for entry in whole]
    parting = parted_before({0: whole, 1: short, 2: whole})
    assert parting is not None
    assert parting.ranks == (1,)
    assert parting.is_sure
    assert parting.fewer == 1
    two = parted_before({0: whole, 1: short})
    assert two is not None
    assert (two.ranks, two.is_sure) == ((1,), True)  # Rank 0 has made a backward pass for each forward.
    fewer = [[entry._replace(number=entry.number - 5 * (entry.op == "backward")) for entry in side] for side in (whole, short)]
    neither = parted_before({0: fewer[0], 1: fewer[1]})
    assert neither is not None
    assert not neither.is_sure
    assert parted_before({0: whole[3:], 1: whole[1:], 2: whole[2:]}) is None


def test_a_pass_that_its_last_call_ends_has_not_been_caught() -> None:
    """A forward raises with the collective in it that timed out: the rank did not go on. If it makes a further batch, it did."""
    lines = ["ledger 0 forward at train.py:45 raised", "ledger 0 all_gather at train.py:16 raised", "ledger 0 dataloader at train.py:40 open"]
    (data,) = ledger_text.written(lines).values()
    forward, batch, gather = sorted(whole_ledger.parse(data).sequence, key=lambda record: ("forward", "dataloader", "all_gather").index(record.op))
    forward = forward._replace(left_ns=gather.left_ns + 10)
    assert [entry.raised for entry in entries([forward, gather])] == [False, False]
    assert [entry.raised for entry in entries([forward, gather, batch])] == [True, True, False]


def test_a_data_loader_that_raised_is_not_at_its_end() -> None:
    """A loader's exception that was caught is where its rank left; if it came last, it is in their batch."""
    turn = ["dataloader at train.py:8", "forward at train.py:10", "backward at train.py:12"]
    others = [*turn * 4, "barrier at train.py:30"]
    failed = [*turn * 3, "dataloader at train.py:8 raised failed"]
    made = {}
    for rank, lines in enumerate((others, [*failed, "barrier at train.py:30"], failed)):
        (data,) = ledger_text.written(["ledger 0 " + line for line in lines], world_size=2).values()
        made[rank] = entries(whole_ledger.parse(data).sequence)
    caught = part({0: made[0], 1: made[1]})
    assert caught is not None
    assert (caught.ranks, caught.is_caught) == ((1,), True)
    assert "at batch number 4 at train.py:8, which raised; the exception was caught" in told(caught)
    assert not any(entry.ends_loader for entry in made[1])
    assert (made[2][-1].raised, made[2][-1].has_failed) == (False, False)
