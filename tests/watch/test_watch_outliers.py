"""watch names the ranks that stand out, and why, and no other."""

import os
import time
from pathlib import Path
from typing import Any

import pytest
from ledger_books import Call, Phase, returned

from ddp_probe.reading.whole_ledger import LedgerSite
from ddp_probe.shared import ledger_schema as schema
from ddp_probe.showing import watch_page
from ddp_probe.showing.language import CHINESE, ENGLISH
from ddp_probe.showing.watch import outliers
from ddp_probe.showing.watch.watch_look import LiveView, Look
from ddp_probe.showing.watch_page import rows, table_lines
from ddp_probe.standing.sequence import SequenceEntry, SequenceParting
from ddp_probe.standing.splits import LEFT, Split
from ddp_probe.wording.text import joined, say
from ddp_probe.wording.words import ONE, quoted


def _look(folder: Path) -> Look:
    """Look at the ranks; each reason can be written in Chinese."""
    look = LiveView([str(folder)]).look()
    assert [why for why in look.outliers.values() if not CHINESE.has(why)] == []
    return look


def test_the_verb_of_a_reason_agrees_with_its_ranks() -> None:
    """A reason that several ranks share is said of several, also in a list with what follows from it."""
    why = joined([say("{they:does|do} not make the call", they=ONE), say("; {who}: 3", who="n")], by="")
    assert watch_page._sentence([2], why, ENGLISH) == "rank 2 does not make the call; n: 3"
    assert watch_page._sentence([2, 3], why, ENGLISH) == "ranks 2-3 do not make the call; n: 3"


def test_why_a_rank_left_the_sequence_is_a_text_with_its_values() -> None:
    """What a rank did instead of the others, and the values beside it, can be written in Chinese."""
    made, usual = (SequenceEntry(op, 4, (LedgerSite("train.py", line),), True, False) for op, line in (("optimizer", 9), ("backward", 8)))
    parted = Split(LEFT, None, 4, (0,), (1,), (1,), 0.0, sequence=SequenceParting((1,), (0,), None, made, usual, True))
    for values, end in (("", ""), (say(" ({values})", values=quoted("loss 1.0")), " (loss 1.0)")):
        why = outliers._Reasons(parted, {}, values).of(1)
        assert why == "went on to optimizer 4 at train.py:9, when the others went on to backward 4 at train.py:8" + end
        assert CHINESE.text(why).startswith("继续到 optimizer 4")
        assert CHINESE.has(why)


def test_rank_0_is_not_right_by_itself(book: Any, folder: Path) -> None:
    """If most ranks are in another call than rank 0, rank 0 stands out."""
    for rank in range(4):
        book(rank, Call(op="broadcast" if rank == 0 else "all_reduce", seq=5, group="0-3"), world=4)
    look = _look(folder)
    assert look.outliers == {0: "is in broadcast 5, not in all_reduce 5, in which 3 ranks wait"}


def test_another_root_stands_out_though_others_have_passed(book: Any, folder: Path) -> None:
    """Of three ranks that broadcast, the one with another root stands out, and not the one that its data reached and that waits further on."""
    book(0, Call(op="broadcast", seq=5, group="0-2", peer=0), world=3)
    book(1, *[one._replace(op="broadcast", peer=0) for one in returned(5, group="0-2")], Call(op="barrier", seq=6, group="0-2"), world=3)
    book(2, Call(op="broadcast", seq=5, group="0-2", peer=2), world=3)
    assert _look(folder).outliers == {2: "is in broadcast 5 from root 2, not in broadcast 5 from root 0, which 2 ranks call"}


@pytest.mark.parametrize("moves", [True, False])
def test_who_stands_out_is_asked_again_if_ranks_move_meanwhile(moves: bool, book: Any, folder: Path, monkeypatch: Any) -> None:
    """If a rank comes to the call of the others while the ledgers are compared, nobody stands out; if none moves, they are compared once."""
    for rank in range(3):
        book(rank, Call(op="all_reduce", seq=5, group="0-3"), world=4)
    late = book(3, *returned(4, group="0-3"), world=4)
    reasons, asked = outliers.reasons, []

    def compared(*given: Any) -> Any:
        asked.append(reasons(*given))
        if moves and len(asked) == 1:
            late.call(Call(op="all_reduce", seq=5, group="0-3", ago=0.0))
            late.write(moved_ns=time.monotonic_ns())
        return asked[-1]

    monkeypatch.setattr(outliers, "reasons", compared)
    assert (list(_look(folder).outliers), len(asked)) == (([], 2) if moves else ([3], 1))


