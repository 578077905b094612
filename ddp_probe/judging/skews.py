"""Compares one value of all ranks and finds the odd ones: by majority or, if there is none, by the launcher's value."""

from collections import Counter
from typing import Dict, List, Mapping, NamedTuple, Optional

from ddp_probe.reading.model import Run
from ddp_probe.shared import schema
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import listed, named, quoted

NOT_SET = say("not set")


class Skew(NamedTuple):
    """A value that differs between ranks."""

    name: str
    usual: Optional[str]  # None if neither the majority nor the launcher shows which is usual.
    odd: Dict[int, str]  # Ranks with another value; all ranks if no value is the usual one.
    all: Dict[int, str]

    @property
    def ranks(self) -> List[int]:
        """Return the guilty ranks; none if it is not known which side is right."""
        return sorted(self.odd) if self.usual is not None else []

    def told(self, nothing: str = NOT_SET) -> Text:
        """Return who has which value, as part of a sentence."""
        groups: Dict[str, List[int]] = {}
        for rank, value in sorted(self.all.items()):
            groups.setdefault(value, []).append(rank)
        order = sorted(groups, key=lambda value: (value == self.usual, groups[value]))
        sides: List[Text] = []
        for value in order[:4]:
            shown = quoted(value) if value else nothing
            sides.append(say("{value} on {who}", value=shown, who=named(groups[value], 4)))
        return listed(sides)


def compare(name: str, values: Mapping[int, str], launchers: List[str]) -> Optional[Skew]:
    """Return how a value differs between ranks; if three or more ranks all differ, the value is meant to differ."""
    tally = Counter(values.values())
    if len(tally) < 2 or (len(tally) == len(values) > 2):
        return None
    (first, most), (_, second) = tally.most_common(2)
    usual: Optional[str] = first if most > second else None
    if usual is None:
        known = [value for value in launchers if value in tally]
        usual = known[0] if len(set(known)) == 1 else None
    odd = {rank: value for rank, value in values.items() if value != usual}
    return Skew(name, usual, odd, dict(values))


def started(run: Run) -> List[schema.LauncherStart]:
    """Return what the launchers said of themselves."""
    return [launcher.start for launcher in run.launchers if isinstance(launcher.start, schema.LauncherStart)]
