"""A ledger outlives its process, however that ends."""

import random
import select
import subprocess
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from schedule import seed

from ddp_probe.reading import whole_ledger
from ddp_probe.shared.ledger_schema import RECORDS

pytestmark = pytest.mark.slow
_PROGRAM = Path(__file__).parent / "programs" / "dies_at_random.py"
_FATES = ("SIGKILL", "SIGKILL", "SIGSEGV", "SIGABRT", "segv", "abort")


@pytest.fixture
def dying(clean_env: Callable[..., Dict[str, str]], python: str) -> Any:
    """A program that forks a writer for each line it is given."""
    env = clean_env(PYTHONPATH=str(Path(whole_ledger.__file__).parents[2]), PYTHONFAULTHANDLER=None)
    with subprocess.Popen(
        [python, str(_PROGRAM)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        yield process
        process.stdin.close()


def test_each_death_leaves_a_readable_ledger(dying: Any, tmp_path: Path, whole: bool) -> None:
    """After SIGKILL, SIGSEGV and SIGABRT at random moments the file can be read, holds what was begun last, and shows nothing half written."""
    draw = random.Random(seed())
    assert dying.stdout.readline() == "ready\n"
    in_the_middle = 0
    for number in range(300):
        if number >= 60 and in_the_middle and not whole:
            break
        base = tmp_path / str(number)
        dying.stdin.write("%s\t%s\t%d\n" % (base, draw.choice(_FATES), draw.expovariate(1 / 3000)))
        dying.stdin.flush()
        begun, signal = map(int, dying.stdout.readline().split())
        found = whole_ledger.read("%s.ledger" % base)
        assert signal in (6, 9, 11)
        assert (found.problem, found.header is not None) == ("", True)
        assert found.torn <= 1, "no more than the one that was being written"
        last = found.records[-1]
        assert last.number in (begun, begun + 1), "the call that had begun is there; the next may be"
        assert [one.number for one in found.records] == list(range(found.records[0].number, last.number + 1))
        for one in found.records:
            assert (one.elements, one.peer, one.op, one.seq) == (7 * (one.number % 5), one.number % 5, "all_reduce", one.number), one
            assert one.state == "returned" or one is last, one
        in_the_middle += last.is_open
        Path("%s.ledger" % base).unlink()
    assert in_the_middle, "none of them died inside a call, which is what this is about"


def test_reader_meets_a_writer_at_work(dying: Any, tmp_path: Path, whole: bool) -> None:
    """Readings of a file that is being written show whole records in order, and later readings later ones."""
    dying.stdout.readline()
    dying.stdin.write("%s\tSIGKILL\t2000000\n" % (tmp_path / "live"))
    dying.stdin.flush()
    path, latest, readings, ended = tmp_path / "live.ledger", 0, 0, False
    while not ended and (readings < (400 if whole else 60) or latest <= RECORDS):
        ended = bool(select.select([dying.stdout], [], [], 0)[0])
        found = whole_ledger.read(path)
        if found.header is None or not found.records:
            continue
        readings += 1
        assert not found.problem
        assert found.records[-1].number >= latest
        latest = found.records[-1].number
        for one in found.records:
            assert (one.elements, one.peer, one.seq) == (7 * (one.number % 5), one.number % 5, one.number), one
    assert readings
    assert latest > RECORDS, "the ring has not gone round"
    # The last one may have been met between its record and the word that tells of it.
    head = whole_ledger.read(path).header
    assert head is not None
    assert head.moved_ns >= found.records[-2].entered_ns