def test_a_pair_without_the_other_half_stands_out(book: Any, folder: Path) -> None:
    """Who waits for a rank that waits in a recv of its own is a consequence: the pair at the end of the chain is named."""
    book(0, Call(op="send", seq=1, group="0-2", peer=2), world=3)
    book(1, Call(op="barrier", seq=1, group="0-2"), world=3)
    book(2, Call(op="recv", seq=1, group="0-2", peer=1), world=3)
    assert _look(folder).outliers == {
        1: "does not make the call that matches recv 1 of rank 2",
        2: "is in recv 1 with rank 1, which does not make the matching call",
    }


def test_a_call_ahead_is_named_with_both_lines(book: Any, folder: Path) -> None:
    """A rank whose call met another line's stands out with that call, and not with the later one in which it waits."""
    program = folder / "train.py"
    program.write_text("if rank == 0:\n    dist.barrier()\ndist.barrier()\ndist.barrier()\n", encoding="utf-8")
    for rank in range(3):
        lines = [2, 3, 4] if rank == 0 else [3, 4]
        sites = ["%s:%d:main" % (program, line) for line in lines]
        met = [one._replace(op="barrier", site=site) for one, site in zip(returned(1, 2, group="0-2"), sites)]
        waits = [Call(op="barrier", seq=3, group="0-2", site=sites[2])] if rank == 0 else [Phase("train")]
        book(rank, *met, *waits, world=3)
    assert _look(folder).outliers == {0: "made barrier 1 at train.py:2, which met that at train.py:3"}


def test_two_ranks_that_part_are_both_named(book: Any, folder: Path) -> None:
    """If half of a group is in one call and half in another, all of them stand out."""
    book(0, Call(op="barrier", seq=5, group="0-1"), world=2)
    book(1, Call(op="all_reduce", seq=5, group="0-1"), world=2)
    assert set(_look(folder).outliers) == {0, 1}


def test_a_rank_alone_in_a_call_stands_out_and_not_the_rest(book: Any, folder: Path) -> None:
    """One rank that makes a call that no other makes is the one that is named."""
    for rank in range(4):
        book(rank, *returned(1, group="0-3"), *([Call(op="all_gather_object", seq=2, group="0-3")] if rank == 2 else [Phase("train")]), world=4)
    assert set(_look(folder).outliers) == {2}


def test_a_rank_behind_is_named_with_both_numbers(book: Any, folder: Path) -> None:
    """A rank that waits in an earlier call of its group than the rest is behind."""
    for rank in range(5):
        book(rank, Call(seq=8 if rank == 1 else 9, group="0-4"), world=5)
    assert _look(folder).outliers == {1: "is in all_reduce 8, behind all_reduce 9, in which 4 ranks wait"}


def test_nobody_stands_out_before_the_rest_has_waited(book: Any, folder: Path) -> None:
    """A rank that is a moment behind in a healthy job is not named."""
    for rank in range(4):
        book(rank, *([Call(seq=4, ago=0.01, group="0-3")] if rank else returned(3, group="0-3")), world=4)
    assert _look(folder).outliers == {}


def test_work_begun_ahead_does_not_make_its_rank_missing(book: Any, folder: Path) -> None:
    """A rank that has issued the call and goes on without waiting is in it as far as its group can see; a wait for older work is where it stands."""
    issued = Call(seq=3, flags=schema.ASYNC, issued=True)
    for rank in range(8):
        book(rank, *returned(2), *([issued, Phase("backward", 7)] if rank == 3 else [Call(seq=3), Phase("backward", 7, open=False)]))
    look = _look(folder)
    assert look.outliers == {}
    book(3, issued._replace(waited=True), issued._replace(seq=4))
    look = _look(folder)
    assert (look.ranks[3].op, look.ranks[3].number, look.ranks[3].waits, look.outliers) == ("all_reduce", 3, True, {})


def test_a_call_inside_a_call_is_not_shown(book: Any, folder: Path) -> None:
    """The job's own call is what a rank is in, not the one that torch makes inside it."""
    book(0, Call(op="broadcast_object_list", seq=2, group="0"), Call(op="broadcast", seq=1, group="0", flags=schema.INNER), world=1)
    assert rows(_look(folder))[0].call == "broadcast_object_list 2"


def test_a_rank_outside_the_backward_pass_of_the_others_stands_out(book: Any, folder: Path) -> None:
    """What DDP reduces is not seen; the rank that has skipped the step is named by its phase."""
    for rank in range(4):
        book(rank, Phase("dataloader" if rank == 1 else "backward", 12), world=4)
    assert _look(folder).outliers == {1: "is not in backward of step 12, in which 3 ranks are"}


def test_a_half_in_the_backward_pass_and_a_half_in_a_call_are_both_named(book: Any, folder: Path) -> None:
    """Of two ranks that part, one in DDP's reduction and one in a call, nothing tells which one is wrong."""
    book(0, *returned(1, group="0-1"), Phase("backward", 4), world=2)
    book(1, Call(op="barrier", seq=2, group="0-1"), world=2)
    assert _look(folder).outliers == {
        0: "is in backward of step 4, which rank 1 does not reach",
        1: "is in barrier 2, not in backward of step 4, in which 1 rank is",
    }


