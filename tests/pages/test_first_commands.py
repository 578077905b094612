"""The first commands of the README, in both languages, typed into one shell: the environment is made, and has torch and the package."""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple

import pytest
from page_blocks import REPO, blocks

# Fails on every host in the same way, and as soon as torch is imported.
_PROGRAM = 'import torch.distributed as dist\n\ndist.init_process_group("eccl")\n'
_TORCHRUN = '#!/bin/sh\nexec "${0%/*}/python" -m torch.distributed.run "$@"\n'
_PYTHON = """\
#!/bin/sh
{python} "$1" "$2" --without-pip "$3" "$4" || exit
cp {here}/found.pth "$4"/lib/python3.*/site-packages
cp {here}/torchrun "$4/bin/torchrun"
echo '#!/bin/sh' >"$4/bin/pip"
chmod +x "$4/bin/torchrun" "$4/bin/pip"
"""
_ONE = """\
exec >out.{number} 2>err.{number}
{line}
echo $? >code.{number}
ls -I __pycache__ .venv-job/lib/python3.*/site-packages >files.{number}
"""
pytestmark = pytest.mark.slow


class Typed(NamedTuple):
    """A line that was typed, and what came of it."""

    line: str
    code: int
    out: str
    err: str
    files: List[str]  # In site-packages, afterwards.


def _system(folder: Path) -> None:
    """Put on PATH the system's python3, which has torch; what it makes has the package, and a pip that does nothing, as tests/packaging installs."""
    folder.mkdir()
    found = [str(REPO), *(path for path in sys.path if path.endswith("site-packages"))]
    (folder / "found.pth").write_text("\n".join(found), encoding="utf-8")
    (folder / "torchrun").write_text(_TORCHRUN, encoding="utf-8")
    python = folder / "python3"
    python.write_text(_PYTHON.format(python=shlex.quote(sys.executable), here=shlex.quote(str(folder))), encoding="utf-8")
    python.chmod(0o755)


def _here(line: str, port: int) -> str:
    """Put in what a test has: two ranks in place of eight, a port, and no live checks, which tests/doctor runs."""
    line = line.replace("--nproc_per_node=8", "--nproc_per_node=2 --master_addr=127.0.0.1 --master_port=%d" % port)
    return line.replace("ddp_probe doctor ", "ddp_probe doctor --static ")


@pytest.fixture(scope="module", params=["README.md", "README_zh-CN.md"])
def typed(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    clean_env: Callable[..., Dict[str, str]],
    free_port: Callable[[], int],
) -> Dict[str, Typed]:
    """Type each line of a README's first block into one shell, and keep what came of each."""
    work = tmp_path_factory.mktemp("first commands")
    (work / "job").mkdir()
    (work / "job" / "train.py").write_text(_PROGRAM, encoding="utf-8")
    _system(work / "system")
    port = free_port()
    (block,) = [block.text for block in blocks(request.param) if "ddp_probe install " in block.text]
    lines = block.splitlines()
    script = "".join(_ONE.format(number=number, line=_here(line, port)) for number, line in enumerate(lines))
    env = clean_env(PATH="%s:%s" % (work / "system", os.environ["PATH"]), COLUMNS="80", LC_ALL="C.UTF-8", PYTHONPATH=None)
    subprocess.run(["bash", "-c", script], cwd=work / "job", env=env, stdin=subprocess.DEVNULL, timeout=250, check=True)
    results = {}
    for number, line in enumerate(lines):
        out, err, code, files = ((work / "job" / ("%s.%d" % (name, number))).read_text(encoding="utf-8") for name in ("out", "err", "code", "files"))
        words = line.partition("#")[0].split()
        name = words[2] if "venv" in words else words[0]
        results[words[3] if "ddp_probe" in words else name] = Typed(line, int(code), out, err, files.split())
    return results


def test_each_line_ends_as_it_should(typed: Dict[str, Typed]) -> None:
    """Of all lines two end with another code than 0: the launch, which fails, and report, which has found why."""
    assert len(typed) == 8
    assert {name for name, line in typed.items() if line.code} == {"DDP_PROBE=1", "report"}, typed


def test_install_proves_that_it_works(typed: Dict[str, Typed]) -> None:
    """install says what it has written, and that a child interpreter was started by it."""
    assert typed["install"].code == 0, typed["install"].err
    assert "proved " in typed["install"].out
    assert set(typed["install"].files) - set(typed["pip"].files) == {"sitecustomize.py", "ddp_probe.pth", "ddp_probe_activator.py"}


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
    assert typed["uninstall"].files == typed["pip"].files
