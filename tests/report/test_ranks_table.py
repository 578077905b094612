"""Equal ranks share a row: the table of a thousand ranks is as short as that of eight."""

import json
from pathlib import Path
from typing import Any, Callable, List

import pytest

from ddp_probe.judging.judge import Diagnosis, judge
from ddp_probe.reading.load_run import from_lines, load
from ddp_probe.showing import as_json, ranks_table
from ddp_probe.showing.html import html_page
from ddp_probe.showing.rank_state import RankEnd, RankState, rank_states

_CELLS = ("gcu:0", "[0]", "0", "wrapped", "ddp.init", "t.py:1", "ended")
_PLAIN = RankState(0, 0, "node1", [0], RankEnd("ended"), *_CELLS)


def _alike(size: int, **own: Any) -> List[RankState]:
    """Ranks that each use their own card."""
    made = [
        _PLAIN._replace(rank=rank, local_rank=rank % 8, devices="gcu:%d" % (rank % 8), device_ids="[%d]" % (rank % 8), card=str(rank % 8))
        for rank in range(size)
    ]
    return [state._replace(**own) for state in made]


def _texts(stand: List[RankState], guilty: Any = (), width: int = 80) -> List[str]:
    return [line.text for line in ranks_table.lines(stand, guilty, width)]


def test_eight_ranks_are_told_by_number() -> None:
    """Eight ranks have a row each, with the devices as they are called."""
    table = ranks_table.rows_of(_alike(8), ())
    assert [row.devices for row in table.rows] == ["gcu:%d" % rank for rank in range(8)]
    assert not table.relative


@pytest.mark.parametrize("size", [64, 1024])
def test_many_ranks_on_their_own_cards_are_one_row(size: int) -> None:
    """Ranks that differ only in using the card of their LOCAL_RANK share one row, which says so."""
    table = ranks_table.rows_of(_alike(size), ())
    assert [(len(row.ranks), row.devices, row.device_ids, row.card) for row in table.rows] == [(size, "gcu:N", "[N]", "N")]
    assert ranks_table.NOTE in _texts(_alike(size))


def test_all_on_one_card_is_told_by_number() -> None:
    """If all ranks use card 0, rank 0 is not shown as using its own card."""
    stand = [each._replace(devices="gcu:0", device_ids="[0]", card="0", site="t.py:%d" % (each.rank or 0)) for each in _alike(64)]
    table = ranks_table.rows_of(stand, (), with_last=False)
    assert [(row.ranks, row.devices, row.card) for row in table.rows] == [(list(range(64)), "gcu:0", "0")]


@pytest.mark.parametrize("size", [8, 64, 1024])
@pytest.mark.parametrize("width", [80, 120])
def test_the_guilty_stand_out_at_any_size(size: int, width: int, many: Callable[..., Path]) -> None:
    """Two failing ranks of many have a row of their own that is marked, within the width and a screen."""
    guilty = {3, size - 2}
    texts = _texts(rank_states(load([str(many(size, guilty))])), guilty, width)
    marked = [text for text in texts if text.startswith("> ")]
    assert any("failed ValueError" in text and "cpu, gcu:" in text for text in marked)
    assert {3, size - 2} == {int(word) for text in marked for word in text[2:].split("  ")[0].split(", ")}
    assert len(texts) <= 16
    assert max(map(len, texts)) <= width


def test_a_narrow_table_keeps_everything(many: Callable[..., Path]) -> None:
    """At 50 columns the rows become a list with the same words."""
    texts = " ".join(_texts(rank_states(load([str(many(64, {3}))])), {3}, 50))
    for word in ("gcu:N", "wrapping", "failed", "ValueError", "03_submodule_left_behind.py:24", "8 hosts"):
        assert word in texts


def test_ranks_without_a_file_have_a_row(many: Callable[..., Path]) -> None:
    """Ranks that left no file are in the table, and nothing is claimed about them."""
    stand = rank_states(load([str(many(16, absent={5, 9}))]))
    assert [(each.rank, each.phase, each.end) for each in stand if each.rank in (5, 9)] == [(5, "", "no file"), (9, "", "no file")]
    assert any(text.startswith("5, 9 ") and text.endswith("no file") for text in _texts(stand))


def test_rows_are_bounded_and_the_guilty_ones_kept() -> None:
    """A thousand ranks that all stand elsewhere leave a bounded table, the guilty rank's row in it and the rest counted."""
    stand = [each._replace(phase="phase %d" % (each.rank or 0)) for each in _alike(1000)]
    table = ranks_table.rows_of(stand, {777})
    assert len(table.rows) == ranks_table.ROWS
    assert table.left_out == 1000 - ranks_table.ROWS
    assert [row.ranks for row in table.rows if row.guilty] == [[777]]
    assert len(_texts(stand, {777})) < 60


