"""The stacks of many ranks are one tree, the same in whichever order the ranks come."""

import faulthandler
import random
import threading
from pathlib import Path
from typing import Any, List, Sequence

from ddp_probe.reading import rank_stacks
from ddp_probe.shared.schema import Site, ThreadStack
from ddp_probe.showing import stack_page
from ddp_probe.showing.language import CHINESE
from ddp_probe.showing.watch.ask import Collected, Silence
from ddp_probe.wording.text import say
from ddp_probe.wording.words import ONE

_LIBRARY = "/env/lib/python3.11/site-packages/torch/distributed/"
_START = Site("/usr/lib/python3.11/runpy.py", 9, "_run_code")
_MAIN, _EPOCH = Site("/job/train.py", 40, "main"), Site("/job/train.py", 31, "epoch")
_REDUCE = (Site(_LIBRARY + "c10d_logger.py", 83, "wrapper"), Site(_LIBRARY + "distributed_c10d.py", 2806, "all_reduce"))


def _stack(*frames: Site) -> ThreadStack:
    return ThreadStack("MainThread", True, list(frames))


def _lines(ranks: Sequence[Any]) -> List[str]:
    found = [rank_stacks.RankStacks(rank, [stack], 0.0, rank_stacks.ANSWER) for rank, stack in ranks]
    return [line.text for line in stack_page.lines(Collected(found, {}), 80, all_threads=False)]


def test_a_thousand_ranks_are_a_few_lines() -> None:
    """1 024 ranks of which two stand elsewhere are one path and three branches, each with its ranks."""
    ranks = [(rank, _stack(_START, _MAIN, _EPOCH, *_REDUCE)) for rank in range(1024) if rank not in (5, 700)]
    ranks += [
        (5, _stack(_START, _MAIN, _EPOCH, Site("/job/model.py", 7, "loss"))),
        (700, _stack(_START, _MAIN, Site("/job/train.py", 90, "validate"))),
    ]
    assert _lines(ranks) == [
        "ranks 0-1023 (1024)",
        "  /job/train.py:40 main",
        "  ranks 0-699, 701-1023 (1023)",
        "    /job/train.py:31 epoch",
        "    ranks 0-4, 6-699, 701-1023 (1022)",
        "      torch/distributed/distributed_c10d.py:2806 all_reduce (2 library lines)",
        "    rank 5",
        "      /job/model.py:7 loss",
        "  rank 700",
        "    /job/train.py:90 validate",
    ]


def test_the_order_of_the_ranks_changes_nothing() -> None:
    """Whatever the order in which random stacks are added, the printed tree is the same."""
    draw = random.Random(11)
    sites = [Site("/job/f%d.py" % number, number, "f") for number in range(1, 6)] + list(_REDUCE)
    ranks = [(rank, _stack(*(draw.choice(sites) for _ in range(draw.randrange(1, 5))))) for rank in range(60)]
    first = _lines(ranks)
    for _ in range(20):
        draw.shuffle(ranks)
        assert _lines(ranks) == first
    root = rank_stacks.tree(ranks)
    for branch in root.branches:
        assert branch.ranks <= root.ranks


def test_every_rank_is_at_the_end_of_one_path() -> None:
    """The ranks that end at the branches of the tree are all ranks, each once."""
    draw = random.Random(5)
    sites = [Site("/job/f%d.py" % number, number, "f") for number in range(1, 4)]
    root = rank_stacks.tree((rank, _stack(*(draw.choice(sites) for _ in range(draw.randrange(1, 4))))) for rank in range(50))

    def ends(branch: rank_stacks.Branch) -> List[int]:
        return branch.ends_here + [rank for each in branch.branches for rank in ends(each)]

    assert sorted(ends(root)) == list(range(50))


def test_lines_of_the_job_are_bold_and_libraries_are_one_line() -> None:
    """Library lines between lines of the job are folded; what starts the program is left out; a stack of libraries alone is still shown."""
    steps = rank_stacks.steps([_START, _MAIN, *_REDUCE, _EPOCH])
    assert [(step.own, step.folded) for step in steps] == [(True, 0), (False, 2), (True, 0)]
    assert [(step.own, step.folded) for step in rank_stacks.steps([_START])] == [(False, 1)]
    found = [rank_stacks.RankStacks(0, [_stack(_START, _MAIN, *_REDUCE)], 0.0, rank_stacks.ANSWER)]
    page = list(stack_page.lines(Collected(found, {}), 80, all_threads=False))
    assert [line.style for line in page] == ["strong", "strong", ""]


def test_a_library_that_waits_in_the_standard_library_is_named() -> None:
    """The innermost line of an installed library stands before the one of the standard library that it waits in."""
    loader, select = (
        Site("/env/lib/python3.11/site-packages/torch/utils/data/dataloader.py", 630, "_next_data"),
        Site("/usr/lib/python3.11/selectors.py", 415, "select"),
    )
    assert _lines([(0, _stack(_MAIN, _REDUCE[0], loader, select))])[2:] == [
        "  torch/utils/data/dataloader.py:630 _next_data ... selectors.py:415 select (3 library lines)"
    ]


