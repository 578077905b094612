"""Jobs of the collection that fail without a remedy, as tests/jobs shows, and end well with one."""

from typing import NamedTuple, Tuple

import pytest
from remedy_runs import Run


class Case(NamedTuple):
    """A job with remedies, and those that have to have been applied on every rank; any is enough if it depends on the moment."""

    runs: Tuple[Run]
    remedies: Tuple[str, ...]
    stacks: Tuple[bool, ...] = (False, True)  # old_torch


CASES = [
    Case((Run("03_model_never_moved", 2, "auto", cards=True),), ("move-model",)),
    Case((Run("10_unknown_backend", 2, "auto"),), ("backend",)),
    Case((Run("10_rank_missing", 0, "rendezvous"),), ("rendezvous",)),
    Case((Run("10_runner_under_plain_python", 0, "auto"),), ("rendezvous", "set-device", "device-ids")),
    Case((Run("11_weights_only_resume", 0, "weights-only"),), ("weights-only",), (False,)),
    Case((Run("11_cuda_checkpoint_without_map_location", 0, "map-location"),), ("map-location",)),
]


def _name(case: Case) -> str:
    return case.runs[0].program


@pytest.mark.sample(2)
@pytest.mark.parametrize("case", CASES, ids=_name)
def test_it_ends_well(case, launched, old_torch):
    """The job ends with status zero once the remedy is asked for, and every rank has recorded the remedy."""
    if old_torch not in case.stacks:
        pytest.skip("torch 1.12 does not fail here.")
    (run,) = case.runs
    ended = launched(run)
    assert ended.status == 0, ended.output
    for rank in range(run.ranks or 1):
        applied = [event["remedy"] for event in ended.events if event["event"] == "remedy.applied" and (event.get("rank") or 0) == rank]
        assert set(case.remedies) <= set(applied), ended.output
        assert set(applied) <= {*case.remedies, *(["atomic-save", "device-ids"] if run.fix == "auto" else [])}
    assert not [event for event in ended.events if event["event"] == "probe.fault"]


RACES = [Case((Run("06_load_while_written", 2, fix),), ()) for fix in ("atomic-save", "settled-load")]


@pytest.mark.parametrize("case", RACES, ids=lambda case: case.runs[0].fix)
def test_the_load_meets_a_whole_file(case, launched):
    """If one rank loads what another is saving, either remedy alone is enough: the file appears whole, or the load waits for it."""
    (run,) = case.runs
    ended = launched(run)
    assert ended.status == 0, ended.output
    rank = {"atomic-save": 0, "settled-load": 1}[run.fix]
    assert ended.applied(rank) == [run.fix], ended.output
    assert ended.applied(1 - rank) == []
    assert ended.output.count("loaded best_stg1.pth") == 1
