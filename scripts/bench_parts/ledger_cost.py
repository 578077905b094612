"""What the ledger costs a training step: how many records and phases a step of the job has left, times what one of them costs."""

import json
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from bench_parts.rows import Question, Sample, answer, interleave, unanswered
from bench_parts.starts import REPO, environment, run_environment

_PROGRAM = REPO / "tests" / "ledger" / "programs" / "costs.py"
_DUMP = re.compile(r"^desc: Trigger: dump (\w+)\.(\d+)$.*?^summary: (\d+)", re.M | re.S)
_RANK = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}
_HOW = (
    "What the ledgers of the job above hold for each backward pass (%.2f records, %.2f phases), and an all_reduce and a batch of a DataLoader that"
    " most jobs add, each times its cost in the rows above (%.2f µs a record, %.2f µs a phase), as a share of the shortest step without the probe."
)
_LIMIT = "A record is some thirty stores and three look-ups in Python."
SHARE = Question("step-ledger", "the ledger's share of that step", "cost", "%", 0.5, "", _LIMIT)
RECORD = Question("ledger-record", "one record of a collective, begin and end", "cost", "µs", 2.0, "The least of 80 rounds of 400 calls.", _LIMIT)
PHASE = Question("ledger-phase", "one phase, begin and end", "cost", "µs", 3.0, "The same.", _LIMIT)
_APART = "CPU time of the thread, least of rounds with the ledger and without that take turns; %s."
SUMS = Question(
    "ledger-sums", "of which the sums per record", "cost", "µs", 0.2, _APART % "240 000 calls, half of them of an operation without sums", _LIMIT
)
_LOOP = "%s, one rank on gloo: CPU time of its thread in rounds of %d, a process under the probe and one without that take turns."
_COUNTED = "Counted by valgrind over all threads: what 80 turns more of the loop take, with the probe and without."
_PYTHON = "What is left is Python: decision 0039 has the shares, and what a compiled path would give."
LOOPS: Dict[str, Tuple[int, Question]] = {
    name: (times, Question("loop-" + name, what, "difference", "µs", goal, _LOOP % (loop, times), _PYTHON, "cpu"))
    for name, what, goal, loop, times in (
        ("record", "a record, against the bare program", 2.0, "all_reduce of four floats", 500),
        ("pair", "an asynchronous all_reduce and its wait, against the bare program", 3.0, "The same with async_op and wait()", 500),
        ("step", "a DDP step with everything that is recorded in it, against the bare program", 10.0, "DDP(Linear), DataLoader, zero_grad, SGD", 100),
    )
}


class Step(NamedTuple):
    """What one step leaves in a ledger."""

    records: float
    phases: float


def ledger_rows(folder: Path, steps: Sequence[Sample]) -> List[Dict[str, Any]]:
    """Return what a record costs, and all of a step's, beside steps without the probe, in milliseconds."""
    argv = [sys.executable, str(_PROGRAM)]
    done = subprocess.run(argv, env=run_environment(folder / "costs", **_RANK), capture_output=True, check=False)
    found = [step for step in map(of_ledger, sorted(folder.glob("*/rank*.ledger"))) if step.records or step.phases]
    if done.returncode or not found:
        said = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        return [unanswered(SHARE, "Not measured: %s" % (said[0] if said else "the job has left no ledger."))]
    costs = json.loads(done.stdout.decode())
    record, phase, step = costs["record_us"], costs["phase_us"], max(found)
    share, question = share_of(step, record, phase, 1000 * min(sample.wall for sample in steps))
    one = [(RECORD, record), (SUMS, costs["sums_us"]), (PHASE, phase), (question, share)]
    return [answer(asked, [], [Sample(value, value)]) for asked, value in one]


