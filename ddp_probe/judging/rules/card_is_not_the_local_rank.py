"""A rank uses its own number as its card's number, but the cards are numbered differently: bound by a scheduler, or counted per host."""

from typing import Iterator, List

from ddp_probe.judging import card_use
from ddp_probe.judging.rule import Finding, Printed, Rule, failed, first_of
from ddp_probe.reading.model import Run
from ddp_probe.wording.words import at, capital, named

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
    bound = [each for each in refused if each.slot == each.process.local_rank and card_use.own(hosts[card_use.machine(each.process)])]
    if bound:
        yield _found(bound, "each rank of %s sees different cards, counted from 0: %s." % (bound[0].process.host, _lists(run, bound[0])))
    crossed = [each for each in refused if each.slot == each.process.rank != each.process.local_rank is not None]
    if crossed:
        first = crossed[0].process
        yield _found(crossed, "that is its RANK; on %s its LOCAL_RANK is %d." % (first.host, first.local_rank or 0))


def _found(refusals: List[card_use.Refused], because: str) -> Finding:
    first = refusals[0]
    site = first.failure.site
    where = at(site)
    return RULE.found(
        ranks=[each.process.rank for each in refusals if each.process.rank is not None],
        verdict="%s asked for card %d%s, and %s" % (capital(named([first.process.rank or 0])), first.slot, where, because),
        evidence=first_of([failed(each.failure, "%s(%d): %s" % (each.call.name, each.slot, each.failure.text)) for each in refusals]),
        when=first.failure.when,
        explains=[each.failure for each in refusals],
    )


def _lists(run: Run, refusal: card_use.Refused) -> str:
    here = [process for process in run.processes if card_use.machine(process) == card_use.machine(refusal.process)][:4]
    return ", ".join("rank %s %s" % (process.rank, " ".join("%s=%s" % each for each in card_use.visible(process).items())) for process in here)
