"""Forward passes in the ledger of a real job: which model each is of, and whether ranks meet in it."""

from pathlib import Path
from typing import Any

import pytest

from ddp_probe.reading import whole_ledger

_PROGRAM = Path(__file__).parent / "programs" / "two_models.py"


@pytest.mark.slow
def test_a_forward_knows_its_model(tmp_path: Path, armed: Any, run_python: Any, free_port: Any) -> None:
    """Models of all ranks are counted, unless they send no buffers and have no gradients."""
    rank = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1"}
    environment = armed(tmp_path / "runs", **rank, MASTER_PORT=str(free_port()))
    ended = run_python([str(_PROGRAM)], env=environment, cwd=tmp_path, timeout=200)
    assert ended.returncode == 0, ended.stderr
    (path,) = {path.resolve() for path in (tmp_path / "runs").glob("*/rank*.ledger")}
    forwards = [record for record in whole_ledger.read(path).passes if record.op == "forward"]
    assert [record.model for record in forwards] == [1, 2, 0, 1, 0, 2, 0]
    assert [record.sends_buffers for record in forwards] == [False, True, True, False, False, True, False]
