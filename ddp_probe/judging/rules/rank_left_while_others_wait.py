"""A rank has left, and the others wait for it in a collective."""

from typing import Iterator

from ddp_probe.judging import left_sequence
from ddp_probe.judging.exit_calls import fix_of_hidden
from ddp_probe.judging.ledgers import Standing, standings_of
from ddp_probe.judging.parted import absent, before_it_left, doubt, evidence, explained, of_kind, sequence_evidence, waiting
from ddp_probe.judging.rule import Finding, Rule
from ddp_probe.reading.model import Run
from ddp_probe.standing.splits import LEFT
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import at, named, place

RULE = Rule(
    id="DDP631",
    slug="rank-left-while-others-wait",
    cause="rank_stopped_participating",
    title="A rank has left, and the others wait for it in a collective.",
    symptom="The job hangs with fewer processes than it started with; the remaining ranks give up with a timeout or lose a peer.",
    evidence="The ledgers show who waits in which collective; the log or the launcher shows how the missing rank ended.",
    remedy="Find out why the rank left: its exit code, its last lines, the signal. Let all ranks leave together.",
    restart="unknown",  # Why the rank left is not known.
    needs=("process.end", "launcher.child"),
    last_resort=True,
)


def check(run: Run) -> Iterator[Finding]:
    """Name the ranks that have left and those that wait."""
    split = of_kind(run, LEFT)
    if split is None:
        return
    gone = standings_of(run).ranks[split.there[0]]
    left = before_it_left(split, gone)
    yield RULE.found(
        ranks=split.blame,
        verdict=say(
            "{absent:capital}; {waiting}.{departure}{doubt}",
            absent=absent(run, split),
            waiting=waiting(run, split),
            departure=say(" {sentence}", sentence=left_sequence.told(left)) if left is not None else "",
            doubt=doubt(run, split),
        ),
        evidence=sequence_evidence(run, left, evidence(run, split)),
        when=min(split.when, gone.left.when if gone.left is not None else split.when),
        remedy=_remedy(named(split.there), gone),
        change=left_sequence.change(left if split.decided is not None else None),
        explains=[*explained(run), *([gone.left.failure] if gone.left is not None and gone.left.failure is not None else [])],
    )


def _remedy(who: Text, gone: Standing) -> str:
    left = gone.left
    if left is not None and left.failure is not None:
        return say(
            "Fix what failed at {where}; the other ranks wait for {who} because of it.",
            where=place(left.site),
            who=who,
        )
    hidden = fix_of_hidden(gone.process)
    if left is not None and hidden:
        return hidden
    if left is not None and left.exits and gone.process.exit_call is None:
        return say(
            "Find out why {who} {who:leaves its|leave their} program while the others go on: exit() in a library, an exception "
            "that is caught, a return. What {who:it|they} printed last tells more. Let all ranks leave together.",
            who=who,
        )
    if left is not None and left.site is not None:
        return say(
            "Find out why {who} {who:reaches|reach} the exit call at {where}: print what decides it. Let all ranks leave together.",
            who=who,
            where=place(left.site),
        )
    if gone.process.end is None:
        return say(
            "Find out what ended {who} after {who:its|their} last call{where}: a signal (dmesg -T | grep -i 'out of memory', "
            "memory.events of the container, the scheduler's log), the program that started it, or MPI's Abort. "
            "What {who:it|they} printed last tells more.",
            who=who,
            where=at(gone.site),
        )
    if gone.process.started.role == "promoted":
        return say(
            "Find out why {who} left after its last call{where}: its last printed lines, its exit code. "
            "A pool (joblib, Ray, concurrent.futures) keeps the exception of a worker: the program that started "
            "it prints it. Let all ranks leave together.",
            who=who,
            where=at(gone.site),
        )
    return say(
        "Find out why {who} left after its last call{where}: its last printed lines, its exit code. Let all ranks leave together.",
        who=who,
        where=at(gone.site),
    )
