"""Whatever is removed from a run, it is not called clear without proof, and no other cause is named than that of the whole run."""

import random
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Set

import pytest
from registry import JOBS, label
from schedule import seed

from ddp_probe.judging.judge import Diagnosis, judge
from ddp_probe.reading.load_run import assemble
from ddp_probe.reading.model import Run
from ddp_probe.reading.process_files import ProcessReader
from ddp_probe.reading.shared_parts import SharedParts
from ddp_probe.showing.source import own_line

RECORDED = Path(__file__).resolve().parent.parent / "recorded"
FAULTS = ("", "model_on_cpu", "killed", "missing", "other_model", "env_skew")
_LEDGER = ".ledger.txt"
Files = Dict[str, List[bytes]]


class Removal(NamedTuple):
    """A file, one line of it (counted from 1), or with -1 all that tells how its process ended."""

    file: str
    line: Optional[int] = None

    def of(self, files: Files) -> Files:
        """Return the files without it."""
        if self.line is None:
            return {name: lines for name, lines in files.items() if name != self.file}
        if self.line > 0:
            return {**files, self.file: [line for number, line in enumerate(files[self.file], 1) if number != self.line]}
        return _without_end(files, self.file)


def _without_end(files: Files, file: str) -> Files:
    """Take away the last line of a rank, and what its launcher tells of it."""
    pid = b'"child_pid":%s' % file.split(".")[2].encode()
    told = {name: [line for line in lines if pid + b"," not in line] if name.startswith("launcher") else lines for name, lines in files.items()}
    return {**told, file: [line for line in files[file] if b'"event":"process.end"' not in line]}


def _removals(files: Files) -> Iterator[Removal]:
    for file, lines in files.items():
        yield Removal(file)
        if file.endswith(_LEDGER):  # Without any of its lines it is not read at all.
            continue
        yield from (Removal(file, number) for number in range(1, len(lines) + 1))
        if file.startswith("rank"):
            yield Removal(file, -1)


def _read(folder: Path) -> Files:
    return {path.name: path.read_bytes().splitlines(keepends=True) for path in sorted(folder.rglob("*")) if path.name.endswith((".jsonl", _LEDGER))}


def _judged(files: Files) -> Diagnosis:
    run = Run()
    readers, shared = [], SharedParts()
    for name, lines in files.items():
        if name.endswith(_LEDGER):
            continue
        reader = ProcessReader(name, run.inventory, shared)
        own = name.replace(".jsonl", _LEDGER)
        if own in files:
            reader.process.ledger_file, reader.process.ledger_data = own, b"".join(files[own])
        for number, line in enumerate(lines, 1):
            reader.line(number, line, True)
        readers.append(reader)
    return judge(assemble(run, [process for reader in readers for process in [reader.finish()] if process.lines]))


def _causes(diagnosis: Diagnosis) -> Set[str]:
    return {finding.cause for finding in diagnosis.findings}


def _wrong(whole: Diagnosis, part: Diagnosis, removal: Removal) -> str:
    dark = {
        finding.cause for finding in part.findings if "without a last line" in finding.verdict or "left no last line" in finding.verdict
    }  # It says that it is not known why the rank ended.
    if "host_out_of_memory" in _causes(whole):  # Without the kernel's count it is a SIGKILL.
        dark = dark | {"rank_stopped_participating"}
    other = _causes(part) - _causes(whole) - (dark & {"rank_stopped_participating"})
    # The same failure at the same line of the same ranks, told as their own exception: nobody is left who lost them.
    named = [(finding.ranks, own_line(finding)) for finding in whole.findings]
    if all((finding.ranks, own_line(finding)) in named for finding in part.findings):
        other -= {"own_exception"}
    if other:
        return "names %s" % ", ".join(sorted(other))
    if whole.findings and removal.file.startswith("launcher") and {finding.severity for finding in whole.findings} == {"warning"}:
        return ""  # Nobody but the vendor's tool knew it, and the launcher asks that only if it is told to.
    needed = whole.verdict != "clear" or (removal.file.startswith("rank") and removal.line in (None, -1))
    return "is clear" if part.verdict == "clear" and needed else ""


def _check(files: Files, removals: List[Removal]) -> None:
    whole = _judged(files)
    wrong = [(removal, what) for removal in removals for what in [_wrong(whole, _judged(removal.of(files)), removal)] if what]
    assert not wrong, wrong[:5]


def _recorded() -> List[Path]:
    folders = [RECORDED / stack / label(job) for job in JOBS for stack in job.stacks]
    return [folder for folder in folders if list(folder.rglob("*.jsonl"))]


@pytest.mark.sample(12)
@pytest.mark.parametrize("folder", _recorded(), ids=lambda folder: "%s-%s" % (folder.parent.name, folder.name))
def test_a_recorded_run_without_a_part_of_it(folder: Path) -> None:
    """Without any one file, line or end the verdict on a recorded job is never clear without proof, and never another cause."""
    files = _read(folder)
    _check(files, list(_removals(files)))


@pytest.mark.parametrize(
    ("job", "event", "cause"),
    [
        ("06_load_while_written", "checkpoint.load", "checkpoint_write_read_race"),
        ("04_swallowed_then_ddp_fails", "ddp.init", "device_ids_given_for_cpu_run"),
    ],
)
def test_a_call_whose_error_is_lost_is_that_of_the_exception(job: str, event: str, cause: str) -> None:
    """Without the line about a call's end, the process's last words show that the exception passed it."""
    files = _read(RECORDED / "new" / job)
    (file,) = [name for name in files if name.startswith("rank00001") and name.endswith(".jsonl")]
    begin = b'{"event":"%s","phase":"error"' % event.encode()
    kept = [line for line in files[file] if not line.startswith(begin)]
    assert len(kept) == len(files[file]) - 1
    assert _causes(_judged({**files, file: kept})) == {cause}


@pytest.mark.sample(3)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault or "healthy")
def test_a_simulated_run_without_a_part_of_it(repo: Path, tmp_path: Path, clean_env: Callable[..., Dict[str, str]], whole: bool, fault: str) -> None:
    """The same holds for launches of six simulated ranks, healthy and with each fault."""
    command: List[Any] = [sys.executable, repo / "scripts" / "simulate_ranks", "6", "--events", "30", "--out", tmp_path / "runs"]
    more = ["--fault", fault + ":4"] if fault else []
    done = subprocess.run([*map(str, command), *more], env=clean_env(), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    files = _read(Path(done.stdout.strip()))
    removals = list(_removals(files))
    _check(files, removals if whole else random.Random(seed()).sample(removals, 60))


def test_the_recorded_runs_do_have_ends_to_remove() -> None:
    """A healthy recording without an end and without its launcher's word for it is undecided, and says what to try next."""
    files = _read(RECORDED / "new" / "00_healthy_ddp")
    assert _judged(files).verdict == "clear"
    rank = next(name for name in files if name.startswith("rank00001"))
    diagnosis = _judged(Removal(rank, -1).of(files))
    assert [answer.slug for answer in diagnosis.undecided] == ["no-end"]
    assert diagnosis.undecided[0].because.startswith("Rank 1 has no end line")
    assert diagnosis.undecided[0].next
