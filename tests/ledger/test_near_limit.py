"""Near the recursion limit a call of torch works or fails as it does without the probe."""

import json
from pathlib import Path
from typing import Any, Dict

import pytest

from ddp_probe.reading import whole_ledger

pytestmark = pytest.mark.slow
_PROGRAM = Path(__file__).parent / "programs" / "near_limit.py"
_RANK = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}
_MORE = {"wait": 2, "save": 2, "unpickled": 1}
"""What a Python function in place of one in C needs, the wrapper of a call, and a hook in a function of torch's that calls nothing."""


def test_near_the_recursion_limit_a_call_fails_where_it_fails_anyway(clean_env: Any, armed: Any, run_python: Any, tmp_path: Path) -> None:
    """With ever less room on the stack each call works down to the same depth, and a job that fills the stack afterwards is not aborted."""
    told: Dict[str, Any] = {}
    for way, env in (("bare", clean_env(**_RANK)), ("probed", armed(tmp_path / "runs", **_RANK))):
        done = run_python([str(_PROGRAM)], env=env, cwd=tmp_path, timeout=280)
        assert done.returncode == 0, done.stderr[:2000]
        assert "ddp_probe" not in done.stderr
        told[way] = json.loads(done.stdout)
    for name, bare in told["bare"].items():
        probed = told["probed"][name]
        assert probed["kinds"] == bare["kinds"] == ["RecursionError"], name
        assert probed["needs"] == probed["fails"] <= bare["fails"] + _MORE.get(name.partition(",")[0], 0), (name, bare, probed)
    (ledger,) = {path.resolve() for path in (tmp_path / "runs").glob("*/rank*.ledger")}
    last = whole_ledger.read(ledger).records[-1]
    assert (last.op, last.state) == ("barrier", "returned")
    assert '"event":"probe.fault"' not in "".join(path.read_text() for path in (tmp_path / "runs").glob("*/*.jsonl"))
