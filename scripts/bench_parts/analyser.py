"""What it costs to find where ranks part: the ledgers of a simulated hang, against torch's Flight Recorder analyser on the same calls."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

from bench_parts.rows import Question, Sample, answer, interleave, unanswered
from bench_parts.starts import REPO, environment

RANKS, RECORDS = 1024, 200
_HOW = (
    "%s calls of %d ranks, one of which makes another call than the others: ledgers by scripts/simulate_ranks, and the same calls as dumps of the"
    " Flight Recorder. Both sides say that they read them all and which rank it is. CPU time, without the imports."
)
_LIMIT = "Each record is looked at once, in Python."
LEDGERS = Question("analyser", "", "ratio", "s", 0.05, _HOW, _LIMIT, "cpu")
COMMANDS = LEDGERS._replace(
    key="analyser-commands",
    what="the same by the commands `report`, which also reads the logs, and `torchfrtrace`",
    goal=None,
    how="Two processes from start to end, with their imports. CPU time.",
)


def analyser_rows(folder: Path, rounds: int, ranks: int = RANKS, records: int = RECORDS) -> Iterator[Dict[str, Any]]:
    """Yield how long our side takes against torch's, without and with what else a command does."""
    what = "ranks that part found in the ledgers of %d ranks, %d calls each, against torch's analyser" % (ranks, records)
    question = LEDGERS._replace(what=what, how=LEDGERS.how % (format(ranks * records, ",").replace(",", " "), ranks))
    guilty = ranks // 3
    try:
        import torch.distributed.flight_recorder  # noqa: F401  # torch 2.13 has it; which one came first does not matter
    except ImportError:
        yield unanswered(question, "Not measured: the torch here has no analyser for its Flight Recorder.")
        return
    run, dumps, written = _write(folder, ranks, records, guilty)
    sides = {"off": ("torch", dumps), "on": ("ledgers", run)}
    wrong = next((fault for side in sides.values() for fault in [_wrong(_side(*side), guilty, ranks, written)] if fault), "")
    if wrong:
        yield {**unanswered(question, wrong), "met": False, "gross": True}
        return
    found = interleave({name: lambda side=side: _sample(_side(*side)) for name, side in sides.items()}, rounds, warm=0)
    yield answer(question, found["off"], found["on"])
    commands = {"off": [_beside("torchfrtrace"), dumps], "on": [sys.executable, "-m", "ddp_probe", "report", "--json", run]}
    found = interleave({name: lambda argv=argv: _command(argv) for name, argv in commands.items()}, rounds, warm=0)
    yield answer(COMMANDS, found["off"], found["on"])


def _write(folder: Path, ranks: int, records: int, guilty: int) -> Tuple[str, str, int]:
    """Write the run and its dumps; return both folders and how many entries the dumps have."""
    from simulate_parts import flight_recorder

    argv = [sys.executable, str(REPO / "scripts" / "simulate_ranks"), str(ranks), "--events", "24", "--records", str(records)]
    argv += ["--fault", "other_op:%d" % guilty, "--out", str(folder / "runs")]
    done = subprocess.run(argv, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    run, dumps = done.stdout.decode().strip(), str(folder / "dumps")
    return run, dumps, flight_recorder.write(run, dumps)


def _side(side: str, folder: str) -> Dict[str, Any]:
    argv = [sys.executable, str(Path(__file__).with_name("analyser_side.py")), side, folder]
    done = subprocess.run(argv, env=environment(), capture_output=True, check=False)
    if done.returncode:
        return {"fault": done.stderr.decode(errors="replace").strip().splitlines()[-1:], "side": side}
    return dict(json.loads(done.stdout.decode()), side=side)


def _wrong(found: Dict[str, Any], guilty: int, ranks: int, written: int) -> str:
    """Return what is wrong with an answer: a side that reads less, or parts the ranks elsewhere, cannot be compared.

    Torch's analyser takes the rank whose file it meets first for the right one; if that is the guilty one, it blames all others.
    """
    others = [rank for rank in range(ranks) if rank != guilty]
    sides = ([guilty], others) if found["side"] == "torch" else ([guilty],)
    if found.get("read") == written and found.get("blamed") in sides:
        return ""
    return "The side %s was given %d entries and rank %d; it answered %s." % (found["side"], written, guilty, json.dumps(found)[:300])


def _sample(found: Dict[str, Any]) -> Sample:
    return Sample(found["wall"], found["cpu"])


def _beside(name: str) -> str:
    return os.path.join(os.path.dirname(sys.executable), name)


def _command(argv: List[str]) -> Sample:
    """Run a command; nobody reads what it prints."""
    null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
    began = time.perf_counter()
    _, _, usage = os.wait4(os.posix_spawn(argv[0], argv, environment(PYTHONPATH=str(REPO)), file_actions=null), 0)
    return Sample(time.perf_counter() - began, usage.ru_utime + usage.ru_stime)
