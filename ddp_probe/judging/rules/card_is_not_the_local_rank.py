"""A rank uses its own number as its card's number, but the cards are numbered differently: bound by a scheduler, or counted per host."""

from typing import Iterator, List, Sequence

from ddp_probe.judging import card_use
from ddp_probe.judging.rule import Evidence, Finding, Printed, Rule, failed, first_of
from ddp_probe.judging.who import ranks_of
from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import at, listed, named, quoted

_BARRIER = r"using GPU \d+ to perform barrier as devices used by this process are currently unknown"

RULE = Rule(
    id="DDP305",
    slug="card-is-not-the-local-rank",
    cause="local_rank_vs_bound_gpu",
    title="A rank asks for the card with its own number, but its card has a different number.",
    symptom=(
        "set_device raises 'invalid device ordinal' although there are as many cards as processes; or the first barrier hangs after 'devices used "
        "by this process are currently unknown'."
    ),
    evidence=(
        "Each rank of the host sees different cards, counted from 0 (a scheduler or a wrapper script bound them), and asks for LOCAL_RANK; or "
        "it asks for RANK, which keeps counting on the second host."
    ),
    remedy=(
        "If each process is bound to one card, use card 0: set_device(0). Otherwise use set_device(int(os.environ['LOCAL_RANK'])), never RANK. "
        "Do not bind twice: either the scheduler or the program chooses."
    ),
    restart="no",  # The number is computed in the code.
    needs=("device.set", "process.start"),
    printed=(
        Printed(card_use.NO_SUCH_CARD, beside=r"SLURM|srun|slurmstepd|gpu-bind|gpus-per-task|ROCR_VISIBLE_DEVICES|HIP_VISIBLE_DEVICES"),
        Printed(
            card_use.NO_SUCH_CARD,
            beside=r"set_device\((?:[\w.]+\.)?get_rank\(\)\)",
            says="The card's number is the rank in the whole job, which keeps counting on the next host.",
        ),
        Printed(r"LOCAL_RANK[^\n]{0,40} inconsistent\b"),
        # SLURM has bound one card to each task, and the program asks for all of the host.
        Printed(
            r"You requested (?:gpu|GPU)s?: (?P<asked>\[[\d, ]+\])\s*But your machine only has: \[0\]",
            beside=r"gpus-per-task|gpu-bind",
            says="The job asks for cards {asked}, but each task sees only its own, as card 0: leave --gpus-per-task and --gpu-bind out.",
            ranks=False,
        ),
        Printed(
            r"The selected device indices (?P<asked>\[[^\]\n]*\]) don't match the local rank values",
            says="The job selects cards {asked}, but DeepSpeed gives local rank N card N: select them by CUDA_VISIBLE_DEVICES instead.",
            ranks=False,
        ),
        Printed(
            r"expected local-rank to be the same as rank % device-count",
            says="The program takes RANK modulo the number of cards for its LOCAL_RANK: each host must have one rank for each of its cards.",
            ranks=False,
        ),
        # ignite reads the local rank from SLURM_LOCALID, although SLURM may have bound one card to each task.
        Printed(r"torch\._C\._cuda_setDevice|" + card_use.NO_SUCH_CARD, beside=r"ignite/distributed/comp_models/native\.py"),
        Printed(r"[Ww]atchdog caught collective operation timeout: WorkNCCL\(SeqNum=1, OpType=(?:ALLREDUCE|BARRIER), NumelIn=1\b", beside=_BARRIER),
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """Compare the card that a refused rank asked for with the cards that it saw and with its own numbers."""
    refused, hosts = card_use.refused(run), card_use.hosts(run)
    by_local_rank = [refusal for refusal in refused if refusal.slot == refusal.process.local_rank]
    bound = [refusal for refusal in by_local_rank if card_use.own(hosts[card_use.machine(refusal.process)])]
    if bound:
        process = bound[0].process
        because = say(
            "each rank of {host} sees different cards, counted from 0: {cards}",
            host=process.host,
            cards=_lists(hosts[card_use.machine(process)]),
        )
        yield _found(bound, because)
    by_rank = [refusal for refusal in refused if refusal.slot == refusal.process.rank]
    crossed = [refusal for refusal in by_rank if refusal.process.local_rank not in (None, refusal.slot)]
    if crossed:
        process = crossed[0].process
        because = say(
            "that is its RANK; on {host} its LOCAL_RANK is {local_rank}",
            host=process.host,
            local_rank=process.local_rank or 0,
        )
        yield _found(crossed, because)


def _found(refusals: List[card_use.Refused], because: Text) -> Finding:
    first = refusals[0]
    return RULE.found(
        ranks=ranks_of(refusal.process for refusal in refusals),
        verdict=say(
            "{who:capital} asked for card {card}{where}, and {because}.",
            who=named([first.process.rank or 0]),
            card=first.slot,
            where=at(first.failure.site),
            because=because,
        ),
        evidence=first_of([_shown(refusal) for refusal in refusals]),
        when=first.failure.when,
        explains=[refusal.failure for refusal in refusals],
    )


def _shown(refusal: card_use.Refused) -> Evidence:
    call = quoted("%s(%d)" % (refusal.call.name, refusal.slot))
    return failed(refusal.failure, say("{call}: {error}", call=call, error=quoted(refusal.failure.text)))


def _lists(here: Sequence[LoggedProcess]) -> Text:
    """Return the variables that limit the cards of each rank of a host."""
    lists = []
    for process in here[:4]:
        variables = " ".join("%s=%s" % variable for variable in card_use.visible(process).items())
        lists.append(say("rank {rank} {variables}", rank=process.rank, variables=quoted(variables)))
    return listed(lists)
