"""What proves that a rank finished normally (its last line with exit code 0, or its parent's report), and what is missing.

Everything else is a gap: clear is a claim about every rank.
"""

from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from ddp_probe.judging.who import ranks_of
from ddp_probe.reading.model import Death, LoggedProcess, Run
from ddp_probe.shared.schema import Site
from ddp_probe.standing.arms import condition
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import command, counted, named, place, quoted

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
    """Why ranks are not proven to have finished normally: a sentence about {who}, with its other values, and what to do next."""

    slug: str
    template: str
    next: Text
    values: Tuple[Tuple[str, Any], ...] = ()


def gaps(run: Run) -> Iterator[Tuple[Gap, List[LoggedProcess]]]:
    """Yield what is missing, with its processes; nothing for a run in which every process is proven good."""
    processes: Dict[Gap, List[LoggedProcess]] = {}
    for process in run.processes:
        gap = unproven(run, process)
        if gap is not None:
            processes.setdefault(gap, []).append(process)
    yield from processes.items()


def sentence(gap: Gap, processes: List[LoggedProcess]) -> Text:
    """Return a gap as a sentence."""
    ranks = sorted(set(ranks_of(processes)))
    return say(gap.template, who=named(ranks), **dict(gap.values))


def unproven(run: Run, process: LoggedProcess) -> Optional[Gap]:
    """Return why this process is not proven to have finished normally, or None for one that is."""
    if process.rank is not None and process.rank in run.running:
        return Gap(RUNNING, "{who:capital} still {who:runs|run}.", NEXT_FOLLOW)
    death = word(run, process)
    if death is not None and death.signal:
        then = say(
            "Find out who sent {signal}: the launcher after another rank's failure, a scheduler's limit, a person.",
            signal=death.signal,
        )
        return Gap(SIGNAL, "{who:capital} {who:was|were} ended by {signal}.", then, (("signal", death.signal),))
    fatal = next((failure for failure in process.failures if failure.fatal), None)
    if fatal is not None:
        error = quoted(fatal.text.strip().split("\n", 1)[0][:200])
        then = say("Read its traceback at {file}:{line}.", file=fatal.at.file, line=fatal.at.line)
        return Gap(FAILED, "{who:capital} failed with {error}.", then, (("error", error),))
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
        return _exit_code(bad[0], site, process.over[0])
    if not codes and process.end is None:
        template = "{who:capital} {who:has|have} no end line: ended by a signal or by the program that started it, or still running elsewhere."
        return Gap(NO_END, template, NEXT_GONE)
    if not codes:
        template = "{who:capital} ended by {who:itself|themselves}, but the exit code is not known."
        return Gap(UNKNOWN_CODE, template, NEXT_UNTOLD)
    if run.expected is None and process.started.role != "solo":
        template = "{who:capital} finished normally, but the expected number of ranks is not known."
        return Gap(UNKNOWN_SIZE, template, NEXT_SIZE)
    if process.holes:
        template = "{who:capital} finished normally, but {lines} of the file {lines:is|are} missing."
        return Gap(HOLES, template, NEXT_HOLES, (("lines", counted(process.holes, "line")),))
    return None


def _exit_code(code: int, site: Optional[Site], when: float) -> Gap:
    """Return that a rank ended with an exit code: by which exit call, and under which `if`."""
    values: Tuple[Tuple[str, Any], ...] = (("code", code),)
    if site is None:
        return Gap(EXIT_CODE, "{who:capital} ended with exit code {code} without an exception that the probe saw.", NEXT_LOGGED, values)
    values += (("where", place(site)),)
    template = "{who:capital} ended with exit code {code} without an exception that the probe saw, by the exit call at {where}."
    led = condition(site, when)
    if led is None:
        return Gap(EXIT_CODE, template, NEXT_LOGGED, values)
    template = (
        "{who:capital} ended with exit code {code} without an exception that the probe saw, by the exit call at {where}, under '{condition}' in "
        "line {line}."
    )
    then = NEXT_FINITE if led.hint == "finite" else NEXT_LOGGED
    return Gap(EXIT_CODE, template, then, (*values, ("condition", quoted(led.text)), ("line", led.line)))


# What to try next if a run leaves a question open, one sentence each, so that "undecided" is never the last word.

NEXT_EARLY = say("Look at what the launch printed first: the program may have ended before it imported torch.")
NEXT_NO_GROUP = say(
    "If the processes use torch.distributed.rpc or no torch at all, there is nothing to follow: the probe looks at process groups. If they "
    "should train together, check whether each of them calls init_process_group."
)
NEXT_OTHER_RUN = say("{runs} lists all runs.", runs=command("runs"))
NEXT_MISSING = say("Look at what those ranks printed first. If their host writes to its own folder, name both: python -m ddp_probe report DIR DIR.")
NEXT_LAUNCHER = say("Look at what the launching program printed, and at its own code after the ranks had ended.")
NEXT_HUNG = say("If it hung there, look at the ranks that were in another place: it waited for those.")
NEXT_EMPTY = say("Save what the job prints, including errors: COMMAND 2>&1 | tee log. Or run it with DDP_PROBE=1.")
NEXT_TRACED = say("Run the job again with DDP_PROBE=1 and read that run: {report}.", report=command("report"))
NEXT_FOLLOW = say("Read it again once it has ended; {report} waits for that.", report=command("report", "--follow"))
NEXT_LOGGED = say(
    "Look at what it printed last. Do not catch the exception, or call sys.exit(1) in the except that catches it: then its traceback is recorded."
)
NEXT_FINITE = say(
    "Print the value before the ranks reduce it: the rank whose own value is not finite has the batch that makes it so. If it is not finite on "
    "all ranks, look at the learning rate, and at the gradients of the steps before."
)
NEXT_GONE = say(
    "Look at what the program that started it printed: a pool (joblib, Ray, concurrent.futures) keeps the exception of a worker and ends its "
    "workers. If it printed none, ask the kernel: dmesg -T | grep -i -E 'killed process|out of memory'. If you start it with torchrun, its "
    "exit code or signal is recorded."
)
NEXT_UNTOLD = say("End the program by its last line or by sys.exit(code), not by raise SystemExit; or start it with torchrun, which reports it.")
NEXT_SIZE = say("Set WORLD_SIZE, or start the job with torchrun, which does.")
NEXT_HOLES = say("Copy the file again from its host. If lines are missing there too, check that disk (df -h), and run the job again.")
NEXT_UNREADABLE = say("Make it readable for this user, or read it as the user who ran the job.")
NEXT_NONE_ASKED = say("Ask for at least one process: a count of cards is 0 if torch sees none.")
NEXT_CAUGHT = say(
    "Look at what the ranks that differ printed, and at the except clauses of the job: one of them has caught what failed. Let it end with "
    "that exception."
)
NEXT_LEDGER = say(
    "Copy the file of the rank that ends in .ledger beside its log. If there is none, check whether the disk was full, and run the job again."
)
