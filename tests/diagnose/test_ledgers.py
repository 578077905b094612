"""Ledgers of many ranks with one fault: the guilty rank is named whatever its number is, and nothing that is torn or missing makes it another."""

import random
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import pytest
from schedule import seed

from ddp_probe.judging.judge import Diagnosis, judge
from ddp_probe.judging.ledgers import standings_of
from ddp_probe.reading import ledger_text
from ddp_probe.reading.load_run import from_lines
from ddp_probe.reading.model import Run
from ddp_probe.shared import ledger_codec as codec

SIZES = (2, 3, 8, 64)
STEP = "all_reduce 16 float32 at /job/train.py:12"
START = '{"event":"process.start","rank":%d,"world_size":%d}'


class Fault(NamedTuple):
    """What goes wrong: the lines of the log, the causes that may be named, and who is named among two ranks (the guilty one, or both)."""

    lines: Callable[[int, str, int], List[str]]  # The guilty rank, the others, how many ranks there are.
    causes: Tuple[str, ...]
    both_of_two: bool = False


def _differs(call: str) -> Callable[[int, str, int], List[str]]:
    usual = "broadcast 8 int64 root 1 at /job/train.py:20 open"
    return lambda guilty, others, _: ["ledger %s %s" % (others, usual), "ledger %d %s" % (guilty, call)]


def _stays(where: str) -> Callable[[int, str, int], List[str]]:
    return lambda guilty, others, _: [*(["ledger %d %s" % (guilty, where)] if where else []), "ledger %s %s open" % (others, STEP)]


def _leaves(*events: str) -> Callable[[int, str, int], List[str]]:
    def lines(guilty: int, others: str, size: int) -> List[str]:
        return [START % (guilty, size), *(event.replace("%d", str(guilty)) for event in events), "ledger %s %s open" % (others, STEP)]

    return lines


_DIVERGENT = ("rank_divergent_control_flow",)
_STOPPED = ("rank_stopped_participating",)
_LAUNCHER = '{"event":"launcher.start","launcher":"torchrun"}'
_CHILD = '{"event":"launcher.child","child_rank":%%d,"child_local_rank":%%d,%s}'
FAULTS: Dict[str, Fault] = {
    "other operation": Fault(_differs("barrier at /job/train.py:25 open"), _DIVERGENT, both_of_two=True),
    "other size": Fault(_differs("broadcast 9 int64 root 1 at /job/train.py:20 open"), _DIVERGENT, both_of_two=True),
    "other dtype": Fault(_differs("broadcast 8 float32 root 1 at /job/train.py:20 open"), _DIVERGENT, both_of_two=True),
    "other root": Fault(_differs("broadcast 8 int64 root 0 at /job/train.py:20 open"), _DIVERGENT, both_of_two=True),
    "other operation, and nobody waits": Fault(_differs("barrier at /job/train.py:25"), _DIVERGENT, both_of_two=True),
    "waits for data": Fault(_stays("dataloader at /job/train.py:9 open"), _STOPPED),
    "in backward": Fault(_stays("backward at /job/train.py:14 open"), _DIVERGENT, both_of_two=True),
    "outside of any collective": Fault(_stays(""), _DIVERGENT),
    "one behind": Fault(_stays("send 4 float32 to 0 at /job/train.py:9"), _DIVERGENT),
    "validates": Fault(_stays("validate at /job/val.py:3 open"), ("rank0_long_work_timeout",)),
    "saves": Fault(_stays("save at /job/val.py:3 open"), ("rank0_long_work_timeout",)),
    "exits": Fault(_leaves('{"event":"process.end","rank":%d,"exit_code":0}'), _STOPPED),
    "os._exit": Fault(_leaves(_LAUNCHER, _CHILD % '"exit_code":3'), _STOPPED),
    "killed": Fault(_leaves(_LAUNCHER, _CHILD % '"exit_code":-9,"signal":"SIGKILL"'), _STOPPED),
    "in backward alone": Fault(
        lambda guilty, others, size: [
            "ledger 0-%d backward at /job/train.py:14 x3" % (size - 1),
            "ledger %s backward at /job/train.py:14 open" % others,
            "ledger %d barrier at /job/train.py:30 open" % guilty,
        ],
        _DIVERGENT,
        both_of_two=True,
    ),
    "skipped the step": Fault(
        lambda guilty, others, size: [
            "ledger 0-%d backward at /job/train.py:14 x3" % (size - 1),
            "ledger %s backward at /job/train.py:14 open" % others,
        ],
        _DIVERGENT,
    ),
}


def _ranks(ranks: List[int]) -> str:
    return ",".join(map(str, ranks))


def _log(fault: Fault, guilty: int, size: int) -> str:
    others = _ranks([rank for rank in range(size) if rank != guilty])
    return "\n".join(["ledger 0-%d %s x5" % (size - 1, STEP), *fault.lines(guilty, others, size)])


def _run(log: str) -> Run:
    lines = sorted(log.splitlines(), key=lambda line: not line.startswith("{"))  # The events first; each kind in its own order.
    return from_lines("\n".join(lines))


