"""Ranks that a program starts itself: their exit codes and exceptions reach the verdict, whoever catches them."""

import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple

import pytest

from ddp_probe.judging.judge import Diagnosis, judge
from ddp_probe.reading.load_run import load
from ddp_probe.showing.rank_state import rank_states

PROGRAM = Path(__file__).parent / "programs" / "children.py"
# How they are started, what they do; "logged" is started once for each rank, as srun does.
LAUNCHES = {  # Exit codes, and what is printed.
    "plain spawn wrap": ([0], r"\[1, 1\]\n"),
    "plain fork data": (None, r"\[1, 1\]\n"),
    "plain fork fine": ([0], r"\[0, 0\]\n"),
    "plain fork at_once": ([0], r"\[0, 0\]\n"),
    "start_processes forkserver fine": ([0], ""),
    "plain fork killed": ([0], r"\[1, -9\]\n"),
    "plain spawn killed": ([0], r"\[1, -9\]\n"),
    "plain forkserver killed": ([0], r"\[1, -9\]\n"),
    "caught wrap": ([1], r"caught\n"),
    "logged wrap": ([1, 1], ""),
}
DRAWN = pytest.mark.sample(4, of="launches of children")


class Launch(NamedTuple):
    """One launch: exit codes and stdout of what was started, and what the report says."""

    codes: List[int]
    out: str
    diagnosis: Diagnosis

    @property
    def ends(self) -> List[str]:
        """How the ranks ended, in the words of the table."""
        return [state.end for state in rank_states(self.diagnosis.run)]


@pytest.fixture(scope="module")
def launches(
    tmp_path_factory: pytest.TempPathFactory,
    run_python: Callable[..., "subprocess.CompletedProcess[str]"],
    armed: Callable[..., Dict[str, str]],
    free_port: Callable[[], int],
) -> Dict[str, Launch]:
    """Each launch that is asked for, once."""

    def run(name: str) -> Launch:
        way, *rest = name.split()
        folder, port = tmp_path_factory.mktemp("launch"), str(free_port())
        places: List[Dict[str, str]] = [{}]
        if way == "logged":
            common = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0"}
            places = [{"RANK": str(rank), "LOCAL_RANK": str(rank), **common} for rank in (0, 1)]

        def start(place: Dict[str, str]) -> "subprocess.CompletedProcess[str]":
            command: List[Any] = [PROGRAM, way, *rest[:-1], port, rest[-1]]
            return run_python(command, env=armed(folder / "runs", DDP_PROBE_REPORT="off", **place), cwd=folder, timeout=240)

        with ThreadPoolExecutor(max_workers=2) as ranks:
            done = list(ranks.map(start, places))
        return Launch([one.returncode for one in done], "".join(one.stdout for one in done), judge(load([str(folder / "runs")])))

    class Launches(Dict[str, Launch]):
        def __missing__(self, name: str) -> Launch:
            self[name] = run(name)
            return self[name]

    return Launches()


@DRAWN
@pytest.mark.parametrize("name", ["plain spawn wrap", "caught wrap", "logged wrap"])
def test_a_refused_wrap_is_found_whoever_caught_it(launches: Dict[str, Launch], name: str) -> None:
    """A wrap that DDP refuses in a plain Process, in an mp.spawn whose exception is caught, and before a sys.exit(1), is the cause."""
    launch = launches[name]
    assert [finding.id for finding in launch.diagnosis.findings] == ["DDP106"], launch.diagnosis.undecided
    assert set(launch.diagnosis.findings[0].ranks) <= {0, 1}
    assert "failed ValueError" in launch.ends
    assert "ended" not in launch.ends


@DRAWN
@pytest.mark.parametrize("name", LAUNCHES)
def test_the_program_sees_what_it_would_see_without(launches: Dict[str, Launch], name: str) -> None:
    """Exit codes and stdout are the program's own."""
    codes, printed = LAUNCHES[name]
    assert codes is None or launches[name].codes == codes
    assert re.fullmatch(printed, launches[name].out)


@DRAWN
@pytest.mark.parametrize("name", ["plain fork data"])
def test_an_exception_that_multiprocessing_prints_is_known(launches: Dict[str, Launch], name: str) -> None:
    """An exception of the job's own in a forked child is named with its line, and the rank that lost it is not blamed."""
    (finding,) = launches[name].diagnosis.findings
    assert finding.ranks == [1]
    assert re.search(r"children\.py:\d+, with FileNotFoundError", finding.verdict)


@DRAWN
@pytest.mark.parametrize("name", ["plain fork fine", "plain fork at_once", "start_processes forkserver fine"])
def test_children_that_do_well_are_clear(launches: Dict[str, Launch], name: str) -> None:
    """Forked children, and those that leave by os._exit(0), are proven good by their own last line."""
    launch = launches[name]
    assert launch.diagnosis.verdict == "clear", launch.diagnosis.undecided
    assert launch.ends == ["ended", "ended"]
    ends = [process.ended.exit_code for process in launch.diagnosis.run.processes if process.ended is not None]
    assert ends == [0, 0]


@DRAWN
@pytest.mark.parametrize("name", ["plain fork killed", "plain spawn killed", "plain forkserver killed"])
def test_a_child_that_was_killed_is_named_with_its_signal(launches: Dict[str, Launch], name: str) -> None:
    """The exit code that a program learns of its child says that SIGKILL ended rank 1; the rank that lost it is not blamed."""
    (finding,) = launches[name].diagnosis.findings
    assert (finding.slug, finding.ranks) == ("killed-by-signal", [1])
    assert "SIGKILL" in finding.verdict
    assert launches[name].ends == ["failed RuntimeError", "killed SIGKILL"]
    for process in launches[name].diagnosis.run.processes:
        assert "children.py" in " ".join(process.started.argv)


_INSTALLED = """
import sys
import torch.distributed as dist


def main():
    dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=0, world_size=1)
    sys.exit(3)


if __name__ == "__main__":
    main()
"""


def test_the_line_of_an_exit_in_a_program_that_is_installed(run_python: Any, armed: Any, tmp_path: Path) -> None:
    """Of a trainer in site-packages that python -m starts, the line that calls sys.exit is recorded as one of a script is."""
    site = tmp_path / "site-packages"
    (site / "own_trainer").mkdir(parents=True)
    (site / "own_trainer" / "__init__.py").write_text("", encoding="utf-8")
    (site / "own_trainer" / "train.py").write_text(_INSTALLED, encoding="utf-8")
    env = armed(tmp_path / "runs")
    env["PYTHONPATH"] += ":%s" % site
    done = run_python(["-m", "own_trainer.train", tmp_path / "meeting"], env=env, cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    (log,) = (tmp_path / "runs" / "latest").glob("rank*.jsonl")
    end = json.loads(log.read_text(encoding="utf-8").splitlines()[-1])
    assert (end["exit_code"], end["site"]["line"]) == (3, 8), end
