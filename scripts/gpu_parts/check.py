"""Runs one case, asks the report about it, and compares."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from gpu_parts import launch
from gpu_parts.case import CLEAR, FAILED, PASSED, Case, Outcome, of_ranks

PROGRAMS = Path(__file__).resolve().parent / "programs"
_HANG_AFTER = "5"  # Seconds; the groups of the programs wait for longer.
_ROUNDS = 2  # Of a case with a cost, without and with the probe in turn.
_COST = re.compile(r"^ms a step: ([0-9.]+)$", re.MULTILINE)
_REPORT_LIMIT = 60.0  # Seconds.


class Setting(NamedTuple):
    """What the programs run on."""

    device: str
    backend: str
    cards: Tuple[str, ...]  # As CUDA_VISIBLE_DEVICES names them.

    def environment(self, case: Case) -> Dict[str, str]:
        """Return the variables of a case's job: it sees as many cards as it needs."""
        shown = {"CUDA_VISIBLE_DEVICES": ",".join(self.cards[: case.cards])} if self.cards else {}
        return launch.environment({"DDP_PROBE_HANG_AFTER": _HANG_AFTER, **shown, **case.environment})


REHEARSAL = Setting("cpu", "gloo", ())


def run(case: Case, setting: Setting, folder: Path) -> Outcome:
    """Run a case in a new folder, and judge it."""
    job, runs = folder / "job", folder / "runs"
    job.mkdir(parents=True)
    env = setting.environment(case)
    plain: List[float] = []
    costs: List[float] = []
    for _ in range(_ROUNDS if case.has_cost else 1):
        command = launch.torchrun(PROGRAMS / case.program, case.ranks, (setting.device, setting.backend))
        if case.has_cost:
            plain += _cost(launch.bounded(command, job, env, case.seconds))
        shutil.rmtree(str(runs), ignore_errors=True)
        ended = launch.bounded(launch.probed(runs, command), job, env, case.seconds)
        costs += _cost(ended)
    report, problem = _report(runs)
    because = _over_limit(case, ended) or problem or compare(case, report)
    status, measured = FAILED if because else PASSED, _measured(plain, costs) if case.has_cost else ""
    return Outcome(case, status, said(report), because or measured, ended.seconds)


def _over_limit(case: Case, ended: launch.Ended) -> str:
    return "It was killed at its limit of %d s." % case.seconds if ended.code is None else ""


def _cost(ended: launch.Ended) -> List[float]:
    return [float(value) for value in _COST.findall(ended.output)]


def _measured(plain: List[float], costs: List[float]) -> str:
    if not plain or not costs:
        return "No time of a step was printed."
    return "%.3f ms a step, %.3f ms without the probe: a factor of %.3f." % (min(costs), min(plain), min(costs) / min(plain))


def run_folder(runs: Path) -> Optional[Path]:
    """Return the folder of the one run."""
    found = [path for path in runs.glob("*") if path.is_dir() and not path.is_symlink()]
    return found[0] if len(found) == 1 else None


def _report(runs: Path) -> Tuple[Dict[str, Any], str]:
    """Return the report, and what went wrong if there is none."""
    folder = run_folder(runs)
    if folder is None:
        return {}, "The job left no run."
    command = [sys.executable, "-m", "ddp_probe", "report", "--json", str(folder)]
    try:
        done = subprocess.run(command, env=launch.environment({}), capture_output=True, timeout=_REPORT_LIMIT, check=False)
        return json.loads(done.stdout.decode()), ""
    except subprocess.TimeoutExpired:
        return {}, "The report did not end within %d s." % _REPORT_LIMIT
    except ValueError:
        return {}, "The report is not JSON: %s" % done.stderr.decode("utf-8", "replace").strip()[-200:]


def said(report: Dict[str, Any]) -> str:
    """Return what a report says first, as one text."""
    verdict = str(report.get("verdict", "nothing"))
    if verdict == "found":
        return _slug(report) + of_ranks(_ranks(report))
    open_ones = ", ".join(str(one["slug"]) for one in report.get("undecided", [])[:2])
    return "%s: %s" % (verdict, open_ones) if verdict == "undecided" and open_ones else verdict


def compare(case: Case, report: Dict[str, Any]) -> str:
    """Return what is not as the case expects; empty if all is."""
    answer = _slug(report) if report["verdict"] == "found" else str(report["verdict"])
    if answer not in case.expects:
        return "The report says %s, not %s." % (answer, " or ".join(case.expects))
    if answer != CLEAR and case.at and _ranks(report) != case.at:
        return "The report names other ranks."
    return ""


def _slug(report: Dict[str, Any]) -> str:
    return str(report["findings"][0]["slug"])


def _ranks(report: Dict[str, Any]) -> Tuple[int, ...]:
    return tuple(sorted(report["findings"][0]["ranks"]))