@pytest.mark.parametrize(
    ("some", "text"),
    [([], "-"), ([3], "3"), ([0, 1, 2, 5], "0-2, 5"), (list(range(0, 1024, 8)), "0, 8 .. 1016 (128)")],
)
def test_ranks_fit_a_cell(some: List[int], text: str) -> None:
    """Neighbouring ranks become ranges; scattered ranks are shown by the first, the last and their number."""
    assert ranks_table.few(some) == text


def test_hosts_are_in_the_order_of_their_numbers() -> None:
    """Up to three hosts are named, node9 before node10; more are counted."""
    assert ranks_table.hosts(["node10", "node9", "node9", ""]) == "node9, node10"
    assert ranks_table.hosts(["a", "b", "c", "d"]) == "4 hosts"


_START = '{"event":"process.start","rank":0,"local_rank":0,"world_size":1}\n'


def _event(name: str, phase: str = "point", **fields: Any) -> str:
    return json.dumps({"event": name, "phase": phase, "rank": 0, "span": 1, **fields}) + "\n"


def _call(name: str) -> str:
    return _event(name, "begin") + _event(name, "end")


def _child(**fields: Any) -> str:
    told = {"event": "launcher.child", "child_rank": 0, "child_pid": 0, **fields}
    return '{"event":"launcher.start"}\n' + json.dumps(told)


@pytest.mark.parametrize(
    ("log", "phase", "end"),
    [
        ("", "starting", "no end line"),
        (_event("dist.init_process_group", "begin"), "init", "no end line"),
        (_call("dist.init_process_group"), "grouped", "no end line"),
        (_event("ddp.init", "begin") + _event("ddp.init", "error", failure={"type": "ValueError"}), "wrapping", "no end line"),
        (_call("ddp.init"), "wrapped", "no end line"),
        (_call("ddp.init") + _call("checkpoint.load"), "wrapped", "no end line"),
        (_event("checkpoint.load", "begin"), "loading", "no end line"),
        (_event("checkpoint.save", "begin"), "saving", "no end line"),
        (_call("dist.destroy_process_group"), "closed", "no end line"),
        (_event("process.end"), "starting", "ended"),
        (_event("process.end", uncaught=True, failure={"type": "a.b.OddError"}), "starting", "failed OddError"),
        (_event("process.end", exit_code=7), "starting", "exit 7"),
        (_child(exit_code=-9, signal="SIGKILL"), "starting", "killed SIGKILL"),
        (_child(exit_code=-15, signal="SIGTERM"), "starting", "stopped SIGTERM"),
        (_child(exit_code=3), "starting", "exit 3"),
        (_child(exit_code=0), "starting", "ended"),
    ],
)
def test_phase_and_end_come_from_the_events(log: str, phase: str, end: str, told: Callable[[str], Diagnosis]) -> None:
    """How far a rank came is told by the calls it made, how it ended by itself and by its launcher."""
    stand = rank_states(told(_START + log).run)
    assert [(each.phase, each.end) for each in stand] == [(phase, end)]


def test_its_own_exception_counts_more_than_the_signal(told: Callable[[str], Diagnosis]) -> None:
    """A rank that failed and was then stopped by its launcher has failed."""
    log = _START + _event("process.end", uncaught=True, failure={"type": "ValueError"})
    stand = rank_states(told(log + _child(exit_code=-15, signal="SIGTERM")).run)
    assert [each.end for each in stand] == ["failed ValueError"]


def test_the_one_visible_card_is_named(recorded: Callable[[str], Diagnosis]) -> None:
    """If a process sees only one card, the visible card is shown next to its own number."""
    stand = rank_states(recorded("05_same_card_visible_to_all").run)
    assert {each.card for each in stand} == {"0 (sees 3)"}


def test_a_host_of_any_name_is_sorted() -> None:
    """Host names with digits that are not decimal, such as a superscript, are listed like others."""
    assert sorted(ranks_table.hosts(["node10", "²", "node9"]).split(", ")) == ["node10", "node9", "²"]


_HANGS = """
{"event":"process.start","rank":0,"world_size":1}
{"event":"dist.init_process_group","phase":"begin","rank":0,"span":1,"site":{"file":"/train/t.py","line":5}}
{"event":"dist.init_process_group","phase":"end","rank":0,"span":1}
{"event":"hang.suspected","rank":0,"since":60}
{"event":"stacks","rank":0,"request":1}
{"event":"hang.over","rank":0,"lasted":70}
{"event":"launcher.hang","rank":0,"since":60}
{"event":"launcher.resumed","rank":0,"lasted":70}
"""


