"""Which runs are attempts of one job, and what they tell together, over the events that launches leave."""

import json
from pathlib import Path
from typing import Any, Dict

import pytest
from restarts.attempt_files import BAD, BROKEN, COMMAND, FULL, LASTS, NOON, WRONG, Launch, loaded, saved

from ddp_probe.judging import attempts
from ddp_probe.judging.judge import judge
from ddp_probe.judging.restart import Advice, advice
from ddp_probe.judging.rule import AFTER, ELSEWHERE, NO, UNKNOWN, YES
from ddp_probe.reading.load_run import from_text, load
from ddp_probe.shared.errors import UnusableError
from ddp_probe.showing import as_json, terminal

HOURS = 3600.0


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the runs, named by DDP_PROBE_DIR."""
    monkeypatch.setenv("DDP_PROBE_DIR", str(tmp_path / "runs"))
    return tmp_path / "runs"


def _failed(root: Path, began: float, failure: Dict[str, Any] = BAD, **started: Any) -> Launch:
    return Launch(root, began).rank(0, failure=failure, **started).rank(1, failure=failure, **started)


def _told(launch: Launch) -> Advice:
    answer = advice(judge(load([str(launch.folder)])))
    assert answer is not None
    return answer


def test_the_same_failure_at_the_same_line_is_no_chance(root: Path) -> None:
    """Two attempts that failed alike tell that a third does not help, whatever the rule says of one."""
    assert _told(_failed(root, NOON)).helps == UNKNOWN
    again = _told(_failed(root, NOON + HOURS))
    assert (again.helps, again.attempts) == (NO, ("run-0", "run-3600"))
    assert again.because.endswith("help: 2 attempts failed in the same way at /train/train.py:31.")
    assert _told(_failed(root, NOON + 2 * HOURS)).because.values["count"] == 3


def test_what_has_to_be_freed_was_not(root: Path) -> None:
    """A disk that is full once can be cleared; if the next attempt finds it full, too, a person is needed."""
    assert _told(_failed(root, NOON, FULL)).helps == AFTER
    assert _told(_failed(root, NOON + HOURS, FULL)).helps == NO


@pytest.mark.parametrize(
    ("command", "count"),
    [
        (COMMAND, 2),
        (("torchrun", "--master_port=1234", *COMMAND[1:]), 2),
        (("torchrun", "--rdzv-endpoint", "node1:1234", *COMMAND[1:]), 2),
        ((*COMMAND, "--lr=0.1"), 1),
    ],
)
def test_attempts_have_one_command(root: Path, command: Any, count: int) -> None:
    """An attempt has the same command, apart from a port that was drawn anew."""
    _failed(root, NOON, command=command)
    assert len(_told(_failed(root, NOON + HOURS)).attempts) == count


def test_days_apart_only_a_scheduler_makes_them_one_job(root: Path) -> None:
    """A run of the day before yesterday is another story, unless the scheduler's job is the same."""
    _failed(root, NOON, SLURM_JOB_ID="77")
    later = _failed(root, NOON + 50 * HOURS, SLURM_JOB_ID="77", SLURM_RESTART_COUNT="1")
    assert len(_told(later).attempts) == 2
    _failed(root / "other", NOON)
    assert len(_told(_failed(root, NOON + 120 * HOURS)).attempts) == 1


def test_a_run_that_did_well_ends_the_story(root: Path) -> None:
    """What failed before a run that ended well is not an attempt of this one."""
    _failed(root, NOON)
    Launch(root, NOON + HOURS).rank(0).rank(1)
    assert _told(_failed(root, NOON + 2 * HOURS)).attempts == ("run-7200",)


def test_a_run_at_the_same_time_is_not_an_attempt(root: Path) -> None:
    """Two jobs of one command that ran beside each other are not attempts of one."""
    _failed(root, NOON)
    assert _told(_failed(root, NOON + LASTS / 2)).attempts == ("run-30",)
    assert _told(_failed(root, NOON + 3 * LASTS)).attempts == ("run-30", "run-180")


