"""The README's two lines for a container without a network: the first with one, the second and all that follows in a namespace without a route."""

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

pytestmark = [
    pytest.mark.skipif(sys.version_info[:2] != (3, 8), reason="The container's Python is 3.8: ./scripts/test --legacy runs this."),
    pytest.mark.timeout(600),
]

_BUILT_WITH = ("setuptools>=64", "wheel")
_PIP = '#!/bin/sh\nexec %s -m pip --python %s "$@"\n'
_TRAIN = "import time\n\n\ndef wait_for_data():\n    while True:\n        time.sleep(0.02)\n\n\nprint(flush=True)\nwait_for_data()\n"
_ROUTES = "import sys; sys.exit(len(open('/proc/net/route').read().splitlines()) > 1)"  # The first line has the names of the columns.
_LOOK = """\
RANK=0 WORLD_SIZE=1 MASTER_PORT={number} python train.py >started & pid=$!
until [ -s started ]; do sleep 0.1; done
python -m ddp_probe attach --looks 2 --within 0.4 $pid; code=$?
kill $pid
exit $code
"""
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def _recipe(repo: Path) -> List[str]:
    """Return the two lines: what a machine with a network runs, and what the container does."""
    lines = re.findall(r"^    (pip (?:wheel|install --no-index) .*?)\s+#", (repo / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(lines) == 2
    return lines


@pytest.fixture(scope="module")
def downloads(pip: Callable[..., None], setup_cfg: Any) -> Path:
    """What pip would fetch for the first line, downloaded once per environment of the tests."""
    wanted = [*_BUILT_WITH, *setup_cfg["options"]["install_requires"].strip().splitlines()]
    wanted += [line for extra in ("html", "attach") for line in setup_cfg["options.extras_require"][extra].split("\n") if line]
    kept = Path(sys.prefix, "offline-wheels", re.sub(r"[^\w.]+", "-", "_".join(wanted)))
    if not kept.is_dir():
        partial = kept.with_name("partial-%d" % os.getpid())
        pip(Path(sys.executable), "download", "--only-binary=:all:", "-d", partial, *wanted)
        with contextlib.suppress(OSError):  # Somebody else was faster.
            partial.rename(kept)
    return kept


@pytest.fixture(scope="module")
def offline(
    repo: Path, sources: Path, downloads: Path, fresh_env: Callable[..., Path], clean_env: Callable[..., Dict[str, str]], tmp_path_factory: Any
) -> Run:
    """A container's shell: the recipe was followed in it, and it has no network."""
    online, container = _recipe(repo)
    python = fresh_env()
    (python.parent / "pip").write_text(_PIP % (shlex.quote(sys.executable), shlex.quote(str(python))), encoding="utf-8")
    (python.parent / "pip").chmod(0o755)
    work = tmp_path_factory.mktemp("container")
    (work / "train.py").write_text(_TRAIN, encoding="utf-8")
    alone = {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_COMPILE": "1"}
    env = clean_env(PATH="%s:%s" % (python.parent, os.environ["PATH"]), PYTHONPATH=None, DDP_PROBE_DIR=str(work / "runs"), COLUMNS="80", **alone)
    registry = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": downloads.as_uri()}  # pip splits it at spaces.
    done = subprocess.run(["bash", "-ec", online], cwd=sources, env={**env, **registry}, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    shutil.move(str(sources / "wheels"), str(work))
    apart = ["unshare", "--net"] if os.getuid() == 0 else ["unshare", "--net", "--map-root-user"]

    def typed(script: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([*apart, "bash", "-uc", script], cwd=work, env=env, capture_output=True, text=True, timeout=240, check=False)

    if not shutil.which("unshare") or typed("true").returncode:
        pytest.skip("This user may not make a network namespace.")
    done = typed("python -c %s && %s" % (shlex.quote(_ROUTES), container))
    assert done.returncode == 0, done.stdout + done.stderr
    return typed


def test_the_page_is_written_there(offline: Run, repo: Path, tmp_path: Path) -> None:
    """report --html finds jinja2 among the wheels and writes the page of a recorded run."""
    run = repo / "tests" / "recorded" / "legacy" / "03_submodule_left_behind"
    page = tmp_path / "page.html"
    done = offline("python -m ddp_probe report --html %s %s" % (shlex.quote(str(page)), shlex.quote(str(run))))
    assert done.returncode == 1, done.stderr
    assert "DDP104" in done.stdout
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_running_process_is_read_there(offline: Run) -> None:
    """attach finds py-spy among the wheels and names the line at which a process stands that was started without the probe."""
    done = offline(_LOOK.format(number=100000 + os.getpid()))
    assert done.returncode == 3, done.stdout + done.stderr
    assert "train.py:6 wait_for_data" in done.stdout
