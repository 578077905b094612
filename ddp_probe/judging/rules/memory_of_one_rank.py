"""A rank has held far more memory on its card than ranks with the same model."""

from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from ddp_probe.judging.memory import MIB, between, main_device, of_device
from ddp_probe.judging.rule import WARNING, Finding, Rule, first_of, shown
from ddp_probe.judging.who import ranks_of
from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.wording.text import say
from ddp_probe.wording.words import named, size

_TIMES, _MORE = 1.5, 256 * MIB

RULE = Rule(
    id="DDP227",
    slug="memory-of-one-rank",
    cause="memory_of_one_rank",
    title="A rank uses far more memory on its card than the other ranks with the same model.",
    symptom="One rank runs out of memory, or is close to it, while the cards of the others are half empty.",
    evidence=(
        "The peaks in device.state: ranks that have wrapped the same model hold about the same, and a few of them half as much again and "
        "256 MiB more. "
        "The first line with the higher peak says when it grew, and at which call."
    ),
    remedy=(
        "See what only this rank does at that line: a checkpoint loaded onto the card (map_location='cpu'), an evaluation or a logger that keeps "
        "outputs with their graph (detach(), torch.no_grad()), a larger share of the data, a second copy of the model (an EMA). Do it on the CPU, "
        "or free it before training goes on."
    ),
    restart="no",  # The line that keeps the memory runs again.
    needs=("device.state", "ddp.init"),
    severity=WARNING,
    yields_to=("memory-on-another-card", "set-device-missing", "card-number-fixed", "map-location-missing"),
)


class _Use(NamedTuple):
    process: LoggedProcess
    device: str
    peak: int


def check(run: Run) -> Iterator[Finding]:
    """Compare the peaks of ranks that have wrapped the same models."""
    alike: Dict[Tuple[str, ...], List[_Use]] = {}
    begun = any(_passes(process) for process in run.processes)
    for process in run.processes:
        if begun and _passes(process) == 0:  # It has yet to take what the others have.
            continue
        most, models = main_device(process), _models(process)
        if most is not None and models and process.rank is not None:
            alike.setdefault((*models, most[0].partition(":")[0]), []).append(_Use(process, *most))
    for group in alike.values():
        usual = sorted(use.peak for use in group)[(len(group) - 1) // 2]  # The median, or the lower of two.
        more = [use for use in group if use.peak > _TIMES * usual + _MORE]
        if more and 2 * len(more) <= len(group):
            yield _finding(more, usual, len(group))


def _passes(process: LoggedProcess) -> Optional[int]:
    """Return how often a rank has entered its backward pass, if its ledger tells."""
    if process.ledger is None or process.ledger.problem:
        return None
    return next((phase.times for phase in process.ledger.phases if phase.name == "backward"), 0)


def _models(process: LoggedProcess) -> Tuple[str, ...]:
    placements = [call.begin.placement for call in process.calls(schema.Wrap)]
    return tuple(placement.digest for placement in placements if placement is not None and placement.digest)


def _finding(more: List[_Use], usual: int, of: int) -> Finding:
    first = max(more, key=lambda use: use.peak)
    points = of_device(first.process, first.device)
    grown = next(number for number, point in enumerate(points) if point.peak > _TIMES * usual + _MORE)
    ranks = ranks_of(use.process for use in more)
    verdict = say(
        "{who:capital} held up to {peak} on {device}, while ranks with the same model held {usual} (median of {count}); "
        "rank {rank} grew beyond that {when}.",
        who=named(ranks),
        peak=size(first.peak),
        device=first.device if len(more) == 1 else say("their cards"),
        usual=size(usual),
        count=of,
        rank=first.process.rank,
        when=between(first.process, points[grown - 1].call if grown else None, points[grown].call),
    )
    evidence = []
    for use in more:
        text = say("{peak} at most on {device}", peak=size(use.peak), device=use.device)
        evidence.append(shown(of_device(use.process, use.device)[-1].call, text))
    return RULE.found(
        ranks=ranks,
        verdict=verdict,
        evidence=first_of(evidence),
        when=points[grown].call.when,
    )
