"""Dumps of torch's Flight Recorder beside the ledgers: they add to a finding, and what they contradict is said with both sides."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import pytest

from ddp_probe.judging.judge import judge
from ddp_probe.judging.rule import HIGH, MEDIUM, Finding
from ddp_probe.reading.load_run import load

Dump = Dict[str, Any]
_REDUCER = [
    {"name": "_engine_run_backward", "filename": "/env/site-packages/torch/autograd/graph.py", "line": 979},
    {"name": "main", "filename": "/train/train.py", "line": 56},
]


@pytest.fixture(scope="module")
def simulated(repo: Path, clean_env: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return the folder of a launch of four ranks with this fault at rank 2; it is written once."""
    root, known = tmp_path_factory.mktemp("runs"), {}

    def folder(fault: str) -> Path:
        if fault not in known:
            command = [sys.executable, str(repo / "scripts" / "simulate_ranks"), "4", "--events", "24", "--records", "40"]
            command += ["--fault", fault + ":2", "--out", str(root)]
            done = subprocess.run(command, env=clean_env(), capture_output=True, text=True, timeout=120, check=True)
            known[fault] = Path(done.stdout.strip())
        return known[fault]

    return folder


@pytest.fixture
def merged(simulated: Callable[[str], Path], tmp_path: Path, repo: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Tuple[Finding, List[str]]]:
    """Return the one finding, and the notes, of a run with dumps that are as the ledgers, but for what is changed in them."""
    monkeypatch.syspath_prepend(str(repo / "scripts"))
    from simulate_parts import flight_recorder

    def judged(fault: str, change: Any = None) -> Tuple[Finding, List[str]]:
        folder = tmp_path / "run"
        shutil.copytree(str(simulated(fault)), str(folder))
        if change != "no dumps":
            flight_recorder.write(str(folder), str(folder), change)
        diagnosis = judge(load([str(folder)]))
        (finding,) = diagnosis.findings
        return finding, [note for note in diagnosis.run.inventory.notes if "Flight Recorder" in note]

    yield judged  # type: ignore[misc]
    for name in [name for name in sys.modules if name.split(".")[0] == "simulate_parts"]:
        del sys.modules[name]


def _recorded(finding: Finding) -> List[str]:
    return [one.text for one in finding.evidence if "Flight Recorder" in one.text]


def test_without_dumps_nothing_is_said(merged: Any) -> None:
    """A run without dumps has the finding of the ledgers alone."""
    finding, notes = merged("absent", "no dumps")
    assert (finding.ranks, finding.confidence, notes, _recorded(finding)) == ([2], HIGH, [], [])


@pytest.mark.parametrize("fault", ["absent", "other_op", "other_size", "behind"])
def test_dumps_that_agree_are_evidence(merged: Any, fault: str) -> None:
    """Both sides' last collectives are evidence with their state, at the dump's entry and the job's line, and the confidence stays."""
    finding, notes = merged(fault)
    assert (finding.ranks, finding.confidence, notes) == ([2], HIGH, [])
    told = [one for one in finding.evidence if "Flight Recorder" in one.text]
    assert [Path(one.file).name for one in told] == ["nccl_trace_rank_0", "nccl_trace_rank_2"]
    assert "all_reduce of 161 at /train/train.py:57" in told[0].text
    assert told[0].text.endswith(", started")
    assert told[0].site is not None
    assert told[0].site.line == 57


def test_what_cpp_has_issued_is_added(merged: Any) -> None:
    """A reduction of DDP that the ledger cannot hold is shown as such, and contradicts nothing."""

    def change(rank: int, dump: Dump) -> None:
        if rank == 2:
            last = dump["entries"][-1]
            later = last["time_created_ns"] + 900 * 10**9
            dump["entries"].append(dict(last, frames=_REDUCER, time_created_ns=later, profiling_name="nccl:all_reduce", state="started"))

    finding, notes = merged("absent", change)
    assert (finding.confidence, notes) == (HIGH, [])
    assert "issued by C++; the ledger does not hold it" in _recorded(finding)[1]
    assert "at /train/train.py:56" in _recorded(finding)[1]


def test_a_call_that_the_ledger_lacks_is_a_contradiction(merged: Any) -> None:
    """The ledger has no further call of rank 2, the recorder has: the note and the evidence say both, and the confidence falls."""

    def change(rank: int, dump: Dump) -> None:
        if rank == 2:
            last = dump["entries"][-1]
            later = last["time_created_ns"] + 900 * 10**9
            dump["entries"].append(dict(last, collective_seq_id=29, time_created_ns=later, profiling_name="nccl:all_reduce", state="started"))

    finding, notes = merged("absent", change)
    (said,) = _recorded(finding)[1:]
    assert said.startswith("Rank 2: after broadcast")
    assert "its ledger holds no call of torch.distributed; by torch's Flight Recorder, it then began nccl:all_reduce" in said
    assert (finding.confidence, notes) == (MEDIUM, ["%s. Which of them is right is not known." % said])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"profiling_name": "nccl:broadcast"}, "it is in nccl:broadcast"),
        ({"input_sizes": [[7]]}, "it is in nccl:all_reduce of 7"),
        ({"state": "completed"}, "completed"),
    ],
)
def test_another_account_of_one_call_is_a_contradiction(merged: Any, change: Dump, words: str) -> None:
    """By the ledger rank 0 waits in an all_reduce; that it is in another call, or that the call is completed, is said of both."""

    def changed(rank: int, dump: Dump) -> None:
        if rank == 0:
            dump["entries"][-1].update(change)

    finding, (note,) = merged("absent", changed)
    assert finding.confidence == MEDIUM
    assert note.startswith("Rank 0: its ledger has it in all_reduce of 161 float32 elements at /train/train.py:57")
    assert words in note


def test_a_call_that_the_recorder_lacks_is_a_contradiction(merged: Any) -> None:
    """By the ledger rank 0 is in a call; a dump of later that ends before it has not seen it begin, and both are said."""

    def change(rank: int, dump: Dump) -> None:
        if rank == 0:
            del dump["entries"][-1]

    finding, (note,) = merged("absent", change)
    assert finding.confidence == MEDIUM
    assert "its last collective is an earlier one, nccl:broadcast" in note


def test_a_dump_that_is_refused_is_noted(merged: Any) -> None:
    """A dump that would run code is left alone with a note that names it and the opcode; the finding stays as it is."""

    class Runs:
        def __reduce__(self) -> Any:
            return exec, ("raise SystemExit('it ran')",)

    finding, (note,) = merged("absent", lambda rank, dump: dump.update(more=Runs()) if rank == 2 else None)
    assert finding.confidence == HIGH
    assert note.startswith(
        "The Flight Recorder dump of rank 2, nccl_trace_rank_2, was not read: it names builtins.exec, which plain data does not need"
    )


def test_a_dump_of_an_earlier_process_is_no_evidence(merged: Any) -> None:
    """Entries from before the start of the process are those of one that had this rank before: nothing is said of them."""

    def change(rank: int, dump: Dump) -> None:
        for entry in dump["entries"]:
            entry["time_created_ns"] -= 7200 * 10**9

    finding, notes = merged("absent", change)
    assert (finding.confidence, notes, _recorded(finding)) == (HIGH, [], [])
