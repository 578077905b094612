"""On which card each rank put its model and which cards it could see: what the rules about ranks and cards compare."""

import re
from collections import Counter
from itertools import chain
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from ddp_probe.judging.facts import fact
from ddp_probe.judging.who import ranks_of
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import Failed, LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.shared.mask_forms import Expression
from ddp_probe.shared.schema import CardLoad
from ddp_probe.wording.text import say

DUPLICATE = r"Duplicated? GPU (?:device|detected)[^\n]*?[Rr]ank \[?(?P<rank1>\d+)\]? and rank \[?(?P<rank2>\d+)\]?"
NO_SUCH_CARD = (
    r"[Ii]nvalid device (?:ordinal|ID|id|index)|cnrtErrorDeviceInvalid|device index is out of range"
    r"|Set visible device failed, invalid device|set device failed[^\n]*device id[^\n]*invalid"
)
HIDDEN, FEW, FIXED, UNSET = "hidden", "few", "fixed", "unset"  # Why ranks share a card.
_LOST = Expression(DUPLICATE + r"|[Oo]ut of memory|OutOfMemory")
_NUMBER = Expression(r"(?:^|:)(\d+)$")
_NO_LIST = Expression(r"^\s*(all|void|none|\d+-\d+)\s*$")


class CardUse(NamedTuple):
    """The card that a rank's model was on when it was wrapped."""

    process: LoggedProcess
    call: "LoggedCall[Any]"
    kind: str  # What torch calls the device: gcu, cuda, xla.
    slot: int  # Its number, as this process counts.
    there: Optional[int]  # Cards that this process could see.
    visible: Dict[str, str]  # Variables that limit which.

    @property
    def card(self) -> Tuple[object, ...]:
        """Return a key that is the same for two ranks on one card."""
        lists = [cards for cards in map(card_list, self.visible.values()) if cards]
        if len(lists) == 1 and self.slot < len(lists[0]):
            return machine(self.process), self.kind, lists[0][self.slot]
        return machine(self.process), self.kind, self.slot, tuple(sorted(self.visible.items())) if lists else ()

    @property
    def device(self) -> str:
        """Return the device as torch writes it."""
        return "%s:%d" % (self.kind, self.slot)


def machine(process: LoggedProcess) -> Tuple[str, str]:
    """Return what distinguishes the host of a process from others, even if all are called localhost."""
    environment = process.started.environment
    return process.host, environment.get("GROUP_RANK") or environment.get("SLURM_NODEID") or ""


def card_list(value: str) -> Tuple[str, ...]:
    """Return the cards that a visible-device variable names; none if it is not a list of cards."""
    return () if _NO_LIST.match(value) else tuple(part.strip() for part in value.split(",") if part.strip())


def visible(process: LoggedProcess) -> Dict[str, str]:
    """Return the variables that limit which cards a process sees."""
    variables: Dict[str, str] = {}
    for card in process.started.accelerators:
        variables.update(card.visible)
    return variables


def count(process: LoggedProcess, kind: str = "") -> Optional[int]:
    """Return how many cards a process could see, as far as it reported."""
    cards = initialised(process)
    if process.ended:
        cards += [card for card in process.ended.accelerators if card.initialised]
    counts = [card.count for card in cards if card.count is not None and kind in ("", card.device_type)]
    if counts:
        return max(counts)
    lists = [names for names in map(card_list, visible(process).values()) if names]
    return len(lists[0]) if len(lists) == 1 else None


def initialised(process: LoggedProcess) -> List[schema.Card]:
    """Return the accelerators that were in use whenever a process wrapped a model."""
    states: List[schema.Card] = []
    for call in wrap_calls(process):
        states += [state for state in call.begin.accelerators if state.initialised]
    return states


def wrap_calls(process: LoggedProcess) -> "List[LoggedCall[Any]]":
    """Return the calls that wrapped a model."""
    calls: List[LoggedCall[Any]] = [*process.calls(schema.Wrap)]
    return calls + [*process.calls(schema.WrapModel)]


def number(device: str) -> Optional[int]:
    """Return the card's number in '3' and 'cuda:3'."""
    match = _NUMBER.search(device)
    return int(match.group(1)) if match else None


