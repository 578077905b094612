"""Fifty small trainings, each with a fault, a rank and a step drawn at random: who is wrong, and at which line, is told while the job hangs."""

import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Set, Tuple

import pytest
from accelerator.fixtures import gcu_env  # noqa: F401  # a fixture is found by its name
from processes import run_in
from schedule import seed

from ddp_probe.attaching import py_spy
from ddp_probe.judging.judge import judge
from ddp_probe.judging.rule import Finding
from ddp_probe.reading.load_run import load
from ddp_probe.showing.watch.watch_look import LiveView, Look

sys.path.append(str(Path(__file__).resolve().parent.parent / "attach"))

from unarmed import Running

pytestmark = pytest.mark.slow

_PROGRAM = Path(__file__).parent / "programs" / "one_fault.py"
_LINES = {
    found[1]: number for number, line in enumerate(_PROGRAM.read_text().splitlines(), 1) for found in [re.search(r"# line: (\w+)", line)] if found
}
_AFTER = 4  # Seconds; watch names nobody before 3.
_STAYS = ("sleeps", "loops", "starves")
_BACKENDS = ("gloo",) * 9 + ("eccl",)  # The simulated cards' own is loaded by each rank anew.
_LEAVES = ("fails", "exits", "leaves", "killed")  # gloo tells the others at once, and the job ends by itself.
_OTHER_LENGTH = ("more", "double")  # gloo ends a rank that gets more than it expects, or the job hangs.
_OTHER_ROOT = ("root",)  # The messages of some roots go together: the job goes on, with wrong numbers.
_PARTS = ("skips", "receives", "gathers")
_NAMES = {
    "skips": ("broadcast",),
    "root": ("broadcast",),
    "more": ("others",),
    "double": ("others",),
    "killed": ("leaves",),
    "loops": ("loops", "turns"),
    "starves": ("reads",),
}
_WAYS: Dict[str, Sequence[Tuple[bool, int]]] = {  # Whether the parent or all are meant, and the signal.
    "Ctrl-C": ((False, signal.SIGINT),),
    "SIGTERM to each": ((False, signal.SIGTERM),),
    "SIGTERM to the parent, SIGKILL later": ((True, signal.SIGTERM), (False, signal.SIGKILL)),
    "SIGHUP": ((False, signal.SIGHUP),),
    "SIGKILL to each": ((False, signal.SIGKILL),),
}
_FAULTS = (*_STAYS, *_LEAVES, *_OTHER_LENGTH, *_OTHER_ROOT, *_PARTS)


class Drawn(NamedTuple):
    """One run: in which step which of the ranks does what."""

    fault: str
    rank: int
    step: int
    ranks: int
    backend: str

    @property
    def own(self) -> Set[int]:
        """Return the lines that may be given for the guilty rank: that of the fault; if it leaves there, also that of its last call."""
        names = _NAMES.get(self.fault, (self.fault,))
        if self.fault in _LEAVES:
            names = (*names, "broadcast" if self.step else "joins")
        return {_LINES[name] for name in names}

    @property
    def others(self) -> int:
        """Return the line at which the others are."""
        return _LINES["broadcast" if self.fault == "root" else "others"]

    def names(self, ranks: List[int]) -> bool:
        """Tell whether these are the guilty: of two ranks that part, and of a rank that receives and its peer, both may be named."""
        both = self.fault == "receives" or self.ranks == 2
        return ranks == [self.rank] or (both and len(ranks) == 2 and self.rank in ranks)


def _draw(number: int) -> Drawn:
    dice = random.Random("%d %d" % (seed(), number))
    ranks = dice.randint(2, 8)
    return Drawn(dice.choice(_FAULTS), dice.randrange(ranks), dice.randrange(6), ranks, dice.choice(_BACKENDS))


class Run:
    """A run that was started, and its files."""

    def __init__(self, process: "subprocess.Popen[bytes]", root: Path) -> None:
        self.process = process
        self._root = root

    @property
    def folder(self) -> str:
        """Return the run's folder."""
        return run_in(self._root)

    @property
    def is_over(self) -> bool:
        """Return whether the job has ended."""
        return self.process.poll() is not None

    def wait(self, ranks: int) -> None:
        """Wait until this many ranks have noticed that nothing moves, or until the job has ended."""
        guard = time.monotonic() + 200
        while not self.is_over and self._suspecting() < ranks:
            assert time.monotonic() < guard, "The job neither hangs nor ends."
            time.sleep(0.1)

    def _suspecting(self) -> int:
        logs = self._root.glob("[0-9]*/rank*.jsonl")  # `latest` is left out.
        return sum('"hang.suspected"' in path.read_text(encoding="utf-8") for path in logs)


