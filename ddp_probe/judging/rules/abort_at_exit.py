"""A rank finished its work, but was aborted while its interpreter shut down."""

from typing import Iterator

from ddp_probe.judging.rule import WARNING, Finding, Rule, line
from ddp_probe.judging.waiting import joined
from ddp_probe.judging.who import deaths, ranks
from ddp_probe.reading.model import Run
from ddp_probe.wording.text import say
from ddp_probe.wording.words import named

RULE = Rule(
    id="DDP619",
    slug="abort-at-exit",
    cause="rank_stopped_participating",
    title="A rank finished its work, but was aborted while its interpreter shut down.",
    symptom="The job has printed its last line, and the launcher reports exit code -6 (SIGABRT).",
    evidence=(
        "The rank's file has its last line, without a failure and with an open process group, and the launcher reports SIGABRT. "
        "gloo in torch 2 does this after a collective right before the exit."
    ),
    remedy="End the program with torch.distributed.barrier() and torch.distributed.destroy_process_group() on all ranks.",
    restart="no",  # The program ends in the same way again.
    needs=("process.end", "launcher.child"),
    severity=WARNING,
)


def check(run: Run) -> Iterator[Finding]:
    """Find the ranks that wrote their last line and were then ended by SIGABRT."""
    aborted = []
    ends = deaths(run)
    for process in run.processes:
        death = ends.get(process.rank) if process.rank is not None else None
        end = process.ended
        if (
            death is not None
            and death.signal == "SIGABRT"
            and end is not None
            and end.failure is None
            and not end.uncaught
            and end.process_group
            and joined(process)
        ):
            aborted.append((process, death))
    if not aborted:
        return
    guilty = ranks(process for process, _ in aborted)
    evidence = []
    for process, death in aborted[:3]:
        evidence.append(line(process.last_at, say("the end, without a failure")))
        evidence.append(line(death.at, say("exit code {code} (SIGABRT)", code=death.exit_code)))
    yield RULE.found(
        ranks=guilty,
        verdict=say(
            "{who:capital} reached the end of the program with an open process group, and {who:was|were} aborted (SIGABRT) "
            "while the interpreter shut down; the work was done.",
            who=named(guilty),
        ),
        evidence=evidence,
        when=max(process.last_when for process, _ in aborted),
    )
