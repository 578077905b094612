"""What vendors' tools said of the cards of each host, beside the ranks that ran there."""

from typing import Dict, Iterator, List, NamedTuple, Set

from ddp_probe.judging._cards import number
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.shared.schema import CardLoad


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
        return self.ranks[0].host or "the host"

    @property
    def used(self) -> bool:
        """Return whether the ranks compute on cards that this tool may list: else what it says is of other jobs."""
        if any(each.processes for each in self.last.begin.cards):
            ours = {rank.pid for rank in self.ranks}
            return any(self.processes(card.index) & ours for card in self.last.begin.cards)
        return any(call.begin.devices or call.begin.current for rank in self.ranks for call in rank.calls(schema.DeviceState))

    def on(self, card: CardLoad) -> List[int]:
        """Return the ranks that are on a card: by the tool's list of processes, else by what the rank itself calls its current card."""
        if any(each.processes for each in self.last.begin.cards):
            pids = self.processes(card.index)
            return sorted(rank.rank for rank in self.ranks if rank.pid in pids and rank.rank is not None)
        return sorted(rank.rank for rank in self.ranks if rank.rank is not None and _current(rank) == card.index)

    def processes(self, index: int) -> Set[int]:
        """Return the processes that the tool has listed on a card, at any time."""
        return {int(pid) for call in self.answers for card in call.begin.cards if card.index == index for pid in card.processes if pid.isdigit()}


def hosts(run: Run) -> Iterator[CardsOfHost]:
    """Yield each host whose launcher has asked a tool that listed cards, and that has ranks."""
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
