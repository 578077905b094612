"""The recorded logs of the failing jobs: the named cause is the first finding, the ranks are right, and no other rule claims anything."""

import json
import re
import shutil
from pathlib import Path
from typing import Any, Callable, Iterator, List, Tuple

import pytest
from at_home import at_home
from proofs import NOT_SEEN
from registry import JOBS, Job, label

from ddp_probe.judging.causes import group_of
from ddp_probe.judging.judge import judge
from ddp_probe.judging.rules import memory_of_one_rank
from ddp_probe.reading.load_run import from_lines, load

RECORDED = Path(__file__).resolve().parent.parent / "recorded"
# Of two ranks that make other calls at one line nothing tells which is wrong: both are named, with what each has.
_BOTH = {"08_different_dtypes": (0, 1), "08_different_dtypes_silent": (0, 1)}
# Where the source is not at hand, both ranks are named, with both lines.
_BY_SOURCE = ("08_collective_on_rank0_only", "08_uneven_batches")


def _recorded() -> Iterator[Tuple[str, Job]]:
    for job in JOBS:
        for stack in job.stacks:
            yield stack, job


_EACH = pytest.mark.parametrize(("stack", "job"), list(_recorded()), ids=lambda value: value if isinstance(value, str) else label(value))


@pytest.mark.sample(of="recorded jobs", few=20)
@_EACH
def test_names_the_cause(stack: str, job: Job, tmp_path: Path) -> None:
    """The report over a job's files names its cause and its ranks, and nothing else; what the probe does not see yet is not guessed."""
    folder = RECORDED / stack / label(job)
    if not list(folder.rglob("*.jsonl")):
        pytest.skip("the job leaves no file")
    diagnosis = judge(load([str(at_home(folder, tmp_path / label(job)))]))
    told = [(finding.cause, tuple(finding.ranks)) for finding in diagnosis.findings]
    if job.cause is None:
        assert (told, diagnosis.verdict) == ([], "clear")
    elif label(job) in NOT_SEEN:
        assert (told, diagnosis.verdict) == ([], "clear" if job.exit == "zero" else "undecided")
    else:
        assert told == [(job.cause, _BOTH.get(label(job), job.ranks))]


@pytest.mark.parametrize("stack", ["new", "legacy"])
@pytest.mark.parametrize("name", _BY_SOURCE)
def test_names_both_ranks_without_the_source(stack: str, name: str) -> None:
    """Of two ranks that part, both are named if the job's source is elsewhere, with the line of each."""
    (finding,) = judge(load([str(RECORDED / stack / name)])).findings
    assert (finding.cause, finding.ranks, finding.confidence) == ("rank_divergent_control_flow", [0, 1], "medium")
    assert len({(item.site.file, item.site.line) for item in finding.evidence if item.site is not None}) == 2


@pytest.mark.sample(of="recorded jobs", few=20)
@_EACH
def test_the_plain_log_is_never_clear_and_never_wrong(stack: str, job: Job) -> None:
    """What a job printed, read without the probe's files, names a cause of the right group or is undecided; a healthy one is undecided."""
    diagnosis = judge(load([str(RECORDED / stack / label(job) / "output.txt")]))
    named = {group_of(finding.cause) for finding in diagnosis.findings}
    assert diagnosis.verdict == ("found" if named else "undecided")
    finer = {"own_failure"} if job.cause == "rank_stopped_participating" else set()  # Why it stopped.
    if label(job) == "14_control_group_full":  # What is printed has the signal, and not the kernel's count.
        finer.add("ranks_take_different_paths")
    assert named <= {group_of(job.cause or ""), *finer} - {""}
    assert all(finding.confidence == "low" for finding in diagnosis.findings)