def test_a_process_that_is_gone_or_has_ended_says_so(book: Any, folder: Path) -> None:
    """A pid that another process has now, or none, is gone, unless its log has an end line."""
    end = '{"event":"process.end","phase":"point","ts":"2026-11-22T05:00:01.000000Z","rank":1,"exit_code":%d}'
    book(0, Call(group="0-4"), world=5)
    book(1, Call(group="0-4"), world=5, since=7)
    book(2, Call(group="0-4"), world=5, since=7, lines=[end % 0])
    book(3, Call(group="0-4"), world=5, since=7, lines=[end % 1])
    look = _look(folder)
    assert [each.state for each in look.ranks] == ["running", "gone", "ended", "failed"]
    assert (look.absent, look.over) == ([4], False)
    assert look.outliers[1] == "is gone without an end line: killed, or crashed"
    assert rows(look)[-1].state == "no ledger"


def test_a_rank_that_has_failed_and_hangs_while_it_exits_says_so(book: Any, folder: Path) -> None:
    """A process that still runs and has written its exception has failed; so has one that is gone, whatever its watcher wrote after that."""
    end = '{"event":"process.end","phase":"point","ts":"2026-11-22T05:00:01.000000Z","rank":1,"exit_code":1,"uncaught":true}'
    hangs = '{"event":"hang.suspected","phase":"point","ts":"2026-11-22T05:01:01.000000Z","rank":1,"since":60.0}'
    book(0, Phase("backward", 4), world=3)
    book(1, Call(op="barrier", group="0-2"), world=3, lines=[end, hangs])
    book(2, Call(op="barrier", group="0-2"), world=3, since=7, lines=[end, hangs])
    look = _look(folder)
    assert [each.state for each in look.ranks] == ["running", "failed", "failed"]
    assert look.outliers == {1: "has failed while others run", 2: "has failed while others run"}
    assert not look.over


def test_a_stopped_process_says_so(book: Any, folder: Path) -> None:
    """A rank under SIGSTOP is shown as stopped, and stands out."""
    child = os.fork()
    if not child:
        while True:
            time.sleep(60)
    try:
        book(0, Call(group="0-1"), world=2)
        book(1, *returned(0, group="0-1"), world=2, pid=child)
        os.kill(child, 19)
        os.waitpid(child, os.WUNTRACED)
        look = _look(folder)
        assert look.ranks[1].state == "stopped"
        assert look.outliers == {1: "is stopped, by a signal such as SIGSTOP or by a debugger"}
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


def test_of_a_rank_that_was_started_again_the_latest_counts(book: Any, folder: Path) -> None:
    """Two ledgers of one rank are one row, of the process that was started last."""
    book(0, Call(seq=9, group="0"), world=1, lived=50.0)
    book(0, Call(seq=3, group="0"), world=1, lived=500.0, pid=1, since=1)
    assert [each.number for each in _look(folder).ranks] == [9]


def test_ranks_that_a_smaller_job_has_left_behind_are_not_shown(book: Any, folder: Path) -> None:
    """After a restart with fewer ranks, the number of ranks of the latest process counts."""
    for rank in range(4):
        book(rank, Call(group="0-3"), world=4, since=7, lived=500.0, host="elsewhere")
    for rank in range(2):
        book(rank, Call(group="0-1"), world=2)
    look = _look(folder)
    assert ([each.rank for each in look.ranks], look.absent, look.outliers) == ([0, 1], [], {})


def test_a_rank_without_the_probe_does_not_stand_out(book: Any, folder: Path) -> None:
    """After restore() a rank's ledger ends, so nothing is said about the calls that it is not in."""
    for rank in range(4):
        book(rank, *([Call(seq=3, group="0-3")] if rank else returned(2, group="0-3")), world=4).write(closed_ns=0 if rank else 5)
    look = _look(folder)
    assert (look.ranks[0].state, look.outliers) == ("probe off", {})


def test_the_page_is_in_chinese(book: Any, folder: Path) -> None:
    """The table has Chinese headings, and says in Chinese who stands out, and why."""
    for rank in range(4):
        book(rank, Call(op="broadcast" if rank == 0 else "all_reduce", seq=5, group="0-3"), world=4)
    page = "\n".join(line.text for line in table_lines(_look(folder), "run", 100, say=CHINESE))
    assert "rank 0 在 broadcast 5 中，不在 all_reduce 5 中，有 3 个 rank 等在其中" in page
    assert "，4 个 rank" in page.splitlines()[0]
    assert "已持续" in page.splitlines()[1]
    assert "stands" not in page
