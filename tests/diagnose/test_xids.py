"""The table of Xids, and what the rule card-broken makes of each."""

import re

import pytest

from ddp_probe.judging.judge import judge
from ddp_probe.judging.xids import LINK, NOTHING, OTHER, REBOOT, RESET, RESTART, XIDS
from ddp_probe.reading.load_run import from_text

_MEMORY = (63, 92, 94)


@pytest.mark.parametrize("number", XIDS)
def test_an_xid_is_of_the_card_or_of_the_program(number: int) -> None:
    """What asks for a reset, a reboot or a look at the link is a broken card, and nothing else is."""
    name, action = XIDS[number]
    assert re.fullmatch(r"[A-Z][A-Z0-9_]+", name)
    assert action in (RESET, REBOOT, LINK, RESTART, NOTHING, OTHER)
    line = "kernel: NVRM: Xid (PCI:0000:81:00): %d, pid=4711, name=python, a fatal error" % number
    slugs = [finding.slug for finding in judge(from_text(line)).findings]
    of_card = action in (RESET, REBOOT, LINK) or number in _MEMORY
    assert slugs == (["card-broken"] if of_card else [])


def test_what_was_known_before_the_table_still_is() -> None:
    """The numbers that the rule had are of the card, its memory or its links."""
    before = {48, 63, 64, 74, 79, 92, 94, 95, 119, 120, 140, *range(144, 151)}
    of_card = {number for number, (_, action) in XIDS.items() if action in (RESET, REBOOT, LINK)}
    assert before <= of_card | set(_MEMORY)