@pytest.mark.sample(of="recorded jobs", few=20)
@_EACH
def test_the_run_says_at_least_what_its_output_says(stack: str, job: Job, lacks: Callable[..., List[str]]) -> None:
    """What a plain log of the output finds, the files of the same job find as well: a cause of that group, ranks and a line."""
    folder = RECORDED / stack / label(job)
    if label(job) in NOT_SEEN:
        pytest.skip(NOT_SEEN[label(job)].reason)
    assert lacks([folder], folder / "output.txt") == []


_LAST = re.compile(r'"event":"(dist\.destroy_process_group|process\.end|launcher\.(child|end))"')


@pytest.mark.parametrize("stack", ["new", "legacy"])
@pytest.mark.parametrize("job", [job for job in JOBS if job.name.startswith("14_") and job.exit == "zero"], ids=label)
def test_memory_and_waiting_are_named_while_the_job_runs(stack: str, job: Job, tmp_path: Path) -> None:
    """Of a job that has not ended, the lines so far name the same cause and ranks, as a warning."""
    folder = tmp_path / "run"
    shutil.copytree(RECORDED / stack / label(job), folder)
    for path in folder.glob("*.jsonl"):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        end = next(number for number, line in enumerate(lines) if _LAST.search(line))
        path.write_text("".join(lines[:end]), encoding="utf-8")
    found = judge(load([str(folder)])).findings
    assert [(one.cause, tuple(one.ranks)) for one in found if one.severity == "warning"] == [(job.cause, job.ranks)]


_BEGINS = """
{"event":"process.start","rank":%d,"world_size":2,"host":"node1"}
{"event":"ddp.init","phase":"begin","rank":%d,"span":1,"placement":{"model":"Net","digest":"ab"}}
{"event":"ddp.init","phase":"end","rank":%d,"span":1}
{"event":"device.state","rank":%d,"when":"periodic","devices":[{"device":"gcu:%d","allocated":%d,"allocated_peak":%d}]}
"""


@pytest.mark.parametrize(("ranks", "named"), [("0", []), ("0-1", [[0]])])
def test_a_rank_that_has_not_begun_is_no_measure_of_memory(ranks: str, named: List[List[int]]) -> None:
    """A rank holds more than one that waits for its first batch, which is no finding; more than one that trains as well is."""
    lines = [_BEGINS % (rank, rank, rank, rank, rank, held, held) for rank, held in ((0, 2 << 30), (1, 1 << 20))]
    ledgers = "ledger 0-1 barrier at train.py:9\nledger %s backward at train.py:40 x5\n" % ranks
    run = from_lines("".join(lines).replace("\n\n", "\n") + ledgers)
    assert [finding.ranks for finding in memory_of_one_rank.check(run)] == named


_EXCEPTIONS = {
    "KeyError": ("'img'", "train.py", 9),
    "TypeError": ("object of type 'int' has no len()", "train.py", 9),
    "IndentationError": ("('expected an indented block', ('/train/broken.py', 2, 1, 'return 1\\n', 2, 7))", "broken.py", 2),
}


@pytest.mark.parametrize("kind", _EXCEPTIONS)
def test_an_exception_of_all_ranks_is_found(kind: str) -> None:
    """All ranks raise one exception of the job's own: it is named with the line, and if a file cannot be parsed, with the line in that file."""
    message, file, number = _EXCEPTIONS[kind]
    frames = [{"file": "/train/train.py", "line": 9, "function": "main"}]
    failure = {"type": kind, "message": message, "frames": frames, "raised_at": frames[-1]}
    lines: List[Any] = [{"event": "process.start", "rank": rank, "world_size": 2, "role": "rank"} for rank in (0, 1)]
    lines += [{"event": "process.end", "rank": rank, "exit_code": 1, "uncaught": True, "failure": failure} for rank in (0, 1)]
    (finding,) = judge(from_lines("\n".join(map(json.dumps, lines)))).findings
    assert (finding.cause, finding.ranks) == ("own_exception", [0, 1])
    assert "%s:%d" % (file, number) in finding.verdict