def test_runs_elsewhere_are_left_alone(root: Path, tmp_path: Path) -> None:
    """Of a run outside DDP_PROBE_DIR no other run is read."""
    _failed(tmp_path / "copies", NOON)
    assert _told(_failed(tmp_path / "copies", NOON + HOURS)).attempts == ("run-3600",)


def _went_on(root: Path, failure: Dict[str, Any]) -> Advice:
    """Launch twice: the second goes on from what the first saved, and saves more."""
    Launch(root, NOON).rank(0, *saved("epoch_1.pth"), failure=failure).rank(1, failure=failure)
    events = (*loaded("/train/epoch_1.pth"), *saved("epoch_2.pth.tmp"))
    return _told(Launch(root, NOON + HOURS).rank(0, *events, failure=failure).rank(1, failure=failure))


def test_progress_is_worth_a_restart(root: Path) -> None:
    """An attempt that went on from a checkpoint and saved the next one is worth another start, from there."""
    told = _went_on(root, BAD)
    assert (told.helps, told.checkpoint) == (YES, "/train/epoch_2.pth")
    assert told.because.startswith("A restart helps, from /train/epoch_2.pth: ")


@pytest.mark.parametrize(("failure", "word"), [(WRONG, NO), (FULL, AFTER)])
def test_progress_mends_no_code_and_no_disk(root: Path, failure: Dict[str, Any], word: str) -> None:
    """What is in the code never becomes a yes, and a full disk stays full, however far the attempts got."""
    assert _went_on(root, failure).helps == word


def test_what_is_saved_in_memory_is_no_checkpoint(root: Path) -> None:
    """Two attempts that write into a buffer and read it again have saved nothing to go on from."""
    for began in (NOON, NOON + HOURS):
        events = (*saved("<stream>"), *loaded("<stream>"), *saved("<stream>", 2))
        told = _told(Launch(root, began).rank(0, *events, failure=BAD).rank(1, failure=BAD))
    assert (told.helps, told.checkpoint) == (NO, "")


def test_a_resume_that_saves_nothing_is_no_progress(root: Path) -> None:
    """An attempt that goes on from a checkpoint and fails alike before the next one made no step more."""
    Launch(root, NOON).rank(0, *saved("epoch_1.pth"), failure=BAD).rank(1, failure=BAD)
    second = Launch(root, NOON + HOURS).rank(0, *loaded("epoch_1.pth"), failure=BAD).rank(1, failure=BAD)
    assert _told(second).helps == NO


def test_a_host_with_which_a_failure_moves_is_left_out(root: Path) -> None:
    """If the failing host had another rank in each attempt, it is the host, whatever the exception says."""
    Launch(root, NOON, ("node1", "node7")).rank(0).rank(1, failure=WRONG)
    told = _told(Launch(root, NOON + HOURS, ("node7", "node2")).rank(0, failure=WRONG).rank(1))
    assert (told.helps, told.hosts) == (ELSEWHERE, ("node7",))


def test_a_rank_that_fails_on_every_host_is_the_job(root: Path) -> None:
    """If the same rank fails on another host, no host is to blame."""
    Launch(root, NOON, ("node1", "node7")).rank(0).rank(1, failure=BAD)
    told = _told(Launch(root, NOON + HOURS, ("node1", "node2")).rank(0).rank(1, failure=BAD))
    assert (told.helps, told.hosts) == (NO, ())


def test_a_broken_card_stays_broken(root: Path) -> None:
    """Once or twice, a card that is broken means: elsewhere, without its host."""
    for began in (NOON, NOON + HOURS):
        told = _told(Launch(root, began, ("node1", "node7")).rank(0).rank(1, failure=BROKEN))
        assert (told.helps, told.hosts) == (ELSEWHERE, ("node7",))