class Loop:
    """One rank that runs a loop when it is asked to."""

    def __init__(self, env: Dict[str, str], before: Sequence[str] = ()) -> None:
        argv = [*before, sys.executable, str(Path(__file__).with_name("loop.py"))]
        pipe = subprocess.PIPE
        self._rank = subprocess.Popen(argv, env={**env, **_RANK}, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, universal_newlines=True)

    def run(self, line: str, factor: float = 1.0) -> Sample:
        """Run it; its time, multiplied. A rank that has ended answers nothing."""
        assert self._rank.stdin is not None
        assert self._rank.stdout is not None
        self._rank.stdin.write(line + "\n")
        self._rank.stdin.flush()
        wall, cpu = (float(word) * factor for word in self._rank.stdout.readline().split())
        return Sample(wall, cpu)

    def end(self) -> None:
        """Let it end."""
        self._rank.communicate()


def loop_rows(folder: Path, rounds: int) -> List[Dict[str, Any]]:
    """Return what a record, a pair and a step cost, in CPU time and in instructions."""
    environments = {"off": environment(), "on": run_environment(folder / "loops")}
    loops = {side: Loop(env) for side, env in environments.items()}
    rows: List[Dict[str, Any]] = []
    counts = {side: _instructions(folder / side, env) for side, env in environments.items()}
    for name, (times, question) in LOOPS.items():
        asked = "%s %d" % (name, times)
        found = interleave({side: partial(loop.run, asked, 1e6 / times) for side, loop in loops.items()}, rounds)
        rows.append(answer(question, found["off"], found["on"]))
        of_bench = question._replace(key=question.key + "-ir", what="the same in instructions", unit="k", goal=None, how=_COUNTED)
        if all(name in counts[side] for side in counts):
            off, on = (Sample(counts[side][name], counts[side][name]) for side in ("off", "on"))
            rows.append(answer(of_bench, [off], [on]))
        else:
            rows.append(unanswered(of_bench, "Not measured: there is no valgrind, or it does not answer."))
    for loop in loops.values():
        loop.end()
    return rows


def _instructions(folder: Path, env: Dict[str, str]) -> Dict[str, float]:
    """Return the instructions of one turn of each loop, in thousands; none without valgrind."""
    if shutil.which("valgrind") is None or shutil.which("callgrind_control") is None:
        return {}
    folder.mkdir()
    quiet = {**env, "DDP_PROBE_HANG_AFTER": "off", "DDP_PROBE_STATE_EVERY": "off"}  # No thread of ours is counted that turns with the clock.
    loop = Loop(quiet, ["valgrind", "-q", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=%s" % (folder / "out")])
    try:
        for name in LOOPS:
            loop.run("count %s 40 120" % name)
    except (ValueError, BrokenPipeError):  # It has ended: a valgrind that does not know this processor's instructions, for one.
        return {}
    finally:
        loop.end()
    return counted_in(folder)


def counted_in(folder: Path) -> Dict[str, float]:
    """Return from callgrind's files what a turn of each loop takes in thousands: 120 turns less 40, so that what surrounds them drops out."""
    found: Dict[str, float] = {}
    for path in folder.glob("out.*"):
        match = _DUMP.search(path.read_text(encoding="utf-8", errors="replace"))
        if match is not None:
            name, times, count = match.groups()
            found[name] = found.get(name, 0.0) + (int(count) if times == "120" else -int(count)) / 80_000
    return found


def of_ledger(path: Path) -> Step:
    """Return how many records and phases there are for each backward pass."""
    from ddp_probe.reading import whole_ledger

    found = whole_ledger.read(path)
    steps = next((phase.times for phase in found.phases if phase.name == "backward"), 0)
    if not steps or not found.records:
        return Step(0.0, 0.0)
    return Step(found.records[-1].number / steps, sum(phase.times for phase in found.phases) / steps)


def share_of(step: Step, record: float, phase: float, microseconds: float) -> Tuple[float, Question]:
    """Return the share in percent, and the row that says how it is made up."""
    spent = (step.records + 1) * record + (step.phases + 1) * phase
    return 100 * spent / microseconds, SHARE._replace(how=_HOW % (*step, record, phase))