def _draw(name: str) -> random.Random:
    drawn = "%s %s" % (seed(), name)
    print("seed", drawn)
    return random.Random(drawn)


def _told(diagnosis: Diagnosis) -> Tuple[List[str], List[int]]:
    return [finding.cause for finding in diagnosis.findings], [rank for finding in diagnosis.findings for rank in finding.ranks]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", list(FAULTS))
def test_names_the_guilty_rank(name: str, size: int) -> None:
    """The guilty rank alone is named, in each draw and as rank 0; of two ranks both, if nothing tells which is wrong; both sides have their lines."""
    fault, draw = FAULTS[name], _draw("%s %d" % (name, size))
    for guilty in [0, *(draw.randrange(size) for _ in range(4))]:
        diagnosis = judge(_run(_log(fault, guilty, size)))
        causes, ranks = _told(diagnosis)
        assert ranks == (list(range(size)) if size == 2 and fault.both_of_two else [guilty]), (guilty, diagnosis)
        assert len(causes) == 1
        assert causes[0] in fault.causes, diagnosis.findings
        finding = diagnosis.findings[0]
        if name != "killed":  # The launcher's own rule says more of that.
            sites = [item.site for item in finding.evidence if item.site is not None]
            assert sites
            assert all("%s:%d" % (site.file, site.line) in finding.verdict for site in sites)
        assert "%d" % guilty in finding.verdict


@pytest.mark.parametrize("size", SIZES)
def test_only_one_rank_calls(size: int) -> None:
    """A collective that one rank alone calls while the others are in none is that rank's fault, and has the cause of its own if it is rank 0."""
    draw = _draw("alone %d" % size)
    for guilty in [0, *(draw.randrange(size) for _ in range(4))]:
        log = "ledger 0-%d %s x5\nledger %d all_reduce 1 float32 at /job/log.py:7 open" % (size - 1, STEP, guilty)
        finding = judge(_run(log)).findings[0]
        if size == 2:
            assert finding.ranks == [1 - guilty]  # It waits for a rank that is nowhere.
            continue
        assert finding.ranks == [guilty]
        assert finding.cause == ("rank0_only_collective" if guilty == 0 else "rank_divergent_control_flow")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("where", ["", "barrier at /job/p.py:30 open", "recv 4 float32 from %d at /job/p.py:9 open"])
def test_a_pair_that_does_not_meet(size: int, where: str) -> None:
    """Of a receive the sender is named if it is in no call, else both ranks, with both lines; and nobody who waits for one of them."""
    draw = _draw("pair %d %s" % (size, where))
    for _ in range(5):
        one, two = draw.sample(range(size), 2)
        others = [rank for rank in range(size) if rank not in (one, two)]
        lines = ["ledger 0-%d %s x5" % (size - 1, STEP), "ledger %d recv 4 float32 from %d at /job/p.py:8 open" % (one, two)]
        lines += ["ledger %d %s" % (two, where % one if "%d" in where else where)] if where else []
        lines += ["ledger %s barrier at /job/p.py:30 open" % _ranks(others)] if others else []
        finding = judge(_run("\n".join(lines))).findings[0]
        assert finding.slug == "point-to-point-without-partner" or (not where and len(others) > 1)  # All others wait for it, or for who waits for it.
        assert finding.ranks == (sorted((one, two)) if where else [two])


def test_two_groups_in_a_circle() -> None:
    """Two ranks that enter two groups in opposite order are both named, if no majority tells."""
    log = "ledger 0 barrier of 0-1 at /job/t.py:5 open\nledger 1 barrier of 1,0 at /job/t.py:9 open"
    finding = judge(_run(log)).findings[0]
    assert finding.ranks == [0, 1]
    assert "/job/t.py:5" in finding.verdict
    assert "/job/t.py:9" in finding.verdict


@pytest.mark.sample(12)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", list(FAULTS))
def test_no_rank_is_wronged_by_a_missing_or_torn_ledger(name: str, size: int) -> None:
    """With any one ledger gone, cut or torn, the guilty rank is among those that are named, or nobody is; what is open has a next step."""
    fault, draw = FAULTS[name], _draw("part %s %d" % (name, size))
    for guilty in [0, draw.randrange(size)]:
        for victim in {guilty, *draw.sample(range(size), min(size, 3))}:
            for spoil in (_gone, _cut, _torn):
                run = _run(_log(fault, guilty, size))
                process = run.ranks.get(victim)
                if process is None or process.ledger_data is None:
                    continue
                spoil(process, draw)
                diagnosis = judge(run)
                _, ranks = _told(diagnosis)
                assert not ranks or guilty in ranks, (guilty, victim, spoil, diagnosis.findings)
                assert len(ranks) < 3
                assert all(answer.next for answer in diagnosis.undecided)


def _put(process: Any, data: Optional[bytes]) -> None:
    """Let the ledger of a process be another one than the one that was read."""
    process.ledger_data, process._ledger = data, None


def _gone(process: Any, _draw: random.Random) -> None:
    process.ledger_file = ""
    _put(process, None)


def _cut(process: Any, draw: random.Random) -> None:
    _put(process, process.ledger_data[: draw.randrange(len(process.ledger_data))])


