"""A healthy job under DDP_PROBE_FIX=auto is left alone: no remedy but atomic-save is applied, and the result is bit for bit the same."""

from typing import NamedTuple, Tuple

import pytest
from remedy_runs import Run


class Case(NamedTuple):
    """A healthy job without and with remedies."""

    runs: Tuple[Run, Run]


def _case(job: str, ranks: int, cards: bool = False) -> Case:
    return Case((Run(job, ranks, "", cards), Run(job, ranks, "auto", cards)))


CASES = [
    _case("00_healthy_ddp", 2),
    _case("00_healthy_runner", 2),
    _case("00_healthy_cards", 2, cards=True),
    _case("00_healthy_runner_on_cards", 2, cards=True),
]


def _name(case: Case) -> str:
    return case.runs[0].program


@pytest.mark.sample(1, of="healthy jobs")
@pytest.mark.parametrize("case", CASES, ids=_name)
def test_nothing_but_atomic_save(case, launched, old_torch):
    """Rank 0 has saved atomically and said so once, no other rank has changed a call, and no other remedy has had anything to say.

    Two exceptions are known on cards: mmengine asks for the device while it is imported, and gets the card's; torch 1.12 has no table of what a
    backend carries, so mmengine's collectives over eccl get tensors of the cards.
    """
    ended = launched(case.runs[1])
    assert ended.status == 0, ended.output
    for rank in range(case.runs[1].ranks):
        known = ["mmengine-device"] if case.runs[1].program == "00_healthy_runner_on_cards" else []
        assert [name for name in ended.applied(rank) if name not in known] == (["atomic-save"] if rank == 0 else []), ended.output
        changed = {(event["target"], event.get("precaution", False)) for event in ended.of("remedy.applied", rank) if event["remedy"] in known}
        collectives = {("mmengine.dist.utils.get_comm_device", False)} if old_torch else set()
        assert changed <= {("mmengine.device.utils.get_device", True)} | collectives
        assert ended.of("remedy.declined", rank) == ended.of("probe.fault", rank) == []
    said = [line for line in ended.output.splitlines() if "DDP_PROBE_FIX" in line]
    assert len([line for line in said if not any("DDP_PROBE_FIX %s: " % name in line for name in known)]) == 1, ended.output
    assert any("DDP_PROBE_FIX atomic-save: " in line for line in said)


@pytest.mark.sample(1, of="healthy jobs")
@pytest.mark.parametrize("case", CASES, ids=_name)
def test_same_result_bit_for_bit(case, launched):
    """Every rank's final parameters, devices and number of steps are those of the run without remedies."""
    plain, overridden = launched(case.runs[0]), launched(case.runs[1])
    assert plain.status == overridden.status == 0, plain.output + overridden.output
    for without, having in zip(plain.ranks, overridden.ranks):
        assert without["parameters"]
        assert {name: having[name] for name in ("parameters", "devices", "steps")} == {
            name: without[name] for name in ("parameters", "devices", "steps")
        }
        assert (without["remedies"], without["overridden"]) == ([], 0)
        assert having["remedies"]
        assert having["overridden"] > 3
    assert len(overridden.ranks) == case.runs[1].ranks
