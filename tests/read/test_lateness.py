"""Who is late, by the steps and the sums of ledgers: drawn ranks, healthy noise, pipelines, torn rows, other byte orders, folds."""

import io
import random
import struct
from array import array
from pathlib import Path
from typing import Dict, Iterator, List, Mapping, Optional, Tuple

import pytest
from ledger_books import in_the_other_order
from schedule import seed

from ddp_probe.judging import late_ranks
from ddp_probe.judging.judge import judge
from ddp_probe.reading import fold, folded_ledger, ledger_file, ledger_text, rank_ledger, steps, whole_ledger
from ddp_probe.reading.load_run import from_lines, load
from ddp_probe.shared import ledger_codec as codec
from ddp_probe.shared import ledger_schema as schema
from ddp_probe.standing import lateness
from ddp_probe.standing.lateness import LateRanks

SIZE = 8
STEPS = 60
DRAWS = 50


def _lines(draw: random.Random, slow: Mapping[int, float] = {}, size: int = SIZE, count: int = STEPS, noise: float = 0.1) -> Iterator[str]:
    """Yield the steps of a data-parallel job in which each rank waits in its backward pass for the last one."""
    for _ in range(count):
        own = [(max(0.1, draw.gauss(2, 2 * noise)), draw.gauss(60, 60 * noise) * slow.get(rank, 1.0)) for rank in range(size)]
        last = max(data + forward for data, forward in own)
        for rank, (data, forward) in enumerate(own):
            yield "ledger %d step dataloader %.3f forward %.3f backward %.3f optimizer 3" % (rank, data, forward, 30 + last - data - forward)


def _late(lines: List[str], size: int = SIZE) -> Optional[LateRanks]:
    kept = [rank_ledger.read("x", data) for data in ledger_text.written(lines, size).values()]
    return lateness.late({one.rank: lateness.member(one.steps, one.sums, one.groups, one.pairs) for one in kept})


def test_a_drawn_rank_whose_forward_is_slower_by_a_fifth_is_named_within_sixty_steps() -> None:
    """In fifty draws, with 10 % of noise on each rank, the late rank is named in each of them, with its forward pass, and no other rank is."""
    draw = random.Random(seed())
    for _ in range(DRAWS):
        slow = draw.randrange(SIZE)
        found = _late(list(_lines(draw, {slow: 1.2})))
        assert found is not None, "rank %d, seed %d" % (slow, seed())
        assert (found.ranks, found.part) == ([slow], "forward")
        assert found.others == [rank for rank in range(SIZE) if rank != slow]
        assert found.steps >= STEPS - 2
        assert found.last_in > 0.4 * found.steps
        assert 6000 < found.more < 20000
        assert 40000 < found.usual < 80000


@pytest.mark.parametrize("size", [2, 4, SIZE])
def test_nobody_is_named_among_healthy_ranks_with_noise(size: int) -> None:
    """In fifty healthy draws with 10 % of noise no rank is named."""
    draw = random.Random(seed())
    assert [found for _ in range(DRAWS) for found in [_late(list(_lines(draw, size=size)), size)] if found is not None] == []


@pytest.mark.parametrize("part", ["dataloader", "forward", "optimizer", "saving", "evaluating"])
def test_the_part_in_which_a_rank_is_late_is_named(part: str) -> None:
    """Rank 1 spends 15 ms more in one part, and that part is said with what it takes on it and on the others."""
    usual = {"dataloader": 2, "forward": 50, "optimizer": 3, "backward": 45}
    slow = {**usual, part: usual.get(part, 0) + 15, "backward": 30}
    lines = ["ledger %s step x30 %s" % (who, " ".join("%s %d" % one for one in times.items())) for who, times in (("0,2-3", usual), ("1", slow))]
    found = _late(lines, 4)
    assert found is not None
    assert (found.ranks, found.part) == ([1], part)
    assert abs(found.more - 15000) < 1500
    assert abs(found.waited - 15000) < 1500


def test_one_of_a_thousand_ranks_is_named_and_nobody_of_a_thousand_healthy_ones() -> None:
    """Of 1 024 ranks, each with noise of its own, the one that is slower by a third is named; without it nobody is."""
    draw, size = random.Random(seed()), 1024
    group = whole_ledger.Group(id="all", size=size, ranks="0-%d" % (size - 1))

    def member(slower: float) -> lateness.StepMember:
        forward = [int(draw.uniform(45000, 55000) * slower) for _ in range(steps.KEPT)]
        parts = {name: array("I", bytes(4 * steps.KEPT)) for name in steps.PARTS}
        parts.update(forward=array("I", forward), backward=array("I", [100000 - time for time in forward]))
        return lateness.member(steps.StepTimes(range(2, 2 + steps.KEPT), array("I", [100000] * steps.KEPT), parts, 0), (), [group.id], ())

    members = {rank: member(1.0) for rank in range(size)}
    assert lateness.late(members) is None
    slow = draw.randrange(size)
    found = lateness.late({**members, slow: member(1.3)})
    assert found is not None
    assert (found.ranks, found.part, len(found.others)) == ([slow], "forward", size - 1)


