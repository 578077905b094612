"""A run is clear only with the ledgers that its ranks wrote: calls that differ in silence are nowhere else."""

import shutil
from pathlib import Path
from typing import Iterator, Tuple

import pytest
from at_home import at_home
from registry import JOBS, label

from ddp_probe.judging.judge import Diagnosis, judge
from ddp_probe.judging.waiting import joined
from ddp_probe.reading.load_run import load
from ddp_probe.reading.model import Run

RECORDED = Path(__file__).resolve().parent.parent / "recorded"
_SILENT = ("08_other_shape_silent", "08_different_dtypes_silent")
_LOST = "no complete ledger here: it is not known whether all ranks made the same calls."


def _healthy() -> Iterator[Tuple[str, str]]:
    for job in JOBS:
        for stack in job.stacks:
            if job.cause is None and list((RECORDED / stack / label(job)).rglob("*.jsonl")):
                yield stack, label(job)


def _copied(stack: str, name: str, folder: Path) -> Path:
    return Path(shutil.copytree(RECORDED / stack / name, folder / name))


def _judged(folder: Path) -> Diagnosis:
    return judge(load([str(folder)]))


def _without(folder: Path) -> Path:
    for path in [*folder.rglob("*.ledger.txt"), *folder.rglob("*.ledger")]:
        path.unlink()
    return folder


def _meet(run: Run) -> bool:
    return any(joined(process) and process.last_world_size != 1 for process in run.processes)


@pytest.mark.parametrize("stack", ["new", "legacy"])
@pytest.mark.parametrize("name", _SILENT)
def test_wrong_in_silence_and_without_ledgers_is_undecided(stack: str, name: str, tmp_path: Path) -> None:
    """A run whose calls differed in silence is undecided without its ledgers, names the ranks, and says what to do next."""
    folder = _copied(stack, name, tmp_path)
    assert _judged(folder).verdict == "found"
    lost = _judged(_without(folder))
    assert lost.verdict == "undecided"
    (question,) = lost.undecided
    assert (question.slug, bool(question.next)) == ("no-ledger", True)
    assert question.because.endswith(_LOST)
    assert question.because.startswith("Ranks 0-")


@pytest.mark.sample(16)
@pytest.mark.parametrize(("stack", "name"), list(_healthy()))
def test_every_healthy_run_needs_its_ledgers(stack: str, name: str, tmp_path: Path) -> None:
    """A healthy run is clear; without its ledgers it is undecided if its ranks met others in a group, and clear if they never did."""
    folder = at_home(RECORDED / stack / name, tmp_path / name)
    whole = _judged(folder)
    assert whole.verdict == "clear"
    assert _judged(_without(folder)).verdict == ("undecided" if _meet(whole.run) else "clear")


def test_a_ledger_that_was_off_is_said(tmp_path: Path) -> None:
    """With DDP_PROBE_LEDGER=off no ledger is missed: the run is clear, and a note says what is not known."""
    folder = _without(_copied("new", "00_healthy_ddp", tmp_path))
    for path in folder.rglob("rank*.jsonl"):
        path.write_text(path.read_text().replace('"environment":{', '"environment":{"DDP_PROBE_LEDGER":"off",'))
    diagnosis = _judged(folder)
    assert diagnosis.verdict == "clear"
    off = "The ledgers of ranks 0-1 were off (DDP_PROBE_LEDGER): it is not known whether all ranks made the same calls."
    assert off in diagnosis.run.inventory.notes


def test_folds_bring_the_ledgers_along(tmp_path: Path) -> None:
    """A fold of a healthy run is clear without its files, and a fold of one that had lost its ledgers is not."""
    from ddp_probe import cli

    for made, verdict in ((lambda folder: folder, "clear"), (_without, "undecided")):
        folder = made(_copied("new", "00_healthy_ddp", tmp_path))
        fold = tmp_path / verdict
        fold.mkdir()
        assert cli.main(["fold", str(folder), "-o", str(fold / "a.fold")]) == 0
        shutil.rmtree(folder)
        assert _judged(fold).verdict == verdict
