"""A rank holds memory on a card that is another rank's, beside its own."""

from typing import Iterator, List, NamedTuple, Optional, Tuple

from ddp_probe.judging.card_use import machine, visible
from ddp_probe.judging.rule import WARNING, Finding, Rule, first_of, shown
from ddp_probe.judging.who import ranks_of
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import listed, named

RULE = Rule(
    id="DDP313",
    slug="memory-on-another-card",
    cause="set_device_missing",
    title="A rank uses memory on another rank's card as well as on its own.",
    symptom=("The vendor's tool lists every process of the host on the first card; that card runs out of memory before the others do."),
    evidence=(
        "The allocator's own counters in device.state: a rank has most of its memory on one card, and some on a card that holds most of the "
        "memory of another rank of the host."
    ),
    remedy=(
        "Choose the card before anything else touches one: torch.cuda.set_device(local_rank), or the accelerator's own module, before "
        "init_process_group and before the first load. Load checkpoints with map_location='cpu', since torch.load puts tensors back on the card "
        "that they were saved from."
    ),
    restart="no",  # The same line touches the other card again.
    needs=("device.state",),
    yields_to=("set-device-missing", "card-number-fixed", "map-location-missing"),
)


class _Guest(NamedTuple):
    """A rank with memory on a card that another rank works on."""

    process: LoggedProcess
    memory: schema.DeviceMemory
    home: str
    owner: LoggedProcess


def check(run: Run) -> Iterator[Finding]:
    """Compare, per host, where each rank has most of its memory with where the others have some."""
    memories = [(process, _memory(process)) for process in run.processes]
    homes = [(process, *memory) for process, memory in memories if memory is not None]
    guests: List[_Guest] = []
    for process, home, devices in homes:
        for memory in devices:
            owner = next((other for other, its_home, _ in homes if its_home == memory.device and _beside(other, process)), None)
            if memory.device != home and owner is not None:
                guests.append(_Guest(process, memory, home, owner))
    if not guests:
        return
    first = guests[0]
    ranks = sorted(set(ranks_of(guest.process for guest in guests)))
    seen = _first_seen(first)
    evidence = []
    for guest in guests:
        text = say(
            "{held:.1f} MiB on {device}; it works on {home}",
            held=_mib(guest.memory),
            device=guest.memory.device,
            home=guest.home,
        )
        evidence.append(shown(_first_seen(guest), text))
    yield RULE.found(
        ranks=ranks,
        verdict=say(
            "{who:capital} {who:holds|hold} memory on {cards}, where rank {owner} works, as well as on {who:its|their} own card; "
            "rank {rank} holds up to {held:.1f} MiB there, first seen at '{when}'.",
            who=named(ranks),
            cards=_cards(guests),
            owner=first.owner.rank,
            rank=first.process.rank,
            held=_mib(first.memory),
            when=seen.begin.when,
        ),
        evidence=first_of(evidence),
        when=seen.when,
        severity=WARNING,
    )


def _memory(process: LoggedProcess) -> "Optional[Tuple[str, List[schema.DeviceMemory]]]":
    """Return the device on which a rank has had the most memory, and all that it has used."""
    last = process.final(schema.DeviceState)
    used = [memory for memory in last.begin.devices if _peak(memory)] if last is not None else []
    return (max(used, key=_peak).device, used) if used else None


def _beside(process: LoggedProcess, other: LoggedProcess) -> bool:
    """Tell whether two ranks of one host count the cards alike."""
    return process is not other and machine(process) == machine(other) and visible(process) == visible(other)


def _first_seen(guest: _Guest) -> "LoggedCall[schema.DeviceState]":
    calls = guest.process.calls(schema.DeviceState)
    return next(call for call in calls if any(memory.device == guest.memory.device and _peak(memory) for memory in call.begin.devices))


def _peak(memory: schema.DeviceMemory) -> int:
    return memory.allocated_peak or memory.allocated or 0


def _cards(guests: List[_Guest]) -> Text:
    return listed(sorted({guest.memory.device for guest in guests}), by=" and ")


def _mib(memory: schema.DeviceMemory) -> float:
    return _peak(memory) / (1 << 20)
