"""The process of a rank is stopped, and the others wait for it."""

from typing import Iterator

from ddp_probe.judging.ledgers import standings_of
from ddp_probe.judging.parted import doubt, evidence, explained, halted, of_kind, only_waits, waiting
from ddp_probe.judging.rule import HIGH, MEDIUM, Finding, Rule
from ddp_probe.reading.model import Run
from ddp_probe.standing.splits import HALTED
from ddp_probe.wording.text import joined, say
from ddp_probe.wording.words import listed, named, quoted

RULE = Rule(
    id="DDP421",
    slug="rank-does-not-run",
    cause="rank_stopped_participating",
    title="The process of a rank is stopped, and the others wait for it.",
    symptom="The job hangs. The process exists but uses no CPU; ps shows it in state T.",
    evidence=(
        "The kernel reports the process as stopped, or did so when its launcher looked. After the run: its watcher wrote nothing although its "
        "ledger stopped moving, while the watchers of other ranks on the host reported a hang. Native code that holds the GIL silences a watcher "
        "as well: unless somebody saw the process run meanwhile, the finding says that it may have been either."
    ),
    remedy=(
        "If it still exists: kill -CONT PID. Then find out who stopped it: SIGSTOP, Ctrl-Z in a terminal, a debugger, a scheduler that suspends jobs."
    ),
    restart="unknown",  # Who stopped the process may do so again.
    needs=("hang.suspected",),
)


def check(run: Run) -> Iterator[Finding]:
    """Name the ranks that do not run, how that is known, and who waits."""
    split = of_kind(run, HALTED)
    if split is None or not only_waits(run):
        return
    standings = standings_of(run)
    how = halted(run, standings)
    stopped = [
        say("{who} {how}, {stop}", who=named([rank]), how=how[rank], stop=standings.ranks[rank].where()) for rank in split.there if rank in how
    ]
    running = [standings.ranks[rank].process.pid for rank in split.there if rank in run.running]
    pids = " ".join(str(pid) for pid in running if pid > 0)
    go_on = say("Let it continue: {command}.", command=quoted("kill -CONT %s" % pids)) if pids else ""
    find_out = say(
        "Find out who stopped {who}: SIGSTOP, Ctrl-Z in a terminal, a debugger, a scheduler that suspends jobs.",
        who=named(split.there),
    )
    yield RULE.found(
        ranks=split.blame,
        verdict=say(
            "{stopped:capital}; {waiting}.{doubt}",
            stopped=listed(stopped, 4),
            waiting=waiting(run, split),
            doubt=doubt(run, split),
        ),
        evidence=evidence(run, split),
        when=split.when,
        remedy=joined([go_on, find_out]),
        explains=explained(run),
        confidence=HIGH if pids else MEDIUM,
    )
