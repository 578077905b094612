"""Folds of the files of several hosts are the run: what is read of them together is what is read of all files in one folder."""

import io
import itertools
import json
import os
import random
import re
import shlex
import shutil
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, Callable, Iterator, List, Sequence, Tuple

import pytest

from ddp_probe.judging.judge import judge
from ddp_probe.reading import fold, fold_file, host_fold, ledger_file, process_files
from ddp_probe.reading.inventory import Inventory
from ddp_probe.reading.load_run import load
from ddp_probe.reading.model import Run
from ddp_probe.reading.process_files import Meter
from ddp_probe.reading.shared_parts import SharedParts
from ddp_probe.shared.errors import ProbeError
from ddp_probe.showing import as_json, terminal

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "jobs")]
RECORDED = TESTS / "recorded"

from registry import JOBS, Job, label  # noqa: E402  # found from the checkout


def _recorded() -> Iterator[Tuple[str, Job]]:
    for job in JOBS:
        for stack in job.stacks:
            yield stack, job


def _said(run: Run, *names: str) -> str:
    """Return the report as JSON and as text, without these names of folders."""
    diagnosis = judge(run)
    with redirect_stdout(io.StringIO()) as out:
        terminal.show(diagnosis)
    text = as_json.text(diagnosis) + out.getvalue()
    for name in names:
        text = text.replace(name + "/", "").replace(name, "")
    return text


def _parts(folder: Path, count: int, target: Path, choose: Callable[[List[Path]], Path]) -> List[Path]:
    """Divide the files of a run among some hosts; what is not one rank's is on each of them."""
    hosts = [target / str(number) / "run" for number in range(count)]
    for host in hosts:
        shutil.copytree(folder, host, ignore=lambda _, names: [name for name in names if name.startswith(("rank", "launcher"))])
    for log in sorted(folder.glob("*.jsonl")):
        host = choose(hosts)
        for file in folder.glob(log.name[: -len("jsonl")].replace("[", "[[]") + "*"):
            shutil.copy2(file, host)
    return [host for host in hosts if list(host.glob("*.jsonl"))]


def _in_turn() -> Callable[[List[Path]], Path]:
    number = itertools.count()
    return lambda hosts: hosts[next(number) % len(hosts)]


def _folded(hosts: Sequence[Path], target: Path) -> List[str]:
    target.mkdir()
    for number, host in enumerate(hosts):
        with open(target / ("%d.fold" % number), "wb") as file:
            fold.write([str(host)], file)
    return sorted(map(str, target.iterdir()))


@pytest.fixture
def healthy(tmp_path: Path) -> Path:
    """A copy of a recorded run."""
    return Path(shutil.copytree(RECORDED / "new" / "00_healthy_ddp", tmp_path / "healthy"))


@pytest.mark.sample(12, few=6)
@pytest.mark.parametrize(("stack", "job"), list(_recorded()), ids=lambda value: value if isinstance(value, str) else label(value))
def test_folds_of_a_divided_run_are_the_run(stack: str, job: Job, tmp_path: Path) -> None:
    """The report over the folds of one to three hosts is, but for names of folders, the report over all files of a recorded run in one folder."""
    folder = RECORDED / stack / label(job)
    if not list(folder.rglob("*.jsonl")):
        pytest.skip("the job leaves no file")
    draw = random.Random(job.name)
    whole = shutil.copytree(folder, tmp_path / "whole")
    folds = _folded(_parts(folder, draw.randint(1, 3), tmp_path / "hosts", draw.choice), tmp_path / "folds")
    expected = _said(load([str(whole)]), str(whole))
    draw.shuffle(folds)  # The order in which they are named does not matter.
    assert _said(load(folds), *folds, str(tmp_path / "folds")) == expected


def test_a_folder_of_folds_is_a_run(healthy: Path, tmp_path: Path) -> None:
    """A folder that holds the folds of all hosts is read as a run; of the files in them the report gives the names that they have on their hosts."""
    _folded(_parts(healthy, 2, tmp_path / "hosts", _in_turn()), tmp_path / "folds")
    run = load([str(tmp_path / "folds")])
    assert run.folders == [str(tmp_path / "folds")]
    assert sorted(map(os.path.basename, run.inventory.files)) == sorted(file.name for file in healthy.glob("*.jsonl"))
    assert judge(run).verdict == "clear"


