"""A job that survives failures of its set-up and fails of something else later: the later one is named, while it hangs and however it is ended."""

import json
import shlex
import shutil
from pathlib import Path
from typing import Callable, Dict, FrozenSet, Iterator, List, NamedTuple, Tuple

import pytest
from processes import processes_in
from test_ended import WAYS, told, wind_down
from test_jobs_live import Run, start

from ddp_probe.judging.judge import judge
from ddp_probe.reading.load_run import load

_PROGRAM = Path(__file__).parent / "programs" / "early_and_late.py"
_EARLY = (
    "set_device",
    "nccl",
    "optional_package",
    "resume",
    "pretrained",
    "compiled",
    "port_taken",
    "seed_of_cuda",
    "pinned",
    "strict_load",
)


class Truth(NamedTuple):
    """What is to be said first of a late failure: by one of these rules, of these ranks."""

    rules: FrozenSet[str]
    ranks: Tuple[int, ...] = (1,)


def _of(*rules: str, ranks: Tuple[int, ...] = (1,)) -> Truth:
    return Truth(frozenset(rules), ranks)


# Whether the launcher ends rank 0 before it lost a peer decides between the two.
_FAILED = _of("rank-left-while-others-wait", "first-to-fail")
_LATE: Dict[str, Truth] = {
    "worker": _FAILED,
    "key": _FAILED,
    "asserts": _FAILED,
    "shape": _FAILED,
    "module": _FAILED,
    "nan": _FAILED,
    "memory": _of("host-out-of-memory"),
    "index": _FAILED,
    "unhandled_value": _FAILED,
    "device_ids": _of("device-ids-on-cpu"),
    "exits": _of("left-early", "rank-left-while-others-wait"),
    "exits_hard": _of("left-early", "rank-left-while-others-wait"),
    "killed": _of("killed-by-signal", "rank-left-while-others-wait"),
    "aborted": _of("rank-on-another-path"),
    "full_disk": _of("disk-full-while-saving"),
    "cuts_checkpoint": _of("checkpoint-truncated"),
    "all_fail": _of("own-exception", ranks=(0, 1)),
    "sleeps": _of("rank-missing-from-collective"),
    "dataset_sleeps": _of("rank-missing-from-collective"),
    "main_barrier": _of("rank-missing-from-collective", ranks=(0,)),
    "swallowed_batch": _of("rank-missing-from-collective"),
    "uneven": _of("rank-missing-from-collective"),
    "size": _of("collectives-differ", ranks=(0, 1)),
}


@pytest.fixture
def job(armed: Callable[..., Dict[str, str]], free_port: Callable[[], int], tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Start two ranks of the solver, and end what is left of them."""
    jobs: List[Run] = []

    def launch(early: str, late: str, patience: float, after: int, *more: str) -> Run:
        line = "torchrun --nproc_per_node=2 --master_addr=127.0.0.1 --master_port=%d %s" % (
            free_port(),
            " ".join(map(shlex.quote, [str(_PROGRAM), early, late, *more])),
        )
        environment = armed(tmp_path / "runs", DDP_PROBE_HANG_AFTER=str(after), JOB_PATIENCE=str(patience))
        jobs.append(start(line, tmp_path, environment))
        return jobs[-1]

    yield launch
    for each in jobs:
        each.end()


def _with_one(run: Path, early: str, folder: Path) -> Path:
    """Copy a run as it would be if the job had survived that one failure alone: without the lines about the others."""
    copy = folder / early
    shutil.copytree(str(run), str(copy))
    for log in copy.glob("rank*.jsonl"):
        events = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
        others = {event.get("span") for event in events if event.get("site", {}).get("function") in set(_EARLY) - {early}}
        kept = [event for event in events if event.get("span") is None or event["span"] not in others]
        for number, event in enumerate(kept):
            event["seq"] = number
        log.write_text("".join(json.dumps(event) + "\n" for event in kept), encoding="utf-8")
    return copy


def _named(folder: Path) -> Tuple[str, Tuple[int, ...]]:
    """Return the rule and the ranks that a report says first; of a run in doubt, the first doubt."""
    diagnosis = judge(load([str(folder)]))
    if diagnosis.findings:
        return diagnosis.findings[0].slug, tuple(diagnosis.findings[0].ranks)
    return diagnosis.undecided[0].slug, ()


@pytest.mark.slow
@pytest.mark.sample(2)
@pytest.mark.parametrize("late", _LATE)
def test_the_later_failure_is_named_whichever_was_survived_before(late: str, job: Callable[..., Run], tmp_path: Path) -> None:
    """Of a job that survived ten failures, or any one of them, and failed of another, the report names the other and its ranks."""
    hangs = late in ("sleeps", "dataset_sleeps", "main_barrier")
    ran = job(",".join(_EARLY), late, 20 if hangs else 60, 5)
    ran.process.wait(300)
    run = Path(ran.folder)
    found = {early: _named(_with_one(run, early, tmp_path)) for early in _EARLY}
    found["all"] = _named(run)
    truth = _LATE[late]
    ranks = truth.ranks if truth.rules != {"rank-on-another-path"} else ()
    assert {early: told for early, told in found.items() if told[0] not in truth.rules or told[1] != ranks} == {}


def _exit_call() -> str:
    """Return the place of the exit call that hides that there are no weights."""
    lines = _PROGRAM.read_text(encoding="utf-8").split("\n")
    (number,) = [number for number, line in enumerate(lines, 1) if line.strip().startswith("exit()")]
    return "%s:%d" % (_PROGRAM, number)


_HANGS = (
    ("worker", "cleanup"),
    ("swallowed_batch", ""),
    ("main_barrier", ""),
    ("sleeps", ""),
    ("evaluates", ""),
    ("pretrained_exit", "cleanup"),
)
_TIMEOUT = "its own timeout"


@pytest.mark.slow
@pytest.mark.sample(3)
@pytest.mark.parametrize("way", [*WAYS, _TIMEOUT])
@pytest.mark.parametrize("late", _HANGS, ids=lambda late: late[0])
def test_what_was_known_before_the_end_is_known_after_it(late: Tuple[str, str], way: str, job: Callable[..., Run]) -> None:
    """The rule, the ranks and the line that a report gives of a job that hangs, after failures that it survived, are those that it gives later."""
    ran = job("set_device,resume", late[0], 30 if way == _TIMEOUT else 600, 5, *filter(None, late[1:]))
    ran.wait()
    before = told(ran.folder)
    assert before is not None
    if late[0] == "pretrained_exit":
        assert before.line == _exit_call()
    if way == _TIMEOUT:
        ran.process.wait(300)
    else:
        WAYS[way](ran)
        wind_down(ran)
    assert not processes_in(ran.home)
    assert told(ran.folder) == before