def test_waited_is_a_share_of_the_last_minute() -> None:
    """A step is counted by when it ended: what was waited longer than a minute ago is not, and steps that reach back less far say how far."""
    alike = "ledger 0-1 step x30 forward 500 backward 500"
    lines = ["ledger 0 step x90 forward 500 backward 500", "ledger 1 step x90 forward 900 backward 100", alike]
    read = [(rank, rank_ledger.read("x", data), whole_ledger.parse(data).steps) for rank, data in ledger_text.written(lines, 2).items()]
    members = {rank: lateness.member(of_ring, kept.sums, kept.groups, kept.pairs) for rank, kept, of_ring in read}

    def waited(later: float) -> Dict[int, Tuple[float, float]]:
        found = lateness.waits(members, {rank: one.steps.ended_ns + int(later * 1e9) for rank, one in members.items()})
        return {rank: (round(one.share, 3), round(one.seconds, 3)) for rank, one in found.items()}

    assert waited(0) == {0: (0.2, 60.0), 1: (0.0, 60.0)}
    assert waited(20) == {0: (0.1, 40.0), 1: (0.0, 40.0)}
    assert waited(30.5) == {0: (0.0, 29.5), 1: (0.0, 29.5)}
    assert waited(60) == {}
    assert lateness.waits(members) == lateness.waits(members, {rank: one.steps.ended_ns for rank, one in members.items()})


def test_few_steps_say_nothing() -> None:
    """Nineteen steps name nobody, however late a rank is; the first of the ring's has no beginning that is known."""
    draw = random.Random(1)
    assert _late(list(_lines(draw, {3: 2.0}, count=steps.FEW - 1))) is None
    assert _late(list(_lines(draw, {3: 2.0}, count=steps.FEW + 1))) is not None


def test_two_slow_ranks_are_both_named() -> None:
    """Ranks 2 and 5 are slower than the six others, and both are late."""
    found = _late(list(_lines(random.Random(2), {2: 1.5, 5: 1.5})))
    assert found is not None
    assert found.ranks == [2, 5]


def test_ranks_in_parallel_trainings_are_not_compared() -> None:
    """Ranks that wait for nobody are not late, whatever their steps take."""
    fast, slow = "dataloader 2 forward 50 backward 30", "dataloader 2 forward 90 backward 30"
    assert _late(["ledger 0-3 step x60 %s" % fast, "ledger 4-7 step x60 %s" % slow]) is None


def _pipeline(slow: Dict[int, int]) -> List[str]:
    """Return two pipelines of two stages, 0 to 2 and 1 to 3; ranks 0-1 and 2-3 reduce the gradients of their stage."""
    lines = []
    for rank in range(4):
        forward = (40 if rank < 2 else 70) + slow.get(rank, 0)
        lines.append("ledger %d step x60 forward %d backward %d" % (rank, forward, 150 - forward))
        peer = (rank + 2) % 4
        lines.append("ledger %d %s at /train/t.py:9 x60" % (rank, "send 4 float32 to %d" % peer if rank < 2 else "recv 4 float32 from %d" % peer))
    return [*lines, *("ledger %s all_reduce 4 float32 of %s at /train/t.py:20 x60" % (stage, stage) for stage in ("0-1", "2-3"))]


def test_the_stages_of_a_pipeline_are_compared_with_themselves_alone() -> None:
    """The second stage works longer by design and is not late; a rank that is slower than the other one of its stage is."""
    assert _late(_pipeline({}), 4) is None
    found = _late(_pipeline({3: 20}), 4)
    assert found is not None
    assert (found.ranks, found.others) == ([3], [2])


def test_ranks_that_call_other_lines_are_not_compared() -> None:
    """Rank 0 reduces at another line than the others: it does other work, and is not late."""
    step = ["ledger 0 step x60 forward 90 backward 30", "ledger 1-3 step x60 forward 50 backward 70"]
    same, other = "ledger 0-3 all_reduce 4 float32 at /t.py:5 x60", "ledger 0 all_reduce 4 float32 at /t.py:7 x60"
    assert _late([*step, same], 4) is not None
    assert _late([*step, same.replace("0-3", "1-3"), other], 4) is None