@fact
def uses(run: Run) -> List[CardUse]:
    """Return the card use of all ranks that wrapped a model on a single card."""
    ranks = [process for process in run.processes if process.rank is not None]
    return [use for use in map(_use, ranks) if use is not None]


def began(groups: Sequence[Sequence[CardUse]]) -> float:
    """Return when the first of these ranks wrapped its model."""
    return min(use.call.when for use in chain.from_iterable(groups))


def _use(process: LoggedProcess) -> Optional[CardUse]:
    for call in wrap_calls(process):
        placement = (call.end.placement if call.end else None) or call.begin.placement
        devices = list(placement.devices) if placement else []
        index = number(devices[0]) if len(devices) == 1 else None
        if index is not None:
            kind = devices[0].partition(":")[0]
            return CardUse(process, call, kind, index, count(process, kind), visible(process))
    return None


def shared(run: Run) -> List[List[CardUse]]:
    """Return the card use of ranks that are on one card, card by card."""
    groups: Dict[Tuple[object, ...], List[CardUse]] = {}
    for use in uses(run):
        groups.setdefault(use.card, []).append(use)
    return [group for group in groups.values() if len(group) > 1 and not _perhaps_apart(group)]


def _perhaps_apart(group: Sequence[CardUse]) -> bool:
    """Tell whether the cards may differ: a scheduler can show each task its own card under one number, and a local rank is not twice on a host."""
    locals_ = [use.process.local_rank for use in group if use.process.local_rank is not None]
    scheduled = all(use.process.started.launcher not in ("torchrun", "multiprocessing", "environment", "") and use.there == 1 for use in group)
    return scheduled or len(set(locals_)) < len(locals_)


def why(run: Run, group: Sequence[CardUse]) -> str:
    """Tell why ranks share a card."""
    cards = max((use.there or 0 for use in group), default=0)
    if cards == 1:
        return HIDDEN if group[0].visible and not _launched_with(run, group[0]) else FEW
    if cards and any((use.process.local_rank or 0) >= cards for use in group):
        return FEW
    return FIXED if any(named_card(use) for use in group) else UNSET


def _launched_with(run: Run, use: CardUse) -> bool:
    """Tell whether the launcher could not see more cards either."""
    return any(all(_environment(launcher).get(name) == value for name, value in use.visible.items()) for launcher in run.launchers)


def _environment(launcher: LoggedProcess) -> Dict[str, str]:
    return launcher.start.environment if isinstance(launcher.start, schema.LauncherStart) else {}


def named_card(use: CardUse) -> "Optional[LoggedCall[Any]]":
    """Return the call by which the program named this card's number: set_device, or the model's move."""
    sets, moves = use.process.calls(schema.SetDevice), use.process.calls(schema.ModuleMove)
    named: List[Tuple[str, LoggedCall[Any]]] = [(call.begin.device, call) for call in reversed(sets)]
    named += [(call.begin.destination, call) for call in reversed(moves)]
    before = use.call.at.line
    return next((call for device, call in named if call.at.line < before and call.failure is None and number(device) == use.slot), None)


def misplaced(run: Run, groups: Sequence[Sequence[CardUse]]) -> List[int]:
    """Return the ranks that should use another card: all, if all of a host are on one card, else those with another number."""
    here = Counter(machine(use.process) for use in uses(run))
    card_uses: List[CardUse] = []
    for group in groups:
        astray = [use for use in group if use.process.local_rank is not None and use.process.local_rank != use.slot]
        card_uses.extend(group if here[machine(group[0].process)] == len(group) or not astray else astray)
    return ranks_of(use.process for use in card_uses)


def lost(run: Run) -> List[Failed]:
    """Return the failures of ranks that share a card: NCCL rejects it, or the card's memory is not enough."""
    return [failure for failure in run.failures if failure.fatal and failure.process is not None and _LOST.search(failure.text)]


class Refused(NamedTuple):
    """A rank that asked for a card that it does not have."""

    process: LoggedProcess
    call: "LoggedCall[Any]"
    failure: Failed
    slot: int
    there: Optional[int]  # Cards that it could see, as it reported, or as another rank on its host did.


