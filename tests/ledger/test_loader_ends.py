"""How a DataLoader ended, in the ledger of a real job and in older ledgers, and what a report makes of it."""

from pathlib import Path
from typing import Any

import pytest

from ddp_probe.reading import ledger_text, whole_ledger

_PROGRAM = Path(__file__).parent / "programs" / "loaders_end.py"


@pytest.mark.slow
def test_an_exception_is_no_end(tmp_path: Path, armed: Any, run_python: Any, free_port: Any) -> None:
    """A loader that raised has failed, in a thread and of a worker too; one at its end has not."""
    rank = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1"}
    environment = armed(tmp_path / "runs", **rank, MASTER_PORT=str(free_port()))
    ended = run_python([str(_PROGRAM)], env=environment, cwd=tmp_path, timeout=200)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split() == ["4", "2", "4", "2", "2", "8"]
    (path,) = {path.resolve() for path in (tmp_path / "runs").glob("*/rank*.ledger")}
    ledger = whole_ledger.read(path)
    asked = [record for record in ledger.passes if record.op == "dataloader"]
    failed = [record.has_failed for record in asked if record.state == "raised"]
    assert failed == [False, True, False, True, True, False, True]
    assert not any(record.has_failed for record in asked if record.state == "returned")
    assert [record.in_side_thread for record in asked[-3:]] == [True] * 3
    (phase,) = [phase for phase in ledger.phases if phase.name == "dataloader"]
    assert (phase.state, phase.has_failed, phase.in_side_thread) == ("raised", True, True)


@pytest.mark.parametrize(("word", "has_failed"), [("raised", False), ("raised failed", True)])
def test_a_ledger_without_the_flag_says_that_the_loader_ended(word: str, has_failed: bool) -> None:
    """A ledger of before the flag reads as it did: raised stands for the end."""
    lines = ["ledger 0 dataloader at train.py:5 x3", "ledger 0 dataloader at train.py:5 " + word]
    data = ledger_text.written(lines)[0]
    ledger = whole_ledger.parse(data)
    (phase,), last = ledger.phases, ledger.passes[-1]
    assert (phase.state, phase.has_failed) == (last.state, last.has_failed) == ("raised", has_failed)
