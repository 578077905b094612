"""Calls woven into a function's own source: the function stays what it was, on each Python."""

import json
from pathlib import Path
from typing import Any

import ddp_probe

_PROGRAM = Path(__file__).parent / "programs" / "woven_shapes.py"


def test_functions_of_all_shapes_stay_what_they_were(interpreters: Any, run_python: Any, clean_env: Any, tmp_path: Path) -> None:
    """Results, exceptions, tracebacks with their columns, warnings, frames and lines are as before, and each call begins once and ends once."""
    assert len(interpreters) > 1
    for interpreter in interpreters:
        program = ["-W", "ignore", str(_PROGRAM), str(Path(ddp_probe.__file__).parent)]
        done = run_python(program, env=clean_env(), cwd=tmp_path, timeout=100, python=str(interpreter.path))
        assert done.returncode == 0, (interpreter, done.stderr)
        count, different, refused = json.loads(done.stdout)
        assert count > 15, (interpreter, count)
        assert not different, (interpreter, different)
        assert refused == [
            "",
            "its source is not what runs",
            "its source is not what runs",
            "its source is not there",
            "it looks at its own names",
            "it returns twice",
        ], (interpreter, refused)