def refused(run: Run) -> List[Refused]:
    """Return the ranks that died because they asked for a card that does not exist."""
    refusals: List[Refused] = []
    here = hosts(run)
    for failure in run.failures:
        process = failure.process
        if process is None or not failure.fatal or not re.search(NO_SUCH_CARD, failure.text):
            continue
        for call in failure.calls:
            device = call.begin.device if isinstance(call.begin, schema.SetDevice) else getattr(call.begin, "destination", "")
            index = number(device)
            if index is not None:
                refusals.append(Refused(process, call, failure, index, count(process) or _neighbours(here[machine(process)], process)))
                break
    return refusals


def hosts(run: Run) -> Dict[Tuple[str, str], List[LoggedProcess]]:
    """Return the processes, host by host."""
    by_host: Dict[Tuple[str, str], List[LoggedProcess]] = {}
    for process in run.processes:
        by_host.setdefault(machine(process), []).append(process)
    return by_host


def own(here: Sequence[LoggedProcess]) -> bool:
    """Tell whether each rank of a host sees other cards than its neighbours."""
    return len({tuple(visible(other).values()) for other in here}) == len(here) > 1


def _neighbours(here: Sequence[LoggedProcess], process: LoggedProcess) -> Optional[int]:
    """Return what another rank of this host counted, if it has the same variables."""
    counts = [count(other) for other in here if visible(other) == visible(process)]
    return max((cards for cards in counts if cards is not None), default=None)


# What vendors' tools said of the cards of each host, beside the ranks that ran there.


class CardsOfHost(NamedTuple):
    """The last answer of a host's tool that lists cards, all that are kept, and the ranks of that host."""

    last: "LoggedCall[schema.CardsState]"
    answers: "List[LoggedCall[schema.CardsState]]"
    ranks: List[LoggedProcess]

    @property
    def looks(self) -> int:
        """Return how often the tool has answered."""
        return self.last.begin.looks

    @property
    def tool(self) -> str:
        """Return the name of the tool."""
        return self.last.begin.tool

    @property
    def host(self) -> str:
        """Return the name of the host."""
        return self.ranks[0].host or say("the host")

    @property
    def used(self) -> bool:
        """Return whether the ranks compute on cards that this tool may list: else what it says is of other jobs."""
        if any(card.processes for card in self.last.begin.cards):
            ours = {rank.pid for rank in self.ranks}
            return any(self.processes(card.index) & ours for card in self.last.begin.cards)
        states = chain.from_iterable(rank.calls(schema.DeviceState) for rank in self.ranks)
        return any(call.begin.devices or call.begin.current for call in states)

    def on(self, card: CardLoad) -> List[int]:
        """Return the ranks that are on a card: by the tool's list of processes, else by what the rank itself calls its current card."""
        if any(listed_card.processes for listed_card in self.last.begin.cards):
            pids = self.processes(card.index)
            return sorted(rank.rank for rank in self.ranks if rank.pid in pids and rank.rank is not None)
        return sorted(rank.rank for rank in self.ranks if rank.rank is not None and _current(rank) == card.index)

    def processes(self, index: int) -> Set[int]:
        """Return the processes that the tool has listed on a card, at any time."""
        pids: Set[int] = set()
        for card in chain.from_iterable(call.begin.cards for call in self.answers):
            if card.index == index:
                pids.update(int(pid) for pid in card.processes if pid.isdigit())
        return pids


def loads_by_host(run: Run) -> Iterator[CardsOfHost]:
    """Yield each host that has ranks and whose launcher ran a tool that listed cards."""
    by_host: Dict[str, List[LoggedProcess]] = {}
    for process in run.processes:
        if process.rank is not None:
            by_host.setdefault(process.host, []).append(process)
    for launcher in run.launchers:
        answers = [call for call in launcher.calls(schema.CardsState) if call.begin.cards]
        if answers and by_host.get(launcher.host):
            yield CardsOfHost(answers[-1], answers, by_host[launcher.host])


def _current(process: LoggedProcess) -> int:
    """Return the card that a rank computes on; -1 if that is not known, or if it counts only some of the cards."""
    last = process.final(schema.DeviceState)
    cards = process.started.accelerators
    found = number(last.begin.current) if last is not None and not any(card.visible for card in cards) else None
    return -1 if found is None else found
