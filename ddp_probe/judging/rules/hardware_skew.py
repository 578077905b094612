"""Hosts of one job have different accelerators, or a different number of them."""

from typing import Dict, Iterator, List, Optional, Tuple

from ddp_probe.judging import card_use
from ddp_probe.judging.rule import WARNING, Finding, Printed, Rule, line
from ddp_probe.judging.skews import Skew, compare
from ddp_probe.reading.logged_call import LogLine
from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.wording.text import say
from ddp_probe.wording.words import listed

RULE = Rule(
    id="DDP811",
    slug="hardware-skew",
    cause="hardware_skew_across_nodes",
    title="The hosts of the job have different accelerators.",
    symptom="A hang or an error in the first collective, out of memory on some hosts only, or one host that all others wait for.",
    evidence=(
        "The kind of accelerator and the number of cards that each rank recorded, compared between hosts. A host that shows fewer may have lost a "
        "card."
    ),
    remedy=(
        "Run the job on hosts of one kind. If a host shows fewer cards than it has, check it with the vendor's tool (nvidia-smi, npu-smi info, "
        "efsmi) and check its container's device list."
    ),
    restart="elsewhere",  # The hosts keep their cards; hosts of one kind run the job.
    needs=("process.start", "ddp.init"),
    printed=(
        Printed(
            r"ranks? (?:have|has|use|with)[^\n]{0,30}different (?:GPU|device|accelerator|compute capability)|(?:GPUs?|devices) (?:are"
            r"|of) (?:of )?different (?:types?|models?|architectures?|compute capabilit)"
        ),
        Printed(
            r"[Mm]ismatch(?:ed)?[^\n]{0,40}(?:GPU (?:type|model|arch\w*)|compute capabilit\w+|number of (?:GPUs|NICs|HCAs"
            r"|rails))[^\n]{0,60}(?:rank|node|host)"
        ),
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """Compare the kind and the number of cards between hosts."""
    skew, ranks = skew_of(run), [process for process in run.processes if process.rank is not None]
    if skew is None:
        return
    guilty = set(skew.ranks)
    hosts = sorted({process.host for process in ranks if process.rank in guilty})
    verdict = say("The hosts differ in their accelerators: {values}.", values=skew.told(say("none")))
    if hosts:
        verdict = say(
            "The hosts differ in their accelerators: {values} ({hosts}).",
            values=skew.told(say("none")),
            hosts=listed(hosts[:4]),
        )
    evidence = []
    for process in ranks:
        if process.rank in skew.odd:
            cards = skew.all[process.rank]
            text = say("rank {rank} on {host}: {cards}", rank=process.rank, host=process.host, cards=cards)
            evidence.append(line(LogLine(process.file, 1), text))
    yield RULE.found(
        ranks=skew.ranks,
        verdict=verdict,
        evidence=evidence[:4],
        when=min(process.start_when or process.last_when for process in ranks),
        severity=WARNING,
    )


def skew_of(run: Run) -> Optional[Skew]:
    """Return how the accelerators of the hosts differ."""
    ranks = [process for process in run.processes if process.rank is not None]
    return compare("accelerators", _told(ranks), []) if len({card_use.machine(process) for process in ranks}) > 1 else None


def _told(ranks: List[LoggedProcess]) -> Dict[int, str]:
    """Return what each rank's host has, without numbers if a variable limits the cards of one of them."""
    kinds: Dict[int, Tuple[str, Optional[int]]] = {}
    for process in ranks:
        cards = card_use.initialised(process)
        if cards and process.rank is not None:
            kinds[process.rank] = (cards[0].name, cards[0].count)
    numbers = all(count is not None for _, count in kinds.values()) and not any(card_use.visible(process) for process in ranks)
    return {rank: "%d %s" % (count or 0, name) if numbers else name for rank, (name, count) in kinds.items()}