def test_a_fold_that_is_absent_is_an_absent_rank(healthy: Path, tmp_path: Path) -> None:
    """Without the fold of one rank's host the run is not clear, and the rank is missing."""
    (healthy / "launcher.node1.jsonl").unlink()
    folds = _folded(_parts(healthy, 2, tmp_path / "hosts", _in_turn()), tmp_path / "folds")
    assert len(folds) == 2
    run = load(folds[:1])
    assert [len(run.ranks), len(run.missing)] == [1, 1]
    assert judge(run).verdict != "clear"


def test_files_that_a_fold_holds(tmp_path: Path) -> None:
    """A rank's whole ledger can be read from a fold, and is the one in its file."""
    folder = RECORDED / "new" / "08_other_shape_in_all_gather"
    folds = _folded([Path(shutil.copytree(folder, tmp_path / "run"))], tmp_path / "folds")
    direct, folded = load([str(tmp_path / "run")]), load(folds)
    for rank, process in direct.ranks.items():
        mine, theirs = process.whole_ledger(), folded.ranks[rank].whole_ledger()
        assert mine.records
        assert theirs._replace(path="") == mine._replace(path="")


def test_the_last_call_of_a_ledger_is_in_its_fold(tmp_path: Path) -> None:
    """Of a ledger in the form that a rank writes, a fold leaves out the empty end of the ring and no part of the last record."""
    run = Path(shutil.copytree(RECORDED / "new" / "08_other_shape_in_all_gather", tmp_path / "run"))
    for file in run.glob("*.ledger.txt"):
        file.with_suffix("").write_bytes(ledger_file.of_lines(file.read_bytes()))
        file.unlink()
    direct, folded = load([str(run)]), load(_folded([run], tmp_path / "folds"))
    for rank, process in direct.ranks.items():
        assert process.whole_ledger().records
        assert folded.ranks[rank].whole_ledger().records == process.whole_ledger().records