def test_other_threads_are_grouped_by_name() -> None:
    """With --threads, threads whose names differ in a number alone are one tree."""
    wait = [Site("/usr/lib/python3.11/threading.py", 320, "wait")]
    found = [
        rank_stacks.RankStacks(rank, [_stack(_MAIN), ThreadStack("Thread-%d (pin)" % (rank + 3), False, wait)], 0.0, rank_stacks.ANSWER)
        for rank in range(3)
    ]
    page = [line.text for line in stack_page.lines(Collected(found, {}), 80, all_threads=True)]
    assert page[2:] == ["", "thread Thread-N (pin), ranks 0-2 (3)", "  threading.py:320 wait"]


def _stopped(pid: int) -> Silence:
    then = say("'kill -CONT {pid}' there lets it go on; then ask again.", pid=pid)
    where = say("process {pid} on {host}", pid=pid, host="node1")
    return Silence(say("{they:is|are} stopped", they=ONE), then, where)


def test_ranks_without_an_answer_share_a_sentence() -> None:
    """Equal reasons are one sentence with what to do next; a process is named if it is the only one."""
    one = {3: _stopped(77)}
    assert [line.text for line in stack_page.lines(Collected([], one), 80, all_threads=False)] == [
        "rank 3 is stopped: process 77 on node1.",
        "  next: 'kill -CONT 77' there lets it go on; then ask again.",
    ]
    many = {rank: _stopped(rank) for rank in range(9)}
    assert [line.text for line in stack_page.lines(Collected([], many), 80, all_threads=False)] == [
        "ranks 0-8 are stopped.",
        "  next: 'kill -CONT PID' there lets it go on; then ask again.",
    ]


def test_folded_lines_count_equal_stacks() -> None:
    """Each different stack is one line, outermost frame first, with its count last; separators in names are replaced."""
    odd = Site("/job/a;b.py", 1, "f\nx")
    assert rank_stacks.folded([_stack(_MAIN, _EPOCH), _stack(_MAIN, _EPOCH), _stack(_MAIN, odd), _stack()]) == [
        "(no Python frame) 1",
        "main (/job/train.py:40);epoch (/job/train.py:31) 2",
        "main (/job/train.py:40);f x (/job/a,b.py:1) 1",
    ]


def test_the_text_of_faulthandler_is_parsed(tmp_path: Path) -> None:
    """What this Python's faulthandler writes gives each thread, outermost frame first, with the main one first."""
    ready, over = threading.Event(), threading.Event()

    def waits() -> None:
        ready.set()
        over.wait(60)

    thread = threading.Thread(target=waits)
    thread.start()
    ready.wait(60)
    path = tmp_path / "text"
    with path.open("w") as file:
        faulthandler.dump_traceback(file, all_threads=True)
    over.set()
    thread.join()
    found = rank_stacks.threads(path.read_text(encoding="utf-8"))
    assert [thread.main for thread in found] == [True] + [False] * (len(found) - 1)
    assert found[0].frames[-1].function == "test_the_text_of_faulthandler_is_parsed"
    assert any("waits" in [frame.function for frame in each.frames] for each in found[1:])


def test_the_last_dump_of_several_counts() -> None:
    """Each time-out begins a dump; a last one without frames does not hide the one before; other text is skipped."""
    text = (
        "Timeout (0:00:05)!\nThread 0x01 (most recent call first):\n"
        '  File "/job/old.py", line 1 in f\n\nTimeout (0:00:05)!\nThread 0x02 [pin] (most recent call first):\n  File "/job/pin.py", line 2 in g\n\n'
        'Thread 0x01 (most recent call first):\n  File "/job/new.py", line 3 in inner\n  File "/job/new.py", line ??? in <module>\n  ...\n'
        "Timeout (0:00:05)!\nThread 0x01 (most recent call first):\n  <no Python frame>\nnoise\n"
    )
    main, other = rank_stacks.threads(text)
    assert (main.main, [(frame.line, frame.function) for frame in main.frames]) == (True, [(0, "<module>"), (3, "inner")])
    assert (other.name, other.main, other.frames) == ("pin", False, [Site("/job/pin.py", 2, "g")])
    assert rank_stacks.threads("") == []


def test_why_ranks_gave_no_stacks_is_told_in_chinese() -> None:
    """A reader of Chinese is told in Chinese who gave no stacks, and what to do next."""
    page = [line.text for line in stack_page.lines(Collected([], {3: _stopped(77)}), 80, all_threads=False, say=CHINESE)]
    assert page == ["rank 3 已被暂停：node1 上的进程 77。", "  下一步：在那里用 'kill -CONT 77' 让它继续，然后再问一次。"]
