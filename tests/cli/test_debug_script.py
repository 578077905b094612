"""scripts/debug_mmengine_ddp.py installs beside mmengine, and edits nothing of it."""

import hashlib
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest


@pytest.fixture
def venv_python(tmp_path):
    """A virtual environment that sees what the tests' interpreter has installed, and into which the script may install."""
    base = getattr(sys, "base_prefix", sys.prefix)
    subprocess.run([base + "/bin/python%d.%d" % sys.version_info[:2], "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True, timeout=60)
    site = next((tmp_path / "venv").glob("lib/python3.*/site-packages"))
    (site / "a_tests.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return str(tmp_path / "venv" / "bin" / "python")


def test_it_installs_and_restores(run_python, repo, clean_env, venv_python, tmp_path):
    """It names the runner.py that it leaves untouched, installs, and --restore leaves the tree as it was."""
    site = next((tmp_path / "venv").glob("lib/python3.*/site-packages"))
    runner = Path(sysconfig.get_path("purelib"), "mmengine", "runner", "runner.py")
    before, hashed = set(site.rglob("*")), hashlib.sha256(runner.read_bytes()).hexdigest()
    script, env = repo / "scripts" / "debug_mmengine_ddp.py", clean_env(PYTHONPATH=None)
    done = run_python([script], env=env, cwd=tmp_path, python=venv_python)
    assert done.returncode == 0, done.stderr
    assert "runner.py    %s (left untouched)" % runner in done.stdout
    assert "DDP_PROBE=1 torchrun" in done.stdout
    assert hashlib.sha256(runner.read_bytes()).hexdigest() == hashed
    started = run_python(
        "import sys; print(sys.modules['ddp_probe.activation'].state() != 'off')", env=clean_env(PYTHONPATH=None, DDP_PROBE="1"), python=venv_python
    )
    assert started.stdout == "True\n", started.stderr
    done = run_python([script, "--restore"], env=env, cwd=tmp_path, python=venv_python)
    assert done.returncode == 0, done.stderr
    assert set(site.rglob("*")) == before


def test_it_looks_without_importing(run_python, repo, clean_env, tmp_path, venv_python):
    """It imports neither torch nor mmengine."""
    code = (
        "import runpy, sys; runpy.run_path(%r, run_name='script')['_environment']()\n"
        "print([name for name in ('torch', 'mmengine') if name in sys.modules], file=sys.stderr)"
    )
    done = run_python(code % str(repo / "scripts" / "debug_mmengine_ddp.py"), env=clean_env(PYTHONPATH=None), python=venv_python)
    assert "runner.py    " in done.stdout
    assert done.stderr == "[]\n"
