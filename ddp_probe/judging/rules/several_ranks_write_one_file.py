"""Several ranks of one host write the same file at the same time."""

from typing import Dict, Iterator, List, NamedTuple, Optional

from ddp_probe.judging import change
from ddp_probe.judging.load_calls import Saved, Saves
from ddp_probe.judging.rule import WARNING, Finding, Rule, first_of, shown
from ddp_probe.judging.waiting import joined
from ddp_probe.judging.who import ranks
from ddp_probe.reading.model import Run
from ddp_probe.shared import schema
from ddp_probe.wording.text import say
from ddp_probe.wording.words import named, place, quoted

RULE = Rule(
    id="DDP525",
    slug="several-ranks-write-one-file",
    cause="several_ranks_write_one_file",
    title="Several ranks write the same checkpoint at the same time.",
    symptom="Often nothing, as long as all ranks write the same bytes; sometimes the file has parts of two checkpoints and cannot be loaded.",
    evidence="Saves of one path by several ranks of one host that overlap in time, and write in place.",
    remedy="Save on one rank only: if torch.distributed.get_rank() == 0: torch.save(state, path).",
    restart="no",  # All ranks run the same save again.
    needs=("checkpoint.save",),
    severity=WARNING,
    yields_to=("launched-without-launcher",),
)


class _Clash(NamedTuple):
    """Saves of one file that overlap, and the milliseconds for which the first two do."""

    saves: List[Saved]
    overlap: float


def check(run: Run) -> Iterator[Finding]:
    """Compare the saves of each file; the clash with most ranks is reported."""
    clashes = list(filter(None, (_clash(saves) for saves in Saves(run).files())))
    if not clashes:
        return
    worst = max(clashes, key=lambda clash: len(clash.saves))
    first, second = worst.saves[:2]
    writers = ranks(process for process, _ in worst.saves)
    evidence = []
    for process, save in worst.saves:
        who = named(ranks([process]))
        evidence.append(shown(save, say("{who} {who:saves|save} {path}", who=who, path=quoted(save.begin.path))))
    yield RULE.found(
        ranks=writers,
        verdict=say(
            "{who:capital} write {path} at the same time, at {where}; rank {first} and rank {second} overlap by {overlap:.1f} ms.",
            who=named(writers),
            path=quoted(first[1].begin.path),
            where=place(first[1].site),
            first=first[0].rank,
            second=second[0].rank,
            overlap=worst.overlap,
        ),
        evidence=first_of(evidence),
        when=first[1].when,
        change=_change(first),
    )


def _clash(saves: List[Saved]) -> Optional[_Clash]:
    """Return the saves by several ranks of one host that overlap; a save that replaces the file at its end does no harm."""
    hosts: Dict[str, List[Saved]] = {}
    for process, save in saves:
        if process.rank is not None and save.until is not None and isinstance(save.end, schema.Save) and save.end.in_place and _is_file(save.begin):
            hosts.setdefault(process.host, []).append((process, save))
    for of_host in hosts.values():
        for before, after in zip(of_host, of_host[1:]):
            seconds = min(before[1].until or 0.0, after[1].until or 0.0) - after[1].when
            if before[0] is not after[0] and seconds > 0:
                return _Clash(_others(of_host, before, after), seconds * 1000)
    return None


def _others(saves: List[Saved], before: Saved, after: Saved) -> List[Saved]:
    """Return the two, and the saves of further ranks that overlap with the first."""
    more = {id(before[0]): before, id(after[0]): after}
    for process, save in saves:
        if before[1].when <= save.when < (before[1].until or 0.0):
            more.setdefault(id(process), (process, save))
    return list(more.values())


def _is_file(save: schema.Save) -> bool:
    """Tell whether one file is written: of a distributed checkpoint each rank writes its own files into one folder, and a device keeps none."""
    return not save.by.startswith("torch.distributed.") and not save.path.startswith("/dev/")


def _change(first: Saved) -> change.Change:
    rank, needs = "torch.distributed.get_rank() == 0", "torch.distributed"
    if not joined(first[0]):  # Without a group, get_rank() raises.
        rank, needs = "os.environ.get('RANK', '0') == '0'", "os"
    if first[1].begin.opened:
        return [
            say(
                "Open and save the file on one rank only, at {where}: {code}",
                where=place(first[1].site),
                code=quoted("if %s: …" % rank),
            )
        ]
    call = change.Instead(first[1].site, change.SAVE, rank, imports=(needs,), name=say("the save"))
    return [call] if not first[1].begin.through else [RULE.remedy]
