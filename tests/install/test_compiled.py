"""What install writes is compiled: a start that may not write bytecode compiles nothing of it."""

import os
import re
import shutil
from pathlib import Path

import pytest

_WAYS = [("oldest", "sitecustomize"), ("oldest", "pth"), ("newest", "sitecustomize"), ("newest", "pth"), ("debian", "pth")]
_QUIET = {"PYTHONDONTWRITEBYTECODE": "1"}


def _compiled_at_start(venv, **extra):
    """Return which files below site-packages an interpreter compiles at its start, and how many it takes compiled."""
    done = venv.run(["-v", "-c", "pass"], **{**_QUIET, **extra})
    assert done.returncode == 0, done.stderr
    taken = [Path(path.strip("'\"")) for path in re.findall(r"^# code object from (.+)$", done.stderr, re.MULTILINE)]
    ours = [path for path in taken if venv.site in path.parents]
    return [path.name for path in ours if path.suffix == ".py"], len(ours)


@pytest.mark.parametrize(("which", "via"), _WAYS)
@pytest.mark.parametrize("value", [None, "1"])
def test_a_start_compiles_nothing(make_venv, which, via, value):
    """With PYTHONDONTWRITEBYTECODE a start after install compiles no file, with DDP_PROBE unset and with DDP_PROBE=1."""
    venv = make_venv(which)
    venv.install(via)
    compiled, seen = _compiled_at_start(venv, DDP_PROBE=value)
    assert compiled == []
    assert (seen > 0) == (via == "sitecustomize" or value == "1")


@pytest.mark.parametrize("via", ["sitecustomize", "pth"])
def test_a_copied_tree_stays_compiled(make_venv, via):
    """Files whose times have changed, as in a copied tree or an image, are still taken compiled."""
    venv = make_venv()
    venv.install(via)
    for path in venv.site.glob("*.py"):
        os.utime(path, (86400, 86400))
    assert [name for name in _compiled_at_start(venv, DDP_PROBE="1")[0] if name in ("sitecustomize.py", "ddp_probe_activator.py")] == []
    assert _compiled_at_start(venv)[0] == []


def test_a_file_that_takes_its_place_is_what_runs(make_venv):
    """Another's sitecustomize of the same size and time runs in place of what was compiled."""
    venv = make_venv()
    venv.install("sitecustomize")
    path = venv.site / "sitecustomize.py"
    seen = path.stat()
    path.write_text("print('theirs')\n".ljust(seen.st_size, "#"))
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert path.stat().st_size == seen.st_size
    assert venv.run("pass", **_QUIET).stdout == "theirs\n"


@pytest.mark.parametrize("via", ["sitecustomize", "pth"])
def test_uninstall_leaves_no_compiled_file(make_venv, via):
    """Where there was no folder of compiled files, there is none after uninstall, nor after a change of the way."""
    venv = make_venv()
    shutil.rmtree(venv.site / "__pycache__")
    before = venv.tree()
    venv.install(via)
    assert sorted(path.name.split(".")[0] for path in (venv.site / "__pycache__").iterdir()) == (
        ["ddp_probe_activator", "sitecustomize"] if via == "sitecustomize" else ["ddp_probe_activator"]
    )
    venv.install("pth")
    assert [path.name.split(".")[0] for path in (venv.site / "__pycache__").iterdir()] == ["ddp_probe_activator"]
    assert venv.probe("uninstall").returncode == 0
    assert venv.tree() == before


def test_a_refused_install_leaves_no_compiled_file(make_venv):
    """An install whose proof fails leaves the tree as it was, without a folder of compiled files."""
    venv = make_venv()
    shutil.rmtree(venv.site / "__pycache__")
    (venv.site / "ddp_probe" / "activation" / "targets.py").write_text("def\n")
    before = venv.tree()
    assert venv.probe("install", **_QUIET).returncode == 1
    assert venv.tree() == before


def test_status_says_what_is_not_compiled(make_venv):
    """status names a file that is not compiled for this interpreter, and install compiles it."""
    venv = make_venv()
    venv.install()
    (cached,) = (venv.site / "__pycache__").glob("ddp_probe_activator.*")
    assert "not compiled" not in venv.probe("status", **_QUIET).stdout
    cached.unlink()
    done = venv.probe("status", **_QUIET)
    assert done.returncode == 0
    assert "ddp_probe_activator.py (not compiled for this interpreter: install compiles it)" in done.stdout
    venv.install()
    assert cached.is_file()
    assert "not compiled" not in venv.probe("status", **_QUIET).stdout


def test_what_cannot_be_compiled_is_installed(make_venv):
    """Where the compiled file cannot be written, install works, the probe starts, and uninstall leaves what was in the way."""
    venv = make_venv()
    shutil.rmtree(venv.site / "__pycache__")
    (venv.site / "__pycache__").write_text("in the way")
    before = venv.tree()
    venv.install()
    assert venv.started(**_QUIET) == "True"
    assert "not compiled" in venv.probe("status", **_QUIET).stdout
    assert venv.probe("uninstall").returncode == 0
    assert venv.tree() == before