@pytest.fixture
def start(armed: Any, python: str, free_port: Any, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Start a run; its ranks end with the test."""
    started: List[subprocess.Popen[bytes]] = []

    def begin(drawn: Drawn) -> Run:
        env: Dict[str, str] = armed(tmp_path / "runs", DDP_PROBE_HANG_AFTER=str(_AFTER))
        if drawn.backend == "eccl":
            first, *rest = request.getfixturevalue("gcu_env")["PYTHONPATH"].split(os.pathsep)
            (tmp_path / "site-packages").symlink_to(first)  # Else the plugin's lines are the job's own, as it is in the job's checkout.
            env["PYTHONPATH"] = os.pathsep.join([env["PYTHONPATH"], str(tmp_path / "site-packages"), *rest])
        words = [drawn.fault, str(drawn.rank), str(drawn.step), str(drawn.ranks), str(free_port()), drawn.backend]
        with open(tmp_path / "printed", "wb") as printed:
            process = subprocess.Popen([python, str(_PROGRAM), *words], env=env, cwd=tmp_path, stdout=printed, stderr=printed, start_new_session=True)
        started.append(process)
        return Run(process, tmp_path / "runs")

    yield begin
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _lines(finding: Finding) -> Set[int]:
    """Return the lines of the program that a finding names."""
    sites = [item.site for item in finding.evidence if item.site is not None]
    texts = [finding.verdict, *(item.text for item in finding.evidence)]
    named = [int(number) for text in texts for number in re.findall(r"one_fault\.py:(\d+)", text)]
    return {site.line for site in sites if site.file.endswith("one_fault.py")} | set(named)


def _end(run: Run, way: str) -> None:
    """End a job as a person or a scheduler does."""
    for is_parent, number in _WAYS[way]:
        (os.kill if is_parent else os.killpg)(run.process.pid, number)
        time.sleep(2)  # A scheduler waits too.
    try:
        run.process.wait(40)
    except subprocess.TimeoutExpired:  # It waits for a rank that does not run Python code.
        os.killpg(run.process.pid, signal.SIGKILL)
        run.process.wait()
    guard = time.monotonic() + 40
    while _is_there(run.process.pid) and time.monotonic() < guard:  # The ranks end a moment after their parent.
        time.sleep(0.05)


def _is_there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.nightly
@pytest.mark.parametrize("way", _WAYS)
@pytest.mark.parametrize("number", range(50))
def test_the_same_is_told_after_somebody_ended_it(number: int, way: str, start: Any) -> None:
    """The report of a job that hung names the guilty rank and both lines after each way of ending it as it did while it hung."""
    drawn = _draw(number)
    print(drawn)
    run = start(drawn)
    run.wait(drawn.ranks if drawn.fault in _STAYS else 1)
    if run.is_over:
        pytest.skip("The job ended by itself.")
    _end(run, way)
    finding = judge(load([run.folder])).findings[0]
    print(finding.id, finding.ranks, finding.verdict)
    assert drawn.names(finding.ranks)
    assert drawn.others in _lines(finding)
    assert drawn.own & _lines(finding)


@pytest.mark.sample(2)
@pytest.mark.parametrize("number", range(50))
def test_the_rank_and_both_lines_are_told(number: int, start: Any) -> None:
    """The report names the guilty rank, its line and that of the others, and watch the same ranks, while the job hangs or after it has ended."""
    drawn = _draw(number)
    print(drawn)
    run = start(drawn)
    run.wait(drawn.ranks if drawn.fault in _STAYS else 1)  # The stack of each rank that stays says its line.
    hangs = not run.is_over
    assert hangs or drawn.fault not in (*_STAYS, *_PARTS)
    finding = judge(load([run.folder])).findings[0]
    print(finding.id, finding.ranks, finding.verdict)
    assert drawn.names(finding.ranks)
    assert drawn.others in _lines(finding)
    assert drawn.own & _lines(finding)
    if hangs:
        look: Look = LiveView([run.folder]).look()
        assert sorted(look.outliers) == finding.ranks, look.outliers


@pytest.mark.skipif(not py_spy.program(), reason="py-spy is not installed.")
@pytest.mark.sample(1)
@pytest.mark.parametrize("number", range(50))
def test_looks_from_outside_name_no_other_rank(number: int, clean_env: Any, python: str, free_port: Any, run_python: Any, tmp_path: Path) -> None:
    """Without the probe, looks name the rank that stays and its line; of calls that differ the rank is among those named, or the reason is given."""
    drawn = _draw(number)._replace(backend="gloo")
    print(drawn)
    words = [python, str(_PROGRAM), drawn.fault, str(drawn.rank), str(drawn.step), str(drawn.ranks), str(free_port()), drawn.backend]
    running = Running(" ".join(map(shlex.quote, words)), tmp_path, clean_env(OMP_NUM_THREADS="1"), drawn.ranks)
    try:
        members = running.settle(ends=drawn.fault not in _STAYS)
        if not members:
            pytest.skip("The job ended by itself.")
        done = run_python(["-m", "ddp_probe", "attach", str(members[0].pid), "--json"], env={"DDP_PROBE_DIR": str(tmp_path / "runs")}, timeout=120)
    finally:
        running.kill()
    told = json.loads(done.stdout)
    print(told["findings"] or told["undecided"])
    if drawn.fault in _STAYS:
        assert told["findings"][0]["ranks"] == [drawn.rank]
        assert {item["site"]["line"] for item in told["findings"][0]["evidence"] if "site" in item} & drawn.own
    assert all(drawn.rank in found["ranks"] for found in told["findings"])
    assert told["findings"] or told["undecided"][0]["because"]