def _torn(process: Any, draw: random.Random) -> None:
    data, size = bytearray(process.ledger_data), codec.RECORD.size
    start = len(data) - 64 * size
    for _ in range(draw.randrange(1, 4)):
        place = draw.randrange(1, 9)
        data[start + place * size] ^= 0x55
    _put(process, bytes(data))


@pytest.mark.parametrize("size", SIZES)
def test_a_healthy_job_is_left_alone(size: int) -> None:
    """Ranks of a running job that are a few calls, a phase or a step apart are nobody's finding, as long as nobody waits for long."""
    draw = _draw("healthy %d" % size)
    for _ in range(10):
        lines = ["ledger 0-%d %s x20" % (size - 1, STEP)]
        for rank in range(size):
            lines += ["ledger %d %s x%d" % (rank, STEP, draw.randrange(1, 4))] * draw.randrange(2)
            lines += [
                draw.choice(["ledger %d backward at /job/t.py:3 open", "ledger %d " + STEP + " open", "ledger %d save at /job/t.py:9 open"]) % rank
            ]
        run = _run("\n".join(lines))
        run.read_at = ledger_text.START + 5.0
        diagnosis = judge(run)
        assert not diagnosis.findings
        assert {answer.slug for answer in diagnosis.undecided} <= {"still-running"}, diagnosis.undecided


@pytest.mark.parametrize("name", list(FAULTS))
def test_no_rank_is_more_right_than_another(name: str) -> None:
    """If the ranks are renumbered, so is the verdict, and nothing else of it changes."""
    fault, draw, size = FAULTS[name], _draw("renumbered " + name), 8
    found: Optional[str] = None
    for guilty in draw.sample(range(size), size):
        finding = judge(_run(_log(fault, guilty, size))).findings[0]
        assert finding.ranks == [guilty]
        found = found or finding.slug
        assert finding.slug == found


SOURCE = """def log(loss):
    dist.all_reduce(loss)


def main(rank):
    if rank == %s:
        log(1)
    dist.barrier()
"""


@pytest.mark.parametrize("guilty", [0, 1])
def test_of_two_ranks_the_source_tells_which_is_wrong(tmp_path: Path, guilty: int) -> None:
    """If one of two calls is made under an `if` on the rank, its rank alone is named, with the line of the `if`."""
    job = tmp_path / "job.py"
    job.write_text(SOURCE % guilty)
    log = "ledger %d all_reduce 1 float32 at '%s:2' open\nledger %d barrier at '%s:8' open" % (guilty, job, 1 - guilty, job)
    finding = judge(_run(log)).findings[0]
    assert finding.ranks == [guilty]
    assert "'if' in line 6" in finding.verdict
    assert finding.cause == ("rank0_only_collective" if guilty == 0 else "rank_divergent_control_flow")
    for other in ("elif rank == 1", "else"):
        job.write_text("def main(rank):\n    if rank == 0:\n        dist.all_reduce(x)\n    %s:\n        dist.barrier()\n" % other)
        both = judge(_run("ledger 0 all_reduce 1 float32 at '%s:3' open\nledger 1 barrier at '%s:5' open" % (job, job))).findings[0]
        assert both.ranks == [0, 1]


def test_what_a_ledger_lacks_is_in_the_inventory() -> None:
    """A rank without a ledger and one with a torn one are noted, and no error."""
    run = _run("ledger 0-3 %s x5" % STEP)
    _gone(run.ranks[1], random.Random(1))
    _cut(run.ranks[2], random.Random(1))
    judge(run)
    assert "There is no ledger of rank 1." in run.inventory.notes
    assert any(note.startswith("The ledger of rank 2: ") for note in run.inventory.notes)


def test_a_loader_that_ended_early_tells_who_has_fewer_batches() -> None:
    """Of two ranks that part, the one whose DataLoader ended with fewer batches is named, with the cause of uneven batches."""
    lines = ["ledger 0-1 dataloader at /job/t.py:3 x3", "ledger 0-1 backward at /job/t.py:5 x3", "ledger 1 dataloader at /job/t.py:3 raised"]
    lines += ["ledger 0 dataloader at /job/t.py:3", "ledger 0 backward at /job/t.py:5 open", "ledger 1 barrier at /job/t.py:9 open"]
    finding = judge(_run("\n".join(lines))).findings[0]
    assert (finding.cause, finding.ranks) == ("uneven_batches", [1])
    assert "ended after 3 batches" in finding.verdict


@pytest.mark.parametrize(("told", "seconds"), [("5", 5.0), ("2m", 120.0), ("off", 60.0), ("", 60.0)])
def test_patience_is_what_the_job_was_watched_with(told: str, seconds: float) -> None:
    """A wait is a hang after DDP_PROBE_HANG_AFTER, with or without a unit, and after a minute if nothing watched."""
    start = '{"event":"process.start","rank":0,"world_size":1,"environment":{"DDP_PROBE_HANG_AFTER":"%s"}}' % told
    assert standings_of(from_lines("%s\nledger 0 barrier" % start)).patience == seconds
