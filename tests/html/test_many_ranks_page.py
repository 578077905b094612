"""The page of 1 024 ranks: small, folded, and with every rank that a finding names."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

import pytest
from page_reader import PageReader

from ddp_probe.judging.judge import judge
from ddp_probe.reading.load_run import load
from ddp_probe.showing.html import html_page, lanes, placed_spans, waits
from ddp_probe.showing.html.page_words import WORDS
from ddp_probe.showing.timeline import HANG, Span

_MOST = 5_000_000


@pytest.fixture(scope="module")
def made_of_many(repo: Path, clean_env: Callable[..., Dict[str, str]], tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the page of 1 024 ranks, of which 700 does not come to a collective."""
    command = [sys.executable, repo / "scripts" / "simulate_ranks", "1024", "--events", "24", "--records", "40", "--fault", "absent:700"]
    out = ["--out", tmp_path_factory.mktemp("many")]
    done = subprocess.run([*map(str, command), *map(str, out)], env=clean_env(), capture_output=True, text=True, timeout=120, check=True)
    return html_page.text(judge(load([done.stdout.strip()])))


def test_it_is_small_and_whole(made_of_many: str) -> None:
    """It stays under 5 MB, its tags are balanced, and the guilty rank and its line are in it."""
    assert len(made_of_many.encode("utf-8")) < _MOST
    read = PageReader(made_of_many)
    assert read.faults == []
    assert "rank 700" in read.text
    assert {link[1:] for link in read.all("href")} <= set(read.all("id"))


def test_equal_ranks_share_a_row_and_few_have_a_lane(made_of_many: str) -> None:
    """Two rows stand for all ranks; the lane of the guilty rank comes first, and one lane that opens stands for the 22 that end alike."""
    read = PageReader(made_of_many)
    assert "0-699, 701-1023" in read.text
    assert "24 of 1024 ranks" in read.text
    rows = [attributes for tag, attributes in read.elements if tag == "div" and attributes.get("class", "").split()[:1] == ["lane"]]
    assert len(rows) == 26  # One is the axis, and one stands for 22, which lie in it.
    assert ["guilty" in attributes["class"] for attributes in rows] == [True, *[False] * 25]
    alike = [attributes for tag, attributes in read.elements if tag == "details" and attributes.get("class") == "alike"]
    assert [attributes.get("open", "closed") for attributes in alike] == ["closed"]
    assert "22 ranks that end alike: 1-22" in [attributes.get("aria-label") for _, attributes in read.elements]
    assert WORDS["lanes_keys"] in read.text
    assert "open" in [name for tag, attributes in read.elements if tag == "details" and not attributes.get("class") for name in attributes]


def test_ranks_that_wait_alike_share_a_row_and_groups_share_a_line(made_of_many: str) -> None:
    """The table of waits has one column a line, though each pair of ranks has a group of its own, and a few rows for all ranks."""
    section = made_of_many.partition('<section id="waits"')[2].partition("</section>")[0]
    columns = re.findall(r'<th scope="col" class="device" title="([^"]+)"', section)
    assert len(columns) == len(set(columns)) > 2
    rows = re.findall(r'<th scope="row">([^<]+)', section)
    assert 1 <= len(rows) <= 8
    assert "more ranks are omitted" not in section


@pytest.mark.parametrize(("inside", "shades"), [([1.0, 1.1], [0, 0]), ([0.2, 2.0], [0, 4]), ([None, 1.0, 3.0], [0, 1, 4])])
def test_only_times_that_differ_are_marked(inside: List[Optional[float]], shades: List[int]) -> None:
    """Ranks that have waited about as long as the others are not shaded."""
    assert [cell.shade for cell in waits._column(inside, list(map(str, inside)))] == shades


def _span(begin: float, end: float, **other: Any) -> Span:
    return Span(begin, end, True, "collective", "barrier", None, None, False, False)._replace(**other)


def test_short_calls_become_one_bar_and_others_stay() -> None:
    """Of twenty thousand calls some hundred bars are left, and what failed, never ended or is guilty is one of its own."""
    spans = [_span(number, number + 0.5) for number in range(20_000)]
    special = [_span(7.6, 7.7, failed=True), _span(9_000.6, 20_000.0, ended=False), _span(9.6, 9.7, guilty=True)]
    found = placed_spans.placed([*spans, *special], 200, 20_000.0)
    assert len(found) <= 210
    assert sum(one.size for one in found) == len(spans) + len(special)
    assert {one.span for one in found if one.size == 1} >= set(special)


def test_a_call_lies_below_the_one_that_it_is_in() -> None:
    """What begins while another one lasts is below it, a time in which nothing moved is below both, and what follows is in the first row again."""
    outer, inner, after, still = _span(0, 10), _span(2, 3), _span(11, 12), _span(1, 9, kind=HANG)
    found = {one.span: one.row for one in placed_spans.placed([outer, inner, after, still], 10, 12.0)}
    assert (found[outer], found[inner], found[still], found[after]) == (0, 1, 2, 0)


@pytest.mark.parametrize(
    ("length", "texts"),
    [(7.44, ["0 s", "1 s", "2 s"]), (0.004, ["0 s", "0.0005 s", "0.001 s"]), (1825.0, ["0 s", "500 s", "1000 s"]), (0.0, []), (float("inf"), [])],
)
def test_times_on_the_axis_are_round(length: float, texts: Any) -> None:
    """At most nine times are on the axis, at steps of 1, 2 or 5."""
    found = lanes.axis_ticks(length, length)
    assert [tick.text for tick in found][:3] == texts
    assert len(found) <= 9


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.0000214, "21 us"), (0.0214, "21.4 ms"), (7.44, "7.44 s"), (121.0, "2 min 01 s"), (7260.0, "2 h 01 min"), (-1.5, "-1.5 s")],
)
def test_a_length_has_the_unit_that_fits(number: float, text: str) -> None:
    """Microseconds to hours are shown with three digits or two units."""
    assert lanes.seconds(number) == text