@pytest.mark.parametrize("cores", [2, 3])
def test_several_cores_read_what_one_reads(healthy: Path, cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read on several cores, a run has the same processes in the same order, and the same inventory."""
    for number in range(2, 9):
        for file in sorted(healthy.glob("rank00001.*")):
            shutil.copy(file, healthy / file.name.replace("rank00001", "rank%05d" % number))
    alone = _said(load([str(healthy)], cores=1))
    monkeypatch.setattr(process_files, "_LARGE", 0)
    monkeypatch.setattr(process_files, "_TOGETHER", 2)
    assert _said(load([str(healthy)], cores=cores)) == alone


def test_a_reader_that_ends_early(healthy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the kernel ends the processes that read, the files are read in the parent, and nothing is lost."""
    alone = _said(load([str(healthy)], cores=1))
    parent, encode = os.getpid(), host_fold.encode

    def killed(found: Any) -> bytes:
        if os.getpid() != parent:
            os.kill(os.getpid(), 9)
        return encode(found)

    monkeypatch.setattr(process_files, "_LARGE", 0)
    monkeypatch.setattr(process_files, "_TOGETHER", 1)
    monkeypatch.setattr(host_fold, "encode", killed)
    assert _said(load([str(healthy)], cores=2)) == alone
    with pytest.raises(ChildProcessError):  # None is left behind.
        os.waitpid(-1, os.WNOHANG)


def test_progress_on_several_cores(healthy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes that children read are counted too."""
    monkeypatch.setattr(process_files, "_LARGE", 0)
    monkeypatch.setattr(process_files, "_TOGETHER", 1)
    told: List[Tuple[int, int]] = []
    load([str(healthy)], lambda read, everything: told.append((read, everything)), cores=2)
    assert told[-1][0] == told[-1][1] == sum(file.stat().st_size for file in healthy.glob("*.jsonl"))


def _broken(data: bytes) -> Iterator[Tuple[str, bytes]]:
    yield "cut", data[: len(data) // 2]
    yield "only its head", data[:20]
    yield "another size", data[:17] + b"\xff" * 8 + data[25:]
    yield "not packed", data[:33] + b"\0" * 100 + data[133:]


@pytest.fixture
def fold_of(healthy: Path, tmp_path: Path) -> Callable[[], Path]:
    """Write the fold of a healthy run."""

    def make() -> Path:
        return Path(_folded([healthy], tmp_path / "folds")[0])

    return make


def test_a_broken_fold_is_refused(fold_of: Callable[[], Path]) -> None:
    """A fold that was cut or changed is an error that names it and says what to do, never another exception."""
    file = fold_of()
    for what, data in _broken(file.read_bytes()):
        file.write_bytes(data)
        with pytest.raises(ProbeError, match="is not a usable fold") as caught:
            load([str(file)])
        assert str(file) in str(caught.value), what


def test_a_hostile_fold_is_refused(fold_of: Callable[[], Path], tmp_path: Path) -> None:
    """Numbers in a fold that fit nothing in it are refused, and names in it lead nowhere."""
    file = fold_of()
    found = host_fold.decode(fold_file.read(str(file)))
    for name, value in (("start", 10**6), ("kinds", 99), ("call_events", b"\xff\xff\xff\xff"), ("call_lines", b"123")):
        changed = host_fold.decode(fold_file.read(str(file)))
        setattr(changed.processes[0], name, value)
        with open(tmp_path / "hostile.fold", "wb") as target:
            fold_file.write(target, host_fold.encode(changed), ())
        with pytest.raises(ProbeError, match="is not a usable fold"):
            load([str(tmp_path / "hostile.fold")])
    secret = tmp_path / "secret"
    secret.write_text("not a ledger", encoding="utf-8")
    found.processes[0].ledger_file = "../../secret"
    with open(tmp_path / "hostile.fold", "wb") as target:
        fold_file.write(target, host_fold.encode(found), ())
    assert not load([str(tmp_path / "hostile.fold")]).processes[0].whole_ledger().records


def test_another_version_is_refused(fold_of: Callable[[], Path]) -> None:
    """A fold of another version is refused with both versions."""
    file = fold_of()
    found = host_fold.decode(fold_file.read(str(file)))
    found.fold = 99
    with open(file, "wb") as target:
        fold_file.write(target, host_fold.encode(found), ())
    with pytest.raises(ProbeError, match="It is of version 99; this ddp_probe reads version 1"):
        load([str(file)])


def test_a_plain_log_cannot_be_folded(tmp_path: Path) -> None:
    """What the probe did not write is refused, with the command that reads it."""
    (tmp_path / "err.log").write_text("RuntimeError: boom\n", encoding="utf-8")
    with pytest.raises(ProbeError, match=re.escape("report %s" % shlex.quote(str(tmp_path / "err.log")))):
        fold.write([str(tmp_path / "err.log")], io.BytesIO())


def test_few_calls_of_very_many_ranks_are_kept(tmp_path: Path) -> None:
    """In a launch of more than 16 384 ranks two first and two last calls of a kind are kept instead of eight, and the failed ones as always."""
    kept = {}
    for world in (16384, 16385):
        lines = [{"event": "process.start", "phase": "point", "rank": 0, "world_size": world}]
        for number in range(40):
            failed = {"failure": {"type": "E", "message": "m"}} if number == 20 else {}
            lines.append({"event": "checkpoint.load", "phase": "begin", "span": number, "rank": 0})
            lines.append({"event": "checkpoint.load", "phase": "error" if failed else "end", "span": number, "rank": 0, **failed})
        file = tmp_path / ("rank00000.h.%d.jsonl" % world)
        file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        process = process_files.read([str(file)], Inventory(), SharedParts(), Meter((), None))[0]
        kept[world] = [call.line for call in process.kept.of("checkpoint.load", 0.0)]
    assert [len(kept[16384]), len(kept[16385])] == [17, 5]
    assert kept[16385] == [2, 4, 42, 78, 80]
