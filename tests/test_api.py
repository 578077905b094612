"""The public API: what docs/api.md and its notebook say, typed, and absent from a rank."""

import contextlib
import dataclasses
import io
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

import ddp_probe
from ddp_probe.api import Finding, ProbeError

_JOB = "03_ddp_device_ids_on_cpu"
_NOTEBOOK = "docs/read-a-run.ipynb"
_FENCE = re.compile(r"^```python\n(.*?)^```", re.M | re.S)


@pytest.fixture
def beside_a_run(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a folder in which the newest run is that of a job that failed."""
    shutil.copytree(str(repo / "tests" / "recorded" / "new" / _JOB), str(tmp_path / "ddp_probe_runs" / "latest"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _said(code: str, names: Dict[str, Any]) -> str:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(code, "cell", "exec"), names)
    return said.getvalue()


def test_the_page_runs(repo: Path, beside_a_run: Path) -> None:
    """Each block of docs/api.md runs after the one before, prints the finding with its remedy and evidence, and its test fails as the run does."""
    names: Dict[str, Any] = {}
    brief, findings, error, *_ = (_said(code, names) for code in _blocks(repo / "docs" / "api.md"))
    assert brief.startswith("DDP106 device-ids-on-cpu [ranks 0-1]: ")
    assert "DDP106 device-ids-on-cpu [0, 1] high" in findings
    assert "write device_ids=" in findings
    assert "device_ids [1] from /train" in findings
    assert "python -m ddp_probe runs" in error
    with pytest.raises(AssertionError):
        names["test_the_launch_ends_well"]()


def _blocks(page: Path) -> List[str]:
    return _FENCE.findall(page.read_text(encoding="utf-8"))


def test_the_notebook_runs(repo: Path, beside_a_run: Path) -> None:
    """Each cell of the notebook runs, and the cell that ends with the diagnosis shows the page.

    No Jupyter is in the tests' environment: the cells run one after another in one namespace, and the last line's value is asked for its HTML.
    """
    names: Dict[str, Any] = {}
    cells = ["".join(cell["source"]) for cell in json.loads((repo / _NOTEBOOK).read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    said = [_said(cell, names) for cell in cells]
    assert "with ranks [0, 1] of 2" in said[0]
    assert said[1].startswith("DDP106 ")
    assert cells[2] == "diagnosis"
    assert said[3].startswith("DDP106 error high [0, 1]\n")
    assert said[4].startswith("found ['$schema', 'findings', ")
    page = unescape(re.findall(r'srcdoc="([^"]*)"', names["diagnosis"]._repr_html_())[0])
    assert page.startswith("<!DOCTYPE html>")
    assert "device-ids-on-cpu" in page


def test_findings_are_frozen(beside_a_run: Path) -> None:
    """A finding is a frozen dataclass, whose fields of report.json have its values."""
    diagnosis = ddp_probe.diagnose(ddp_probe.read())
    finding = diagnosis.findings[0]
    assert isinstance(finding, Finding)
    with pytest.raises(dataclasses.FrozenInstanceError):
        finding.verdict = "x"  # type: ignore[misc]
    told = json.loads(diagnosis.to_json())["findings"][0]
    same = [name for name in told if name not in ("evidence", "facts")]
    assert {name: getattr(finding, name) for name in same} == {name: told[name] for name in same}


def test_rules_can_be_chosen(beside_a_run: Path) -> None:
    """Only the rules that are named are asked, by id or name; an unknown one is refused."""
    run = ddp_probe.read("ddp_probe_runs/latest")
    assert [finding.id for finding in ddp_probe.diagnose(run, rules=["device-ids-on-cpu"]).findings] == ["DDP106"]
    assert ddp_probe.diagnose(run, rules=["DDP104"]).findings == []
    with pytest.raises(ProbeError, match="DDP9"):
        ddp_probe.diagnose(run, rules=["DDP9"])


def test_a_bundle_stays_readable_as_long_as_its_run(beside_a_run: Path, run_python: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A bundle is named by its own name in each form, also after another run has been read; what it was unpacked to goes with its run."""
    made = run_python(["-m", "ddp_probe", "bundle", "--output", "one.tar.gz", "ddp_probe_runs/latest"])
    assert made.returncode in (0, 1), made.stderr
    place = beside_a_run / "unpacked"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    run = ddp_probe.read("one.tar.gz")
    other = ddp_probe.read("ddp_probe_runs/latest")
    told = json.loads(ddp_probe.diagnose(run).to_json())
    assert all(file.startswith("one.tar.gz/") for file in told["inventory"]["files"])
    assert json.loads(ddp_probe.diagnose(other).to_json())["inventory"]["files"][0].startswith("ddp_probe_runs/")
    assert list(place.iterdir()) != []
    del run
    assert list(place.iterdir()) == []


def test_what_is_not_a_path_or_a_run_is_said_so(beside_a_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of paths and a path in place of a run are refused with what to write; bytes, ~ and one name of a rule are taken."""
    with pytest.raises(TypeError, match=r"paths one by one, as in read\(\*paths\), not list"):
        ddp_probe.read(["ddp_probe_runs/latest"])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"not str: diagnose\(read\(path\)\)"):
        ddp_probe.diagnose("ddp_probe_runs/latest")  # type: ignore[arg-type]
    monkeypatch.setenv("HOME", str(beside_a_run))
    runs: List[Any] = [ddp_probe.read(path) for path in (b"ddp_probe_runs/latest", "~/ddp_probe_runs/latest", Path("ddp_probe_runs/latest"))]  # type: ignore[arg-type]
    assert [repr(run) for run in runs] == ["<Run '%s': 2 of 2 ranks, %d files>" % (runs[0].name, len(runs[0].inventory.files))] * 3
    assert [finding.id for finding in ddp_probe.diagnose(runs[0], rules="DDP106").findings] == ["DDP106"]


def test_a_diagnosis_is_pickled(beside_a_run: Path) -> None:
    """A diagnosis that another process is given says the same there, as JSON, as text and as a page."""
    diagnosis = ddp_probe.diagnose(ddp_probe.read("ddp_probe_runs/latest"))
    other = pickle.loads(pickle.dumps(diagnosis))
    assert (other.to_json(), repr(other)) == (diagnosis.to_json(), repr(diagnosis))
    assert other._repr_html_() == diagnosis._repr_html_()


def test_what_is_public() -> None:
    """Six names are public, the stub has the same, and each is what ddp_probe.api has."""
    assert ddp_probe.__all__ == ["Diagnosis", "Run", "activate", "diagnose", "read", "restore"]
    stub = Path(str(ddp_probe.__file__)).with_suffix(".pyi").read_text(encoding="utf-8")
    assert set(re.findall(r"^def (\w+)| as (\w+)$", stub, re.M)) == {
        *(("", name) for name in ("Diagnosis", "Run", "diagnose", "read")),
        ("activate", ""),
        ("restore", ""),
    }
    assert set(ddp_probe.__all__) <= set(dir(ddp_probe))
    with pytest.raises(AttributeError):
        ddp_probe.report  # type: ignore[attr-defined]  # noqa: B018  # asked for on purpose


def test_importing_the_package_loads_nothing_more(run_python: Callable[..., Any]) -> None:
    """Whoever imports ddp_probe, as each rank does, loads one module of it, and neither the readers nor dataclasses."""
    code = "import sys; before = set(sys.modules); import ddp_probe; print(sorted(set(sys.modules) - before))"
    assert run_python(code).stdout == "['ddp_probe']\n"


_CLIENT = """
import ddp_probe

def guilty(path: str) -> "list[int]":
    run: ddp_probe.Run = ddp_probe.read(path)
    diagnosis: ddp_probe.Diagnosis = ddp_probe.diagnose(run, rules=("DDP106",))
    return [rank for finding in diagnosis.findings for rank in finding.ranks]

def page(diagnosis: ddp_probe.Diagnosis) -> str:
    return diagnosis.to_json(indent=None)

wrong_type: int = ddp_probe.read("x").name  # type: ignore[assignment]
wrong_name = ddp_probe.rea("x")  # type: ignore[attr-defined]
ddp_probe.diagnose("x")  # type: ignore[arg-type]
"""


@pytest.mark.slow
def test_a_client_is_checked(tmp_path: Path, repo: Path) -> None:
    """mypy --strict takes a program that uses the API, and each wrong type or name in it needs its ignore: the types arrive."""
    pytest.importorskip("mypy", reason="lint tools need Python 3.10")
    (tmp_path / "client.py").write_text(_CLIENT, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", str(repo / ".mypy_cache"), "client.py"]
    env = {**os.environ, "MYPYPATH": str(repo)}  # mypy does not look through the hook of an editable installation.
    done = subprocess.run(command, cwd=str(tmp_path), env=env, capture_output=True, text=True, timeout=280, check=False)
    assert (done.returncode, done.stdout) == (0, "Success: no issues found in 1 source file\n"), done.stdout + done.stderr