def _collectives(slow: int, behind: float, count: int = 40) -> List[str]:
    """Return a job without a backward pass: the late rank enters its all_reduce later, and all leave it together."""
    found = []
    for _ in range(count):
        found.append(
            "ledger %s all_reduce 16 float32 at /train/t.py:12 takes %s" % (",".join(str(rank) for rank in range(4) if rank != slow), behind + 1)
        )
        found.append("ledger %d all_reduce 16 float32 at /train/t.py:12 after %s takes 1" % (slow, behind - 10))
    return found


def test_a_job_without_a_backward_pass_is_told_by_its_collectives() -> None:
    """Rank 2 comes 4 ms late to each all_reduce, which ends for all together: it is late, and with nothing between it nobody is."""
    found = _late(_collectives(2, 4.0), 4)
    assert found is not None
    assert (found.ranks, found.part) == ([2], lateness.ELSEWHERE)
    assert abs(found.behind - 4000) < 100
    assert _late(_collectives(2, 0.01), 4) is None


def test_the_sums_say_who_came_last_over_the_whole_run_on_other_clocks() -> None:
    """Hosts have started at other times; the sums of the times of entry are compared on the common clock, and give the same 4 ms."""
    start = '{"event":"process.start","rank":%d,"world_size":4,"host":"node%d"}'
    lines = [start % (rank, rank) for rank in range(4)] + _collectives(2, 4.0)
    run = from_lines("\n".join(lines))
    for rank, process in run.ranks.items():  # Another boot, and a wall clock that is known to be off.
        kept = process.ledger
        assert kept is not None
        moved = [one._replace(entered_ns=(one.entered_ns + one.calls * rank * 10**15) % (1 << 64)) for one in kept.sums]
        process.hold_ledger(kept.path, kept._replace(sums=tuple(moved), base=kept.base - rank * 1e6 - rank * 3))
        process.offset += 3 * rank
    found = late_ranks.late(run)
    assert found is not None
    ((line, calls, behind),) = late_ranks.by_sums(run, found)
    assert (line.op, line.site and line.site.line, calls) == ("all_reduce", 12, 40)
    assert abs(behind - 0.004) < 1e-5


def test_sums_of_other_counts_are_not_compared() -> None:
    """A rank that has made one call less has another sum, and nothing is said of the whole run."""
    run = from_lines("\n".join([*_collectives(2, 4.0), "ledger 0 all_reduce 16 float32 at /train/t.py:12"]))
    found = late_ranks.late(run)
    assert found is not None
    assert found.ranks == [2]
    assert list(late_ranks.by_sums(run, found)) == []


def _one(count: int = STEPS) -> bytes:
    return ledger_text.written(["ledger 0 step x%d dataloader 2 forward 50 backward 30" % count], 1)[0]


def test_steps_are_read_without_a_gap_and_end_at_a_torn_row() -> None:
    """Sixty steps are read in order; after a row whose number is written once only, the later ones count; a torn last row is left out."""
    data = _one()
    found = whole_ledger.parse(data).steps
    assert list(found.numbers) == list(range(2, STEPS + 2))
    assert abs(found.parts["forward"][3] - 50000) < 600
    assert found.took[7] == sum(found.parts[name][7] for name in steps.PARTS)
    assert (
        found.ended_ns == int(ledger_text.START * 1e9) + sum(found.took) * 1000 + (found.ended_ns - int(ledger_text.START * 1e9)) % 1000
        or found.ended_ns
    )
    start = codec.places(codec.HEADER.read(data)).steps
    size, again = codec.STEP.size, codec.STEP.offset("index_again")
    torn = bytearray(data)
    struct.pack_into("Q", torn, start + 40 * size + again, 39)
    assert list(whole_ledger.parse(bytes(torn)).steps.numbers) == list(range(41, STEPS + 2))
    last = bytearray(data)
    struct.pack_into("Q", last, start + (STEPS + 1) * size + again, 1)
    assert list(whole_ledger.parse(bytes(last)).steps.numbers) == list(range(2, STEPS + 1))


def test_a_ring_that_is_full_gives_the_latest_steps() -> None:
    """Of six hundred steps the ring holds the latest, and what is kept of a rank is the latest of those."""
    data = _one(600)
    assert whole_ledger.parse(data).steps.numbers[-1] == 601
    assert len(whole_ledger.parse(data).steps.numbers) == schema.STEPS - 1
    assert list(rank_ledger.read("x", data).steps.numbers) == list(range(602 - steps.KEPT, 602))


def test_the_other_byte_order_is_read_alike() -> None:
    """The ring of a machine with the other byte order gives the same steps."""
    data = _one()
    other = whole_ledger.parse(in_the_other_order(data)).steps
    assert other == whole_ledger.parse(data).steps
    assert len(other.numbers) == STEPS


