"""What the ledger costs a training step: how many records and phases a step of the job has left, times what one of them costs."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from bench_parts.rows import Question, Sample, answer, unanswered
from bench_parts.starts import REPO, run_environment

_PROGRAM = REPO / "tests" / "ledger" / "programs" / "costs.py"
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
_PAIRS = _APART % "20 000 pairs on gloo, one rank" + " The aim is 3 µs, which it misses."
_STEPS = _APART % "DDP(Linear) with DataLoader and SGD, one rank" + " The aim is 10 µs, which it misses."
PAIR = Question("ledger-pair", "an asynchronous all_reduce and its wait", "cost", "µs", None, _PAIRS)
ALL = Question("ledger-step", "a step with both on and off", "cost", "µs", None, _STEPS)


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
    apart = [(SUMS, costs["sums_us"]), (PAIR, costs["pair_us"]), (ALL, costs["step_us"])]
    one = [(RECORD, record), *apart, (PHASE, phase), (question, share)]
    return [answer(asked, [], [Sample(value, value)]) for asked, value in one]


def of_ledger(path: Path) -> Step:
    """Return how many records and phases there are for each backward pass."""
    from ddp_probe.read import ledger

    found = ledger.read(path)
    steps = next((phase.times for phase in found.phases if phase.name == "backward"), 0)
    if not steps or not found.records:
        return Step(0.0, 0.0)
    return Step(found.records[-1].number / steps, sum(phase.times for phase in found.phases) / steps)


def share_of(step: Step, record: float, phase: float, microseconds: float) -> Tuple[float, Question]:
    """Return the share in percent, and the row that says how it is made up."""
    spent = (step.records + 1) * record + (step.phases + 1) * phase
    return 100 * spent / microseconds, SHARE._replace(how=_HOW % (*step, record, phase))
