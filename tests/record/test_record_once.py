"""Ranks of one host that warn alike say it once on stderr; each has the warning in its own file."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, List

import pytest

from ddp_probe.shared import schema
from ddp_probe.traced.record import recorder

_NOTE = " (said once for all ranks of this host that see the same)"
_TEXT = "rank %(rank)d at train.py:317: the parameters are on cpu and device_ids is [%(rank)d]"


def _said(folder: Any, text: str, rank: int, **envelope: Any) -> str:
    own = {"rank": rank, "local_rank": rank, "world_size": 8, "host": "node1"}
    return recorder.line_said_once(text % own, str(folder), {**own, **envelope})


def test_the_first_rank_to_come_says_it_for_all(tmp_path: Any) -> None:
    """Of eight ranks whose texts differ in their own numbers alone one speaks, and says that it speaks for others; another host has its own."""
    told = [_said(tmp_path, _TEXT, rank) for rank in (3, 0, 1, 2, 4, 5, 6, 7)]
    assert told[0] == "rank 3" + _NOTE + " at train.py:317: the parameters are on cpu and device_ids is [3]"
    assert told[1:] == [""] * 7
    assert _said(tmp_path, _TEXT, 3, host="node2") == told[0]


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0)])
def test_the_same_number_on_each_rank_is_the_same(tmp_path: Any, order: Any) -> None:
    """Where all ranks see device_ids [0], the rank whose own number is 0 is one of them."""
    assert [bool(_said(tmp_path, "rank %(rank)d: device_ids is [0]", rank)) for rank in order] == [True, False, False]


def test_a_silent_rank_takes_no_words_from_others(tmp_path: Any) -> None:
    """Rank 2 speaks for rank 0, each with its own number; the words of rank 0 are still to be said by a rank that has another number."""
    own, other = "rank %(rank)d: device_ids is [%(rank)d]", "rank %(rank)d: device_ids is [0]"
    told = [bool(_said(tmp_path, text, rank)) for text, rank in ((own, 2), (own, 0), (other, 3), (other, 4), (own, 1))]
    assert told == [True, False, True, False, False]


def test_a_number_of_ones_own_is_not_a_number_of_all(tmp_path: Any) -> None:
    """Rank 1 says [0] and rank 0 sees just that; rank 5, which sees its own number, has something else to say."""
    own, other = "rank %(rank)d: device_ids is [%(rank)d]", "rank %(rank)d: device_ids is [0]"
    assert [bool(_said(tmp_path, text, rank)) for text, rank in ((other, 1), (own, 0), (own, 5), (own, 6))] == [True, False, True, False]


def test_what_one_rank_alone_sees_is_said(tmp_path: Any) -> None:
    """A text that differs in anything but the rank's own number is said, whoever has spoken before."""
    assert _said(tmp_path, "rank %(rank)d: on cpu", 0)
    assert _said(tmp_path, "rank %(rank)d: on gcu:5", 3)
    assert _said(tmp_path, "rank %(rank)d: on gcu:5", 2) == ""
    assert _said(tmp_path, "rank %(rank)d: on gcu:%(rank)d", 6)


def test_a_number_that_is_not_the_ranks_own_is_left_alone(tmp_path: Any) -> None:
    """A parameter's name or a line's number that happens to hold the rank's number makes no difference between ranks."""
    text = "rank %(rank)d at train.py:1: 1.weight of block 0.5 is not on gcu:%(rank)d of node1"
    assert [bool(_said(tmp_path, text, rank)) for rank in (0, 1, 2)] == [True, False, False]
    assert _said(tmp_path, text.replace("py:1", "py:2"), 2)


@pytest.mark.parametrize("place", ["/data/exp-1/0/train.py:2:", "<stdin>:1:", "<string>:0:"])
def test_the_numbers_of_a_place_are_no_ranks_numbers(tmp_path: Any, place: str) -> None:
    """A folder of the run or of the program may be named 0, or exp-1; all ranks see that one."""
    text = "rank %%(rank)d at %s the parameters are on cpu:%%(rank)d. Read on: python -m ddp_probe report /tmp/runs-2/0" % place
    assert [bool(_said(tmp_path, text, rank)) for rank in (0, 1, 2)] == [True, False, False]


def test_ranks_that_are_started_again_say_it_again(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a restart by the launcher the first rank speaks once more."""
    told = []
    for restart in ("0", "0", "1", "1"):
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", restart)
        told.append(bool(_said(tmp_path, _TEXT, 0)))
    assert told == [True, False, True, False]


def test_each_log_of_its_own_has_the_line(tmp_path: Any) -> None:
    """Ranks whose stderr goes to files of their own speak in each of them, and one that writes to /dev/null takes the line from nobody."""
    kept = os.dup(2)
    told: List[bool] = []
    try:
        for place in (os.devnull, tmp_path / "a.log", tmp_path / "a.log", tmp_path / "b.log"):
            fd = os.open(str(place), os.O_WRONLY | os.O_CREAT)
            os.dup2(fd, 2)
            os.close(fd)
            told.append(bool(_said(tmp_path, _TEXT, len(told))))
    finally:
        os.dup2(kept, 2)
        os.close(kept)
    assert told == [True, True, False, True]


def test_in_doubt_it_is_said(tmp_path: Any) -> None:
    """A process without a rank, one that is alone, and one that cannot write say what they have to say, in their plain words."""
    assert [_said(tmp_path, "text", 0, world_size=size) for size in (1, 1, None)] == ["text"] * 3
    assert [recorder.line_said_once("text", str(tmp_path), {"rank": None, "host": "node1"}) for _ in range(2)] == ["text"] * 2
    assert not (tmp_path / "said").exists()
    (tmp_path / "said").write_text("no folder")
    assert [_said(tmp_path, "text", rank) for rank in (0, 1)] == ["text"] * 2


def test_the_rank_that_is_silent_has_it_in_its_file(make: Callable[..., Any], read_events: Callable[..., Any], capfd: Any) -> None:
    """A rank that leaves the line to another one writes its event all the same; one that is told to be silent does not take the line."""
    recorders = [make(echo=echo) for echo in ("off", "warn", "warn")]
    for made in recorders:
        made.point(schema.SetDevice())
        made.warn("rank 3: parameters are on cpu")
    assert capfd.readouterr().err == "ddp_probe: rank 3%s: parameters are on cpu\n" % _NOTE
    for made in recorders:
        assert [event["text"] for event in read_events(made.path) if event["event"] == "probe.warning"] == ["rank 3: parameters are on cpu"]


@pytest.mark.parametrize("text", [_TEXT, "rank %(rank)d: device_ids is [0]"])
def test_of_ranks_that_come_at_the_same_moment_one_speaks(tmp_path: Any, text: str) -> None:
    """However eight ranks meet, one of them says it."""
    for meeting in range(20):
        door = threading.Barrier(8)

        def come(rank: int, meeting: int = meeting, door: threading.Barrier = door) -> bool:
            door.wait()
            return bool(_said(tmp_path, text, rank, host="node%d" % meeting))

        with ThreadPoolExecutor(8) as ranks:
            assert sum(ranks.map(come, range(8))) == 1