@pytest.mark.parametrize(
    ("ledger", "last", "site"),
    [
        ("", "dist.init_process_group", "t.py:5"),
        ("ledger 0 init_process_group at /train/t.py:5", "dist.init_process_group", "t.py:5"),
        ("ledger 0 all_reduce 16 float32 at /train/t.py:12 open", "in all_reduce", "t.py:12"),
        ("ledger 0 all_reduce 16 float32 at /train/t.py:12", "all_reduce", "t.py:12"),
        ("ledger 0 all_reduce 16 float32 at /train/t.py:12 raised", "all_reduce failed", "t.py:12"),
    ],
)
def test_the_last_event_is_the_jobs(ledger: str, last: str, site: str) -> None:
    """What the watchers write while a job hangs is not what it did last; a later call in the ledger is."""
    (state,) = rank_states(from_lines(_HANGS + ledger))
    assert (state.last, state.site) == (last, site)


def test_the_memory_peak_is_a_column_if_it_tells_ranks_apart() -> None:
    """A rank that has held far more than the others gives each its peak; ranks that have held about the same have no such column."""
    line = (
        '{"event":"device.state","rank":%d,"when":"end","current":"gcu:%d","devices":[{"device":"gcu:%d","allocated_peak":%d}]}\n'
        '{"event":"process.end","rank":%d,"exit_code":0}\n'
    )
    for most, told in ((1 << 30, ["", "", ""]), (4 << 30, ["1.0 GiB", "1.0 GiB", "4.0 GiB"])):
        run = from_lines("".join(line % (rank, rank, rank, most if rank == 2 else 1 << 30, rank) for rank in range(3)))
        assert [state.memory for state in rank_states(run)] == told
        assert any("memory peak" in text for text in _texts(rank_states(run))) is bool(told[0])


_HOSTS = """
{"event":"launcher.start","launcher":"torchrun","host":"node1","pid":1}
{"event":"process.start","rank":0,"world_size":3,"host":"node1","pid":100}
{"event":"process.start","rank":1,"world_size":3,"host":"node1","pid":101}
{"event":"process.start","rank":2,"world_size":3,"host":"node2","pid":102}
{"event":"device.state","rank":0,"host":"node1","pid":100,"when":"end","current":"gcu:0","devices":[{"device":"gcu:0","allocated_peak":9000000000}]}
{"event":"device.state","rank":1,"host":"node1","pid":101,"when":"end","current":"gcu:1","devices":[{"device":"gcu:1","allocated_peak":9000000001}]}
{"event":"device.state","rank":2,"host":"node2","pid":102,"when":"end","current":"gcu:0","system":%s}
{"event":"cards.state","host":"node1","pid":1,"tool":"nvidia-smi","looks":9,"cards":[{"index":0,"memory_total":%d},{"index":1,"memory_total":%d}]}
{"event":"process.end","rank":0,"host":"node1","pid":100,"exit_code":0}
{"event":"process.end","rank":1,"host":"node1","pid":101,"exit_code":0}
{"event":"process.end","rank":2,"host":"node2","pid":102,"exit_code":0}
"""
_FULL = '{"memory_taken":990000000,"memory_limit":1073741824,"shm_free":4194304,"shm_size":67108864}'
_EMPTY = '{"memory_taken":50000000,"memory_limit":1073741824,"shm_free":64000000,"shm_size":67108864}'


@pytest.mark.parametrize(
    ("system", "cards", "told"),
    [
        (_FULL, (2 << 34, 9 << 30), ["", "card 93 % of 9.0 GiB", "host 92 % of 1.0 GiB, /dev/shm 93 % of 64 MiB"]),
        (_EMPTY, (2 << 34, 2 << 34), ["", "", ""]),
        (_EMPTY, (0, 0), ["", "", ""]),
    ],
)
def test_a_limit_that_is_near_is_a_column(system: str, cards: Any, told: List[str]) -> None:
    """Who has nearly used up a card whose size a tool tells, a control group or /dev/shm has that in the table, the page and JSON; nobody else."""
    run = from_lines(_HOSTS % (system, *cards))
    states = rank_states(run)
    assert [state.near for state in states] == told
    assert any("nearly full" in text for text in _texts(states, width=200)) is any(told)
    diagnosis = judge(run)
    assert [each["near"] for each in json.loads(as_json.text(diagnosis))["ranks"]] == told
    text = html_page.text(diagnosis)
    assert ("Nearly full" in text) is any(told)
    assert all(cell in text for cell in told)
