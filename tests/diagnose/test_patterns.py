"""Each pattern of each rule takes time that grows with the text and no faster, whatever the text is."""

import re
import time
from typing import Any, Iterator, List

import pytest
from growers import growers

from ddp_probe.judging.printed import Searchable
from ddp_probe.judging.rules import modules, rule_of
from ddp_probe.reading import text

SHORT, LONG = 1 << 14, 1 << 16
NOTICEABLE = 0.1  # Seconds for 64 KB; below it, what is measured is the machine.


def _rules() -> Iterator[Any]:
    for module in modules():
        if rule_of(module).printed:
            yield pytest.param(rule_of(module), id=rule_of(module).slug)


def _cpu(work: Any) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


@pytest.mark.sample(6, few=3)
@pytest.mark.parametrize("rule", list(_rules()))
def test_time_grows_with_the_text(rule: Any) -> None:
    """Four times the text takes no more than about four times as long, for every text that is made of a pattern's own beginnings."""
    slow: List[str] = []
    for pattern in {each for printed in rule.printed for each in (printed.pattern, printed.beside, printed.unless, printed.nowhere) if each}:
        searchable = Searchable(pattern)
        for grower in growers(pattern, re.DOTALL):
            short, long = ((grower * (size // len(grower) + 1))[:size] for size in (SHORT, LONG))
            after = _cpu(lambda searchable=searchable, long=long: searchable.search(long))
            if after > NOTICEABLE and after > 10 * min(_cpu(lambda searchable=searchable, short=short: searchable.search(short)) for _ in range(3)):
                slow.append("%r by %r: %.2f s" % (pattern[:80], grower[:60], after))
    assert slow == []


@pytest.mark.parametrize(
    "line",
    [
        " ",
        "  + Exception Group Traceback (most recent call last):\n" + "  | " * 600 + "\n",
        "1_1-" * 30 + " ",
        "a-1_" * 1000 + "1111 \n",
        "RuntimeError: " + "Abcdefgh" * 500 + "\n",
        "RuntimeErrorValueError: aError.Error",
        "Assertion x ",
        "error_error_",
        "srun: error: slurmstepd: ",
        "\x1b]x",
        '  File "a", line 1, in f' + " " * 500 + "x ",
        "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, ",
        "│/a:1 in f │ ",
        "----> 1 ",
        "a.b.c.",
        "Traceback (most recent call last): ",
    ],
    ids=lambda line: repr(line[:24]),
)
def test_reading_takes_time_by_the_length(line: str) -> None:
    """Four times a log takes no more than about four times as long to read, as lines and as one line without end."""
    for log in (line, line + "\n"):
        short, long = ([each.encode("utf-8") for each in (log * (size // len(log) + 1)).splitlines(keepends=True)] for size in (SHORT, LONG))
        after = _cpu(lambda long=long: text.read(long, "train.log"))
        before = min(_cpu(lambda short=short: text.read(short, "train.log")) for _ in range(3)) if after > 5 * NOTICEABLE else after
        assert after <= 12 * before, log[:60]


LOG = "WARN x\nrank 1 a failed b failed c\nrank 2 done\nport: 12 (errno: 98)\nport: 13 (errno: 99)\n"


def _found(match: Any) -> Any:
    """Return where a pattern begins and what its groups hold."""
    return None if match is None else (match.start(), match.groupdict())


@pytest.mark.parametrize(
    "pattern",
    [
        r"rank (?P<rank>\d+)",
        r"(?m:^)(?!rank)port: (?P<port>\d+) \((?P<what>\w+): (?P<code>\d+)\)",
        r"\A(?!.*rank 3)(?=.*rank (?P<rank>\d))",
        r"rank (?P<rank>\d)(?P<gap> a)? .{0,40}?rank (?!(?P=rank))\d",
        r"rank (?P<rank>\d) (?P<how>done|failed)|port: (?P<port>\d+)",
        r"rank (?P<rank>3)|errno: (?P<code>\d+)",
        r"rank 3",
    ],
)
def test_a_pattern_is_searched_as_python_would(pattern: str) -> None:
    """Alternatives, groups and anchors are found where re finds them, and its groups hold the same."""
    assert _found(Searchable(pattern).search(LOG)) == _found(re.search(pattern, LOG, re.DOTALL))


@pytest.mark.parametrize(
    "pattern",
    [
        r"rank (?P<rank>\d+)[^\n]*?failed (?P<after>\w)",
        r"rank (?P<rank>\d+)[^\n]*?done|port: (?P<port>\d+)",
        r"WARN.*?port: (?P<port>\d+)[^\n]*?errno: (?P<code>\d+)",
        r"(?m:^)(?!rank)[^\n]*?errno: (?P<code>\d+)",
        r"failed (?P<first>\w).*?rank (?P<rank>\d+).*?port: (?P<port>\d+)",
        r"done[^\n]*?port",
        r"rank 2.*?rank 1",
    ],
)
def test_a_gap_is_as_short_as_it_can_be(pattern: str) -> None:
    """What is found is what re finds if no gap reaches further than it must, whether or not the pattern asks for that."""
    expected = _found(re.search(pattern, LOG, re.DOTALL))
    assert [_found(Searchable(written).search(LOG)) for written in (pattern, pattern.replace("*?", "*"))] == [expected, expected]


@pytest.mark.parametrize(("part", "text", "most"), [(r"\s+", " ", 60), (r"\d+", "7", 30), (r"(?:ab)+", "ab", 20), (r"[^x]+", "-", 300)])
def test_a_repetition_has_an_end(part: str, text: str, most: int) -> None:
    """A repetition that is not a gap matches as often as the page of Printed says, and no more."""
    pattern = Searchable("<%s>" % part)
    assert [pattern.search("<%s>" % (text * times)) is not None for times in (1, most, most + 1)] == [True, True, False]
