"""Four mistakes on four ranks that train a network with batch norm: who left and what decided, while it hangs and once it has ended."""

import json
import os
import re
import shlex
import signal
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Set, Tuple

import pytest
from processes import run_in
from test_jobs_live import Run, start

from ddp_probe.judging.judge import judge
from ddp_probe.reading.load_run import load
from ddp_probe.showing import watch_json
from ddp_probe.showing.watch.watch_look import LiveView

_PROGRAM = Path(__file__).parent / "programs" / "four_mistakes.py"
_AFTER = "5"
_BY_SIGNAL, _BY_ITSELF = 300, 20  # Seconds that a rank waits: more than a busy machine needs to meet, and to look.
_GUILTY = {
    "evaluates": (0, "        if run.rank == 0:\n            run.evaluate()"),
    "skips": (2, "            if not math.isfinite(scale):"),
    "meets": (0, "        if run.rank == 0:\n            torch.save("),
    "stops": (1, "        if epoch > patience:"),
}
_WRAPS = ("plain", "broadcast_buffers", "static_graph", "find_unused_parameters", "copy", "checkpoint")
_HARMLESS = ("evaluates", "broadcast_buffers")  # Nothing is sent in forward.


class Case(NamedTuple):
    """A mistake, how the model is wrapped, and what ends the job."""

    way: str
    wrap: str
    end: str

    @property
    def line(self) -> int:
        """Return the line of the statement that decides."""
        before, found, after = _PROGRAM.read_text(encoding="utf-8").partition(_GUILTY[self.way][1])
        assert found
        assert found not in after
        return before.count("\n") + 1


def _cases() -> Iterator[Any]:
    for way in _GUILTY:
        for wrap in _WRAPS:
            ends = ("itself",) if (way, wrap) == _HARMLESS else ("SIGINT", "SIGTERM", "itself")
            for end in ends:
                yield pytest.param(Case(way, wrap, end), id="%s-%s-%s" % (way, wrap, end))


def _reported(folder: str) -> Tuple[List[int], Set[int]]:
    """Return the ranks of the first finding, and the lines of the program in its verdict and its evidence."""
    finding = judge(load([folder])).findings[0]
    sites = [item.site for item in finding.evidence if item.site is not None]
    told = re.findall(re.escape(_PROGRAM.name) + r":(\d+)", finding.verdict)
    return list(finding.ranks), {*map(int, told), *(site.line for site in sites if site.file.endswith(_PROGRAM.name))}


def _watched(folder: str) -> List[int]:
    found = json.loads(watch_json.as_json(LiveView([folder]).look(), "run"))
    return [row["rank"] for row in found["ranks"] if row["stands_out"]] + found["absent"]


@pytest.fixture
def run(case: Case, armed: Callable[..., Dict[str, str]], free_port: Callable[[], int], tmp_path: Path) -> Iterator[Run]:
    """The job, started below torchrun in a session of its own."""
    env = armed(tmp_path / "runs", DDP_PROBE_HANG_AFTER=_AFTER)
    is_timeout = case.end == "itself" and (case.way, case.wrap) != _HARMLESS
    env["JOB_PATIENCE"] = str(_BY_ITSELF if is_timeout else _BY_SIGNAL)
    launch = "exec torchrun --nproc_per_node=4 --master_addr=127.0.0.1 --master_port=%d %s %s %s"
    started = start(launch % (free_port(), shlex.quote(str(_PROGRAM)), case.way, case.wrap), tmp_path, env)
    try:
        yield started
    finally:
        started.end()


@pytest.mark.slow
@pytest.mark.sample(2)
@pytest.mark.parametrize("case", _cases())
def test_the_rank_that_left_and_what_decided_are_named(case: Case, run: Run, tmp_path: Path) -> None:
    """While the job hangs, after Ctrl-C, after SIGTERM and after its timeout, the report has the rank that left and the line that decided."""
    rank, _ = _GUILTY[case.way]
    if case.end != "itself":
        run.wait()
        live, outliers = _reported(run.folder), _watched(run.folder)
        print("LIVE", case, live, outliers, run.printed(), sep="\n")
        assert run.process.poll() is None
        assert (live[0], outliers) == ([rank], [rank])
        assert case.line in live[1]
        if case.end == "SIGINT":
            os.killpg(run.process.pid, signal.SIGINT)
        else:
            run.process.send_signal(signal.SIGTERM)
    run.process.wait(200)
    if (case.way, case.wrap) == _HARMLESS:
        assert run.process.returncode == 0, run.printed()
        assert judge(load([run_in(tmp_path / "runs")])).findings == []
        return
    ranks, lines = _reported(run.folder)
    print("ENDED", case, ranks, lines, run.printed(), sep="\n")
    assert ranks == [rank]
    assert case.line in lines
