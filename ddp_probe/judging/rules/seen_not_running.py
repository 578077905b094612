"""A process of the job is stopped or gone, as looks from outside show."""

from typing import Iterator, List

from ddp_probe.judging.looks import GONE, NOT_RUNNING, Stance, found, stances, waiting
from ddp_probe.judging.rule import ERROR, HIGH, LOW, WARNING, Finding, Rule
from ddp_probe.reading.model import Run
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import counted, named, quoted

RULE = Rule(
    id="DDP681",
    slug="seen-not-running",
    cause="rank_stopped_participating",
    title="The process of a rank is stopped or gone, as looks from outside show.",
    symptom="The job hangs. ps shows a rank in state T or Z, or fewer ranks than were started.",
    evidence="The state that the kernel gave for the process in the last look; the stacks of the others show where they wait.",
    remedy="Stopped: kill -CONT PID, then find out who stopped it. Gone: look at what it printed last, and let the others end.",
    restart="unknown",  # Who stopped or ended the process may do so again.
    needs=("process.look",),
)


def check(run: Run) -> Iterator[Finding]:
    """Name the ranks that do not run, and the places of the others."""
    stopped = [stance for stance in stances(run) if stance.last.state in NOT_RUNNING]
    gone = [stance for stance in stances(run) if stance.last.state in GONE]
    guilty = gone or stopped
    if not guilty or len(gone) == len(stances(run)):
        return
    kills = max((stance.last.system.oom_kills or 0 for stance in stances(run) if stance.last.system is not None), default=0)
    killed = ""
    if gone and kills:
        killed = say(
            " (their control group: {processes} killed for lack of memory so far)",
            processes=counted(kills, "process", "processes"),
        )
    yield found(
        RULE,
        guilty,
        waiting(run) or [stance for stance in stances(run) if stance.stands and stance not in guilty],
        killed,
        remedy=_find_the_end(gone) if gone else _continue(stopped),
        # If nobody waits for one that is gone, the job may be at its beginning, or coming to its end.
        confidence=HIGH if waiting(run) or not gone else LOW,
        severity=ERROR if waiting(run) or not gone else WARNING,
    )


def _find_the_end(gone: List[Stance]) -> Text:
    return say(
        "Find out what ended {who}: its last printed lines, its exit code, dmesg -T | grep -i 'out of memory'. The others wait for it.",
        who=named([stance.rank for stance in gone]),
    )


def _continue(stopped: List[Stance]) -> Text:
    pids = " ".join(str(stance.pid) for stance in stopped)
    return say(
        "Let it continue: {command}. Then find out who stopped it: SIGSTOP, Ctrl-Z in a terminal, a debugger, a scheduler that suspends jobs.",
        command=quoted("kill -CONT %s" % pids),
    )
