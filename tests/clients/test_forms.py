"""The forms of the activator beside opentelemetry-instrument itself, which puts a sitecustomize of its own first on PYTHONPATH."""

import os
import subprocess
from pathlib import Path
from typing import Any, Callable, Dict, Set

import pytest

_HOOKS = (
    "import sys; activator = sys.modules.get('ddp_probe_activator'); print(sys.modules['sitecustomize'].__file__.split('/')[-2], "
    "*getattr(activator, 'calls', []), sum(type(one).__name__ == 'ImportHook' for one in sys.meta_path))"
)


def _site(programs: Path) -> Set[str]:
    (site,) = programs.parent.glob("lib/python*/site-packages")
    return {path.name for path in site.iterdir() if path.name != "__pycache__"}


@pytest.mark.parametrize(
    ("via", "armed"), [("auto", "pth 1"), ("pth", "pth 1"), ("sitecustomize", "0")], ids=["both", "the line alone", "sitecustomize alone"]
)
def test_beside_opentelemetry_instrument(
    bare_interpreter: Path, clean_env: Callable[..., Dict[str, str]], tmp_path: Path, via: str, armed: str
) -> None:
    """Its sitecustomize runs; the line arms once beside it, sitecustomize.py cannot; without it each form arms once; uninstall removes every file."""
    env = clean_env(PATH="%s:%s" % (bare_interpreter, os.environ["PATH"]), HOME=str(tmp_path), PYTHONPATH=None, OTEL_SDK_DISABLED="true")

    def run(*words: str, **extra: str) -> Any:
        return subprocess.run(words, env={**env, **extra}, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True).stdout

    before = _site(bare_interpreter)
    run("python", "-m", "ddp_probe", "install", "--via", via)
    assert run("opentelemetry-instrument", "python", "-c", _HOOKS, DDP_PROBE="1") == "auto_instrumentation %s\n" % armed
    assert run("opentelemetry-instrument", "python", "-c", _HOOKS) == "auto_instrumentation 0\n"
    alone = {"auto": "pth sitecustomize 1", "pth": "pth 1", "sitecustomize": "sitecustomize 1"}[via]
    code = _HOOKS.replace("sys.modules['sitecustomize'].__file__.split('/')[-2]", "''")
    assert run("python", "-c", code, DDP_PROBE="1").strip() == alone
    run("python", "-m", "ddp_probe", "uninstall")
    assert _site(bare_interpreter) == before