def test_other_failures_leave_it_open(root: Path) -> None:
    """Two attempts that failed of different causes, none of them in the code, tell nothing."""
    _failed(root, NOON, FULL)
    told = _told(_failed(root, NOON + HOURS, BAD))
    assert told.because == "It is not known whether a restart helps: 2 attempts failed in different ways."


def test_starts_by_one_launcher_are_attempts(root: Path) -> None:
    """torchrun's restarts are in one run, and tell the same as runs of their own."""
    launch = _failed(root, NOON)
    told = _told(launch.rank(0, failure=BAD, generation=1).rank(1, failure=BAD, generation=1))
    assert (told.helps, told.attempts) == (NO, ("run-0, start 1", "run-0"))


def _chance(root: Path, began: float) -> Advice:
    """Fail for a port that is taken, which is a yes by itself."""
    refused = "The server socket has failed to listen on any local network address. port: 29500, EADDRINUSE"
    taken = {"type": "RuntimeError", "message": refused, "frames": []}
    return _told(_failed(root, began, taken))


def test_a_large_attempt_is_not_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An attempt beyond the bound is left alone; what would be a yes without it is unknown then."""
    assert _chance(root, NOON).helps == YES
    monkeypatch.setattr(attempts, "_LARGEST", 10)
    told = _chance(root, NOON + HOURS)
    assert told.because.endswith("helps: run-0 is too large to be read beside this one.")


def test_an_attempt_that_cannot_be_read_costs_no_report(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An attempt of another user, or one that is gone by now, leaves it open, and the report is made."""

    def refuse(paths: Any) -> None:
        raise UnusableError(what="No run can be read.", why="It is closed.", what_to_do="Ask them.")

    _failed(root, NOON)
    last = _failed(root, NOON + HOURS, FULL)
    monkeypatch.setattr(attempts, "load", refuse)
    assert _told(last).helps == AFTER
    assert _chance(root, NOON + 2 * HOURS).because.endswith(": run-3600 cannot be read.")


@pytest.mark.parametrize(("attempts_before", "is_said"), [(0, False), (1, True)])
def test_a_person_is_not_told_that_nothing_is_known(root: Path, attempts_before: int, is_said: bool) -> None:
    """Of one attempt that can be chance, a page is silent and a program gets unknown; of several, it speaks."""
    for number in range(attempts_before):
        _failed(root, NOON + number * HOURS, BAD)
    last = _failed(root, NOON + attempts_before * HOURS, BAD if not attempts_before else FULL)
    diagnosis = judge(load([str(last.folder)]))
    answer = advice(diagnosis)
    assert answer is not None
    page = "\n".join(line.text for line in terminal.lines(diagnosis, 200))
    assert (answer.because in page) is is_said
    assert json.loads(as_json.text(diagnosis))["restart"]["because"] == answer.because


def test_what_ended_well_needs_no_restart(root: Path) -> None:
    """A run without an error or an open question has no advice."""
    run = load([str(Launch(root, NOON).rank(0).rank(1).folder)])
    assert (judge(run).exit_code(), advice(judge(run))) == (0, None)


@pytest.mark.parametrize(
    ("line", "hosts", "cards"),
    [
        ("node7 kernel: NVRM: Xid (PCI:0000:b3:00): 109, TIMEOUT", ("node7",), (("node7", "0000:b3:00"),)),
        ("NVRM: Xid (PCI:0000:b3:00): 109, CTX SWITCH TIMEOUT", (), ()),
    ],
)
def test_the_kernel_names_the_card_to_leave_out(line: str, hosts: Any, cards: Any) -> None:
    """If the kernel's line of an Xid names its host, a restart leaves out that card of that host."""
    answer = advice(judge(from_text(line)))
    assert answer is not None
    assert (answer.helps, answer.hosts, answer.cards) == (ELSEWHERE, hosts, cards)
