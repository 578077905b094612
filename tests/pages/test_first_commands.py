"""The five commands of the README, typed one after the other in a Python that has torch and the package, and nothing installed."""

import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple

import pytest
import shebang
from page_blocks import REPO, blocks

# Fails on every host in the same way, and as soon as torch is imported.
_PROGRAM = 'import torch.distributed as dist\n\ndist.init_process_group("eccl")\n'
_TORCHRUN = "import sys\nfrom torch.distributed.run import main\nsys.exit(main())\n"
pytestmark = pytest.mark.slow


class Typed(NamedTuple):
    """A line that was typed, and what came of it."""

    line: str
    code: int
    out: str
    err: str
    files: List[str]  # In site-packages, afterwards.


def _environment(folder: Path) -> Path:
    """Make a Python that finds what this one finds; pip does nothing, as tests/packaging installs the wheel."""
    venv.create(str(folder), symlinks=True)
    (site,) = folder.glob("lib/python3.*/site-packages")
    (site / "found.pth").write_text("\n".join([str(REPO), *(path for path in sys.path if path.endswith("site-packages"))]), encoding="utf-8")
    for name, text in (("torchrun", shebang.of(folder / "bin" / "python") + _TORCHRUN), ("pip", "#!/bin/sh\n")):
        (folder / "bin" / name).write_text(text, encoding="utf-8")
        (folder / "bin" / name).chmod(0o755)
    return site


def _here(line: str, port: int) -> str:
    """Put in what a test has: two ranks in place of eight, a port, and no live checks, which tests/doctor runs."""
    line = line.replace("--nproc_per_node=8", "--nproc_per_node=2 --master_addr=127.0.0.1 --master_port=%d" % port)
    return line.replace("ddp_probe doctor ", "ddp_probe doctor --static ")


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory, clean_env: Callable[..., Dict[str, str]], free_port: Callable[[], int]) -> Dict[str, Typed]:
    """Type each line of the README's block of five commands."""
    work = tmp_path_factory.mktemp("five")
    (work / "job").mkdir()
    (work / "job" / "train.py").write_text(_PROGRAM, encoding="utf-8")
    site = _environment(work / "venv")
    env = clean_env(PATH="%s:%s" % (work / "venv" / "bin", os.environ["PATH"]), COLUMNS="80", LC_ALL="C.UTF-8", PYTHONPATH=None)
    found = {"": Typed("", 0, "", "", _names(site))}
    port = free_port()
    (five,) = [block.text for block in blocks("README.md") if "ddp_probe install " in block.text]
    for line in five.splitlines():
        done: Any = subprocess.run(
            ["bash", "-c", _here(line, port)], cwd=work / "job", env=env, capture_output=True, text=True, timeout=180, check=False
        )
        words = line.partition("#")[0].split()
        found[words[3] if "ddp_probe" in words else words[0]] = Typed(line, done.returncode, done.stdout, done.stderr, _names(site))
    return found


def _names(site: Path) -> List[str]:
    return sorted(path.name for path in site.iterdir() if path.name != "__pycache__")


def test_install_proves_that_it_works(typed: Dict[str, Typed]) -> None:
    """install says what it has written, and that a child interpreter was started by it."""
    assert typed["install"].code == 0, typed["install"].err
    assert "proved " in typed["install"].out
    assert set(typed["install"].files) - set(typed[""].files) == {"sitecustomize.py", "ddp_probe.pth", "ddp_probe_activator.py"}


def test_doctor_says_that_the_job_will_be_recorded(typed: Dict[str, Typed]) -> None:
    """doctor finds the probe in place for this Python."""
    assert "ok DOC501 activator" in typed["doctor"].out, typed["doctor"]


def test_the_usual_command_names_the_finding_by_itself(typed: Dict[str, Typed]) -> None:
    """The launch fails as it does without the probe, and ends with a line that names the rule."""
    launch = typed["DDP_PROBE=1"]
    assert launch.code != 0
    assert "ddp_probe: DDP" in launch.err
    assert "eccl" in launch.err


def test_report_names_rank_line_and_change(typed: Dict[str, Typed]) -> None:
    """report finds the run, names both ranks and the line of the job, and says what to change."""
    report = typed["report"]
    assert report.code == 1, report
    assert "ranks 0-1" in report.out
    assert "> 3 | dist.init_process_group" in report.out
    assert "\n  change\n" in report.out


def test_uninstall_leaves_nothing(typed: Dict[str, Typed]) -> None:
    """uninstall removes what install wrote, and nothing else."""
    assert typed["uninstall"].code == 0
    assert typed["uninstall"].files == typed[""].files
