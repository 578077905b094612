"""What proves that a rank finished normally (its last line with exit code 0, or its parent's report), and what is missing.

Everything else is a gap: clear is a claim about every rank.
"""

from typing import Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from ddp_probe.judging.words import counted, place, subject
from ddp_probe.reading.model import Death, LoggedProcess, Run
from ddp_probe.shared.schema import Site
from ddp_probe.standing.arms import condition

RUNNING, FAILED, SIGNAL, NO_END, EXIT_CODE, UNKNOWN_CODE, UNKNOWN_SIZE, HOLES = (
    "still-running",
    "failed",
    "signal",
    "no-end",
    "exit-code",
    "unknown-exit-code",
    "unknown-size",
    "lines-missing",
)


class Gap(NamedTuple):
    """Why a rank is not proven to have finished normally: the words after its name, for one rank and for several, and what to do next."""

    slug: str
    one: str
    many: str
    next: str


def gaps(run: Run) -> Iterator[Tuple[Gap, List[LoggedProcess]]]:
    """Yield what is missing, with its processes; nothing for a run in which every process is proven good."""
    processes: Dict[Gap, List[LoggedProcess]] = {}
    for process in run.processes:
        gap = unproven(run, process)
        if gap is not None:
            processes.setdefault(gap, []).append(process)
    yield from processes.items()


def sentence(gap: Gap, processes: List[LoggedProcess]) -> str:
    """Return a gap as a sentence."""
    ranks = sorted({process.rank for process in processes if process.rank is not None})
    return "%s %s." % (subject(ranks), gap.one if len(processes) == 1 else gap.many)


def unproven(run: Run, process: LoggedProcess) -> Optional[Gap]:
    """Return why this process is not proven to have finished normally, or None for one that is."""
    if process.rank is not None and process.rank in run.running:
        return Gap(RUNNING, "still runs", "still run", NEXT_FOLLOW)
    death = word(run, process)
    if death is not None and death.signal:
        return Gap(SIGNAL, "was ended by %s" % death.signal, "were ended by %s" % death.signal, NEXT_SIGNAL % death.signal)
    fatal = next((failure for failure in process.failures if failure.fatal), None)
    if fatal is not None:
        return _gap(FAILED, "failed with %s" % fatal.text.strip().split("\n", 1)[0][:200], NEXT_TRACEBACK % fatal.at)
    return _by_codes(run, process, _codes(process, death))


def word(run: Run, process: LoggedProcess) -> Optional[Death]:
    """Return what this process's parent reports of its end; by pid, or by rank if a shell is between the two."""
    if process.death is not None or process.rank is None:
        return process.death
    return run.death(process.rank)


def _codes(process: LoggedProcess, death: Optional[Death]) -> Set[int]:
    codes = {getattr(process.end, "exit_code", None), death.exit_code if death is not None else None}
    return {code for code in codes if code is not None}


def _by_codes(run: Run, process: LoggedProcess, codes: Set[int]) -> Optional[Gap]:
    bad = sorted(codes - {0})
    if bad:
        site = process.ended.site if process.ended is not None else None
        left, then = _exit_call(site, process.over[0])
        return _gap(EXIT_CODE, "ended with exit code %d without an exception that the probe saw%s" % (bad[0], left), then)
    if not codes and process.end is None:
        how = "no end line: ended by a signal or by the program that started it, or still running elsewhere"
        return Gap(NO_END, "has " + how, "have " + how, NEXT_GONE)
    if not codes:
        how = "ended by %s, but the exit code is not known"
        return Gap(UNKNOWN_CODE, how % "itself", how % "themselves", NEXT_UNTOLD)
    if run.expected is None and process.started.role != "solo":
        return _gap(UNKNOWN_SIZE, "finished normally, but the expected number of ranks is not known", NEXT_SIZE)
    if process.holes:
        how = "finished normally, but %s of the file %s missing" % (counted(process.holes, "line"), "is" if process.holes == 1 else "are")
        return _gap(HOLES, how, NEXT_HOLES)
    return None


