"""pip uninstall without our own uninstall before it: what install wrote is still there, and says how to remove it."""

from pathlib import Path
from typing import Any, Callable, Dict, List

import base_python
import pytest

from ddp_probe.activation.installer import child

_PROGRAM = "print('result'); raise SystemExit(5)"


@pytest.mark.parametrize("via", ["sitecustomize", "pth"])
@pytest.mark.parametrize("options", [[], ["-O"]], ids=["nothing-left", "compiled-files-left"])
def test_one_line_names_the_file_to_delete(
    via: str,
    options: List[str],
    fresh_env: Callable[..., Path],
    install: Callable[..., None],
    pip: Callable[..., None],
    run_python: Callable[..., Any],
    clean_env: Callable[..., Dict[str, str]],
    wheel: Path,
    tmp_path: Path,
) -> None:
    """An armed start says one line, also if pip has left what was compiled with -O; the program runs, and the advice works."""
    python = fresh_env(base_python.without_sitecustomize(tmp_path / "base"))
    (site,) = python.parent.parent.glob("lib/python3.*/site-packages")
    for name in (*child.TO_RECORD, "typing_extensions"):
        (site / (name + ".py")).touch()
    before = {path.name for path in site.iterdir()}
    install(python, wheel)
    env = clean_env(PYTHONPATH=None, DDP_PROBE_STRICT=None)

    def start(*words: Any, **extra: str) -> Any:
        done = run_python([*options, *words], python=str(python), env={**env, **extra}, cwd=tmp_path)
        return done.returncode, done.stdout, done.stderr

    assert start("-m", "ddp_probe", "install", "--via", via)[0] == 0
    assert start("-c", _PROGRAM, DDP_PROBE="1") == (5, "result\n", "")
    pip(python, "uninstall", "--yes", "ddp-probe")
    assert (site / "ddp_probe").exists() == bool(options)
    code, out, err = start("-c", _PROGRAM, DDP_PROBE="1")
    assert (code, out) == (5, "result\n")
    assert err.startswith("ddp_probe: not active: The package is gone, and %s is still there. Delete that file, " % (site / "ddp_probe_activator.py"))
    assert err.count("\n") == 1
    assert start("-c", _PROGRAM) == (5, "result\n", "")
    assert start("-m", "ddp_probe_activator", "uninstall")[0] == 0
    assert {path.name for path in site.iterdir()} - {"ddp_probe", "__pycache__"} == before - {"__pycache__"}
    assert start("-c", _PROGRAM, DDP_PROBE="1") == (5, "result\n", "")
