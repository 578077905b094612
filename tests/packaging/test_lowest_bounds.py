"""The lowest versions that setup.cfg allows are installed and used; they are those of Python 3.8."""

import configparser
import contextlib
import os
import sys
import sysconfig
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

pytestmark = pytest.mark.skipif(sys.version_info[:2] != (3, 8), reason="The bounds are those of Python 3.8: ./scripts/test --legacy runs this.")

_IMPORT_ALL = """
import importlib, pkgutil, ddp_probe
names = [module.name for module in pkgutil.walk_packages(ddp_probe.__path__, "ddp_probe.")]
for name in names:
    if not name.endswith(("__main__", "pytest_plugin")) and "sitecustomize_templates" not in name:  # pytest has bounds of its own
        importlib.import_module(name)
print(len(names))
"""


def _lowest(setup_cfg: configparser.ConfigParser) -> List[str]:
    """Turn each name>=version into name==version; the page's are an extra."""
    lines = [*setup_cfg["options"]["install_requires"].strip().splitlines(), *setup_cfg["options.extras_require"]["html"].strip().splitlines()]
    return [line.split(";")[0].strip().replace(">=", "==") for line in lines]


@pytest.fixture(scope="module")
def lowest(
    setup_cfg: configparser.ConfigParser, wheel: Path, fresh_env: Callable[..., Path], pip: Callable[..., None], run_python: Callable[..., Any]
) -> str:
    """An environment with every dependency at its lowest; torch comes from the environment of the tests, behind them on the path."""
    python = fresh_env()
    wanted = _lowest(setup_cfg)
    kept = Path(sys.prefix, "lowest-bounds-wheels", "_".join(wanted).replace("==", "-"))  # Downloaded once per environment.
    if not kept.is_dir():
        partial = kept.with_name("partial-%d" % os.getpid())
        pip(python, "download", "--only-binary=:all:", "-d", partial, *wanted)
        with contextlib.suppress(OSError):  # Somebody else was faster.
            partial.rename(kept)
    pip(python, "install", "--no-index", "--no-compile", "--find-links", kept, *wanted, wheel)
    where = run_python("import sysconfig; print(sysconfig.get_path('purelib'))", python=str(python)).stdout.strip()
    Path(where, "torch-of-the-tests.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return str(python)


def test_the_lowest_versions_are_what_is_imported(lowest: str, setup_cfg: configparser.ConfigParser, run_python: Callable[..., Any]) -> None:
    """The environment really has the lowest versions, although newer ones lie behind them on the path."""
    code = "import sys; from importlib.metadata import version; print(*[version(name) for name in sys.argv[1:]])"
    wanted = [line.split("==") for line in _lowest(setup_cfg)]
    done = run_python(["-c", code, *(name for name, _ in wanted)], python=lowest)
    assert [version.split(".")[:2] for version in done.stdout.split()] == [version.split(".") for _, version in wanted], done.stderr


def test_every_module_imports_with_the_lowest_versions(lowest: str, run_python: Callable[..., Any], tmp_path: Path) -> None:
    """No module needs more than the lowest versions have."""
    done = run_python(_IMPORT_ALL, python=lowest, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10


def test_the_page_is_made_with_the_lowest_versions(lowest: str, run_python: Callable[..., Any], repo: Path, tmp_path: Path) -> None:
    """The lowest jinja2 makes the page."""
    run = repo / "tests" / "recorded" / "legacy" / "03_submodule_left_behind"
    done = run_python(["-m", "ddp_probe", "report", "--html", "page.html", run], python=lowest, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_the_schema_is_printed_with_the_lowest_versions(lowest: str, run_python: Callable[..., Any], tmp_path: Path) -> None:
    """The published schema comes out of the lowest msgspec."""
    done = run_python(["-m", "ddp_probe", "schema"], python=lowest, cwd=tmp_path)
    assert (done.returncode, done.stdout[:1]) == (0, "{"), done.stderr


def test_a_job_is_recorded_with_the_lowest_versions(
    lowest: str,
    run_python: Callable[..., Any],
    free_port: Callable[[], int],
    clean_env: Callable[..., Dict[str, str]],
    read_events: Callable[[Path], List[Dict[str, Any]]],
    repo: Path,
    tmp_path: Path,
) -> None:
    """A DDP job under the lowest wrapt and msgspec leaves the begin and the end of DDP.__init__ for each rank."""
    launch = [lowest, "-m", "torch.distributed.run", "--nproc_per_node=2", "--master_port=%d" % free_port(), repo / "scripts" / "demo_job.py"]
    command = ["-m", "ddp_probe", "run", "--dir", tmp_path / "runs", "--", *launch]
    done = run_python(command, python=lowest, env=clean_env(), cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    seen = sorted((event["rank"], event["phase"]) for event in read_events(tmp_path / "runs" / "latest") if event["event"] == "ddp.init")
    assert seen == [(0, "begin"), (0, "end"), (1, "begin"), (1, "end")]