def _exit_call(site: Optional[Site], when: float) -> Tuple[str, str]:
    """Return by which exit call a rank ended, and under which `if`, and what to try next."""
    if site is None:
        return "", NEXT_LOGGED
    led = condition(site, when)
    under = ", under '%s' in line %d" % (led.text, led.line) if led is not None else ""
    return ", by the exit call at %s%s" % (place(site), under), NEXT_FINITE if led is not None and led.hint == "finite" else NEXT_LOGGED


def _gap(slug: str, how: str, then: str) -> Gap:
    return Gap(slug, how, how, then)


# What to try next if a run leaves a question open, one sentence each, so that "undecided" is never the last word.

NEXT_EARLY = "Look at what the launch printed first: the program may have ended before it imported torch."
NEXT_RUNS = "See where they are: python -m ddp_probe attach %d."
NEXT_NO_GROUP = (
    "If the processes use torch.distributed.rpc or no torch at all, there is nothing to follow: the probe looks at process groups. If they "
    "should train together, check whether each of them calls init_process_group."
)
NEXT_OTHER_RUN = "python -m ddp_probe runs lists all runs."
NEXT_MISSING = "Look at what those ranks printed first. If their host writes to its own folder, name both: python -m ddp_probe report DIR DIR."
NEXT_LAUNCHER = "Look at what the launching program printed, and at its own code after the ranks had ended."
NEXT_HUNG = "If it hung there, look at the ranks that were in another place: it waited for those."
NEXT_WAITING = "Look at the ranks that are missing: these may wait for them. If it still runs, python -m ddp_probe attach %d shows where each stands."
NEXT_EMPTY = "Save what the job prints, including errors: COMMAND 2>&1 | tee log. Or run it with DDP_PROBE=1."
NEXT_TRACED = "Run the job again with DDP_PROBE=1 and read that run: python -m ddp_probe report."
NEXT_FAILURE = "Start at %s; the whole traceback is in %s:%d, and python -m ddp_probe logs%s shows what was done before."
NEXT_FOLLOW = "Read it again once it has ended; python -m ddp_probe report --follow waits for that."
NEXT_SIGNAL = "Find out who sent %s: the launcher after another rank's failure, a scheduler's limit, a person."
NEXT_TRACEBACK = "Read its traceback at %s:%d."
NEXT_LOGGED = (
    "Look at what it printed last. Do not catch the exception, or call sys.exit(1) in the except that catches it: then its traceback is recorded."
)
NEXT_FINITE = (
    "Print the value before the ranks reduce it: the rank whose own value is not finite has the batch that makes it so. If it is not finite on "
    "all ranks, look at the learning rate, and at the gradients of the steps before."
)
NEXT_GONE = (
    "Look at what the program that started it printed: a pool (joblib, Ray, concurrent.futures) keeps the exception of a worker and ends its "
    "workers. If it printed none, ask the kernel: dmesg -T | grep -i -E 'killed process|out of memory'. If you start it with torchrun, its "
    "exit code or signal is recorded."
)
NEXT_UNTOLD = "End the program by its last line or by sys.exit(code), not by raise SystemExit; or start it with torchrun, which reports it."
NEXT_SIZE = "Set WORLD_SIZE, or start the job with torchrun, which does."
NEXT_HOLES = "Copy the file again from its host. If lines are missing there too, check that disk (df -h), and run the job again."
NEXT_UNREADABLE = "Make it readable for this user, or read it as the user who ran the job."
NEXT_NONE_ASKED = "Ask for at least one process: a count of cards is 0 if torch sees none."
NEXT_CAUGHT = (
    "Look at what the ranks that differ printed, and at the except clauses of the job: one of them has caught what failed. Let it end with "
    "that exception."
)
NEXT_LEDGER = (
    "Copy the file of the rank that ends in .ledger beside its log. If there is none, check whether the disk was full, and run the job again."
)
