"""Forward passes whose gradients are held back, as under no_sync(), in the ledger of a real job."""

from pathlib import Path
from typing import Any

import pytest

from ddp_probe.reading import whole_ledger

_PROGRAM = Path(__file__).parent / "programs" / "accumulates.py"


@pytest.mark.slow
def test_a_forward_under_no_sync_is_told_apart(tmp_path: Path, armed: Any, run_python: Any, free_port: Any) -> None:
    """The first of two batches is held back, the second is not; the model's own code is asked as often as without the probe."""
    rank = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1"}
    alone = run_python([str(_PROGRAM)], env=dict(rank, MASTER_PORT=str(free_port())), cwd=tmp_path, timeout=200)
    environment = armed(tmp_path / "runs", **rank, MASTER_PORT=str(free_port()))
    ended = run_python([str(_PROGRAM)], env=environment, cwd=tmp_path, timeout=200)
    assert ended.returncode == 0, ended.stderr
    (path,) = {path.resolve() for path in (tmp_path / "runs").glob("*/rank*.ledger")}
    passes = [record for record in whole_ledger.read(path).passes if record.op in ("forward", "backward")]
    assert [record.op for record in passes] == ["forward", "backward"] * 5
    assert [record.is_held_back for record in passes if record.op == "forward"] == [True, False, True, False, False]
    assert not any(record.is_held_back for record in passes if record.op == "backward")
    assert alone.returncode == 0
    assert ended.stdout == alone.stdout