def test_a_ledger_as_text_has_the_same_steps_and_sums() -> None:
    """The lines of JSON of a ledger are read as its bytes are."""
    (data, *_) = ledger_text.written([*_lines(random.Random(3), size=1), *_collectives(1, 4.0)], 4).values()
    text = ledger_file.as_lines(data).encode()
    bytes_, lines = whole_ledger.parse(data), whole_ledger.parse(text)
    assert (lines.steps, lines.sums) == (bytes_.steps, bytes_.sums)
    assert [(one.op, one.calls) for one in lines.sums] == [("all_reduce", 40)]
    assert lines.sums[0].longest_ns == 5 * 10**6


def test_a_ledger_of_the_first_version_has_no_steps_of_its_own() -> None:
    """Recorded ledgers of version 1 are read: no sums, and steps by their calls if there are enough of them."""
    recorded = sorted((Path(__file__).parent.parent / "recorded").rglob("*.ledger*"))
    versions = {one.header.version for path in recorded[:40] for one in [whole_ledger.read(path)] if one.header is not None}
    assert 1 in versions
    assert all(
        not one.sums and not one.steps.numbers
        for path in recorded[:40]
        for one in [whole_ledger.read(path)]
        if one.header and one.header.version == 1
    )


def test_a_fold_carries_what_lateness_needs(tmp_path: Path) -> None:
    """The steps and the sums of a fold are those of the files, and name the same rank."""
    for job in (list(_lines(random.Random(4), {3: 1.3}, size=4)), _collectives(3, 4.0)):
        for rank, data in ledger_text.written(job, 4).items():
            start = '{"event":"process.start","rank":%d,"world_size":4,"pid":7,"host":"node1"}\n' % rank
            (tmp_path / ("rank%05d.node1.7.jsonl" % rank)).write_text(start)
            (tmp_path / ("rank%05d.node1.7.ledger" % rank)).write_bytes(data)
        target = io.BytesIO()
        fold.write([str(tmp_path)], target)
        (tmp_path.parent / "one.fold").write_bytes(target.getvalue())
        files, folded = load([str(tmp_path)]), load([str(tmp_path.parent / "one.fold")])
        for rank, process in files.ranks.items():
            theirs = folded.ranks[rank].ledger
            assert process.ledger is not None
            assert theirs is not None
            assert (theirs.steps, theirs.sums) == (process.ledger.steps, process.ledger.sums)
        assert judge(folded).findings[0].verdict == judge(files).findings[0].verdict
        assert judge(folded).findings[0].ranks == [3]


def test_a_fold_of_before_has_no_steps() -> None:
    """A folded ledger that ends before the steps is read without them, and one whose columns do not fit is refused."""
    assert folded_ledger._unfolded_steps([], 0, b"") == steps.StepTimes()
    with pytest.raises(ValueError, match="do not fit"):
        folded_ledger._unfolded_steps([1], 0, bytes(12))


def test_shares_are_what_each_rank_waits_longer_than_the_last_one() -> None:
    """In steps of 100 ms, of which the others wait 15 ms longer than rank 1, each of them waits 15 % and rank 1 nothing."""
    lines = ["ledger 0,2-3 step x30 forward 50 backward 50", "ledger 1 step x30 forward 65 backward 35"]
    kept = [rank_ledger.read("x", data) for data in ledger_text.written(lines, 4).values()]
    found = lateness.waits({one.rank: lateness.member(one.steps, one.sums, one.groups, one.pairs) for one in kept})
    assert {rank: round(share, 2) for rank, (share, _) in found.items()} == {0: 0.15, 1: 0.0, 2: 0.15, 3: 0.15}


def test_ledgers_with_broken_bytes_name_nobody_else() -> None:
    """Of ledgers of which some bytes are wrong or the end is missing, the late rank is named or nobody is."""
    draw = random.Random(seed())
    whole = ledger_text.written([*_lines(random.Random(5), {3: 1.4}), "ledger 0-7 all_reduce 4 float32 at /t.py:5 x60"], SIZE)
    named = 0
    for _ in range(60):
        kept = []
        for data in whole.values():
            broken = bytearray(data)
            for _ in range(draw.choice((0, 0, 0, 0, 1, 3))):
                broken[draw.randrange(len(broken))] = draw.choice((0, 255, draw.randrange(256)))
            kept.append(rank_ledger.read("x", bytes(broken[: len(broken) // draw.choice((1,) * 15 + (2,))])))
        found = lateness.late({rank: lateness.member(one.steps, one.sums, one.groups, one.pairs) for rank, one in enumerate(kept)})
        assert found is None or found.ranks == [3], "seed %d" % seed()
        named += found is not None
    assert named
