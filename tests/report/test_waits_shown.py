"""A rank that the others wait for is shown in the table, in JSON, on the page, in a trace and by watch; a healthy run shows nothing of it."""

import json
import time
from pathlib import Path
from typing import Any, Dict, List

import pytest

from ddp_probe.judging.judge import Diagnosis, judge
from ddp_probe.reading import ledger_text
from ddp_probe.reading.load_run import from_lines
from ddp_probe.showing import as_json, ranks_table, safe, trace, watch_json, watch_page
from ddp_probe.showing.html import html_page
from ddp_probe.showing.rank_state import rank_states
from ddp_probe.showing.watch.watch_look import LiveView, Look

HOSTS = "\n".join('{"event":"process.start","rank":%d,"world_size":8,"host":"node%d"}' % (rank, rank // 4) for rank in range(8))
EVEN = "ledger 0-7 step x60 dataloader 2 forward 50 backward 48"
LATE = "ledger 0-4,6-7 step x60 dataloader 2 forward 50 backward 48\nledger 5 step x60 dataloader 2 forward 80 backward 18"
WAITS = (
    "ledger 0-4,6-7 all_reduce 16 float32 at /train/t.py:12 takes 19 x40\n"
    "ledger 5 all_reduce 16 float32 at /train/t.py:12 takes 1 x40\nledger 0-7 barrier at /train/t.py:40 takes 300 x2"
)
NODE1 = "ledger 0-3 step x60 dataloader 2 forward 50 backward 48\nledger 4-7 step x60 dataloader 32 forward 50 backward 18"


def _judged(*lines: str) -> Diagnosis:
    return judge(from_lines("\n".join((HOSTS, *lines))))


def _table(diagnosis: Diagnosis) -> List[str]:
    guilty = {rank for finding in diagnosis.findings for rank in finding.ranks}
    return [line.text for line in ranks_table.lines(rank_states(diagnosis.run), guilty, 80)]


def test_the_table_has_a_column_of_waits_only_if_a_rank_is_waited_for() -> None:
    """Within 80 columns: the late rank is marked, the others share a row with what they wait in a step; a healthy run has no such column."""
    head, *rows = _table(_judged(LATE))
    assert "waited" in head
    assert [row for row in rows if row.startswith("> 5 ") and "is late" in row]
    assert [row for row in rows if row.startswith("  0-4, 6-7 ") and "ms a step" in row]
    assert all(safe.width(row) <= 80 for row in (head, *rows))
    assert not [row for row in _table(_judged(EVEN)) if "waited" in row]


def test_a_late_host_is_named_as_the_host() -> None:
    """If all ranks of one of two hosts are late, the verdict names the host, with its ranks and what keeps them; it is a warning."""
    (finding,) = [one for one in _judged(NODE1).findings if one.slug == "one-rank-late"]
    assert finding.verdict.startswith("Host node1 (ranks 4-7) is late: its ranks came last in ")
    assert "waiting for the DataLoader: 32 ms a step, against 2 ms on the others" in finding.verdict
    assert (finding.ranks, finding.severity) == ([4, 5, 6, 7], "warning")
    assert "num_workers" in finding.remedy


def test_one_rank_that_works_while_seven_wait_is_said_with_how_long_they_wait() -> None:
    """Rank 5 works for most of the step: the seven others wait for that part of it."""
    busy = "ledger 0-4,6-7 step x60 forward 10 backward 90\nledger 5 step x60 forward 85 backward 15"
    (finding,) = [one for one in _judged(busy).findings if one.slug == "one-rank-late"]
    assert "which therefore wait for 75 ms of each step (75 %)" in finding.verdict
    assert finding.evidence[0].text.endswith("; ranks 0-4, 6-7 wait")


def test_json_has_the_late_rank_and_the_waits() -> None:
    """`late` is an object with seconds, `waits` has each rank at each line; a healthy run has null and its waits."""
    found = json.loads(as_json.text(_judged(LATE, WAITS)))
    late = found["late"]
    assert (late["ranks"], late["host"], late["part"], late["others"]) == ([5], "", "forward", [0, 1, 2, 3, 4, 6, 7])
    assert (round(late["more"], 2), round(late["waited"], 2), round(late["took"], 1)) == (0.03, 0.03, 0.1)
    inside = {(one["site"]["line"], one["rank"]): (one["calls"], one["seconds"]) for one in found["waits"]}
    assert len(inside) == 16
    assert (inside[(12, 5)], inside[(12, 0)], inside[(40, 3)]) == ((40, 0.04), (40, 0.76), (2, 0.6))
    assert json.loads(as_json.text(_judged(EVEN)))["late"] is None


def test_the_page_has_the_waits_of_ranks_by_line() -> None:
    """The matrix has a row for the late rank, marked, one for the others, and a column for each line; without waits there is no such section."""
    text = html_page.text(_judged(LATE, WAITS))
    section = text[text.index('<section id="waits"') : text.index("</section>", text.index('<section id="waits"'))]
    assert section.count("<tr") == 3  # The first has the titles.
    assert section.count('<tr class="guilty">') == 1
    assert "t.py:12" in section
    assert "t.py:40" in section
    assert "0.76 s" in section
    assert 'title="40 calls, the longest 0.019 s"' in section
    assert '<section id="waits"' not in html_page.text(_judged("ledger 0 barrier at t.py:1"))


def test_a_trace_has_counters_of_steps_and_waits() -> None:
    """Each rank has two counter tracks with one value a step; the parts of a step add up to it."""
    events: List[Dict[str, Any]] = json.loads("".join(trace.chunks(_judged(LATE))))["traceEvents"]
    counters = [event for event in events if event["ph"] == "C"]
    assert {event["name"] for event in counters} == {"step, ms", "waiting, ms"}
    assert len(counters) == 8 * 2 * 60
    assert all(99 < sum(event["args"].values()) < 101 for event in counters if event["name"] == "step, ms")
    times = [event["ts"] for event in counters if event["pid"] == counters[0]["pid"] and event["name"] == "step, ms"]
    assert times == sorted(times)


@pytest.fixture
def look(tmp_path: Path) -> Any:
    """Return a look at ledgers written as text."""

    def make(*lines: str) -> Look:
        for rank, data in ledger_text.written(lines, 8, start=time.time()).items():  # Of the last minute, as "waited" is.
            (tmp_path / ("rank%05d.node1.7.ledger" % rank)).write_bytes(data)
            (tmp_path / ("rank%05d.node1.7.jsonl" % rank)).write_text('{"event":"process.start","rank":%d,"pid":7,"host":"node1"}\n' % rank)
        return LiveView([str(tmp_path)]).look()

    return make


def test_watch_shows_the_rank_that_the_others_wait_for_first(look: Any) -> None:
    """The late rank's row is the first, within 80 columns; the column says who waits how much, and a sentence by how much it is late."""
    found = look(*LATE.splitlines())
    head, first, second, *rest = [line.text for line in watch_page.table_lines(found, "run", 80)][1:]
    assert "waited" in head
    assert first.startswith("> 5 ")
    assert "30%" in second
    assert all(safe.width(text) <= 80 for text in (head, first, second, *rest))
    assert "rank 5 is late: last in 60 of 60 steps, by 30 ms, spent in the forward pass; 7 others wait 30 % of each step" in " ".join(
        text.strip() for text in rest
    )
    shown = {one["rank"]: (one["waited"], bool(one["stands_out"])) for one in json.loads(watch_json.as_json(found, "run"))["ranks"]}
    assert shown[5] == (0.0, True)
    assert abs(shown[0][0] - 0.3) < 0.01
    assert not shown[0][1]


def test_watch_names_nobody_in_a_healthy_run(look: Any) -> None:
    """Ranks that are equally fast do not stand out."""
    assert look(EVEN).outliers == {}
