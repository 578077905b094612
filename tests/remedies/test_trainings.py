"""Jobs that fail without a remedy train to the end with DDP_PROBE_FIX=auto, to the same bits as a source that was corrected by hand."""

from typing import NamedTuple, Tuple

import pytest
import torch
from remedy_runs import Run


class Case(NamedTuple):
    """A job that fails, the same job with remedies, and the corrected one."""

    runs: Tuple[Run, Run, Run]
    remedies: Tuple[str, ...]  # those that have to have been applied on every rank
    old_torch_too: Tuple[str, ...] = ()


def _case(job: str, ranks: int, corrected: str, *remedies: str, cards: bool = False, old_torch_too: Tuple[str, ...] = ()) -> Case:
    # It fails over two ranks; over four it does so for the same reason, and the launch is spared.
    return Case((Run(job, 2, "", cards), Run(job, ranks, "auto", cards), Run(corrected, ranks, "", cards)), remedies, old_torch_too)


_ON_CPU = "corrected_runner"
_ON_CARDS = "corrected_runner_on_cards"
CASES = [
    _case("01_runner_sets_cuda_device", 2, _ON_CPU, "set-device", "device-ids"),
    _case("01_runner_sets_cuda_device", 4, _ON_CPU, "set-device", "device-ids"),
    _case("02_runner_wraps_cpu_model", 2, _ON_CPU, "device-ids"),
    _case("02_runner_wraps_cpu_model", 4, _ON_CPU, "device-ids"),
    _case("02_runner_does_not_know_cards", 2, _ON_CARDS, "mmengine-device", cards=True, old_torch_too=("device-ids",)),
    _case("02_runner_does_not_know_cards", 4, _ON_CARDS, "mmengine-device", cards=True, old_torch_too=("device-ids",)),
]


def _name(case: Case) -> str:
    return "%s-%d" % (case.runs[1].program, case.runs[1].ranks)


def _params(cases):
    """Four ranks cost twice as much and show the same but for their number: they run at night."""
    drawn = pytest.mark.sample(1, of="trainings")
    return [pytest.param(case, id=_name(case), marks=[drawn, *([pytest.mark.nightly] if case.runs[1].ranks > 2 else [])]) for case in cases]


EACH = pytest.mark.parametrize("case", _params(CASES))


def _saved(ended):
    """Return the parameters in the checkpoint of the last epoch."""
    whole = {} if torch.__version__.startswith("1.") else {"weights_only": False}
    return torch.load(str(ended.folder / "work_dirs" / "epoch_1.pth"), map_location="cpu", **whole)["state_dict"]


@EACH
def test_it_fails_without_a_remedy(case, launched):
    """Without DDP_PROBE_FIX the job fails, and nothing of the remedies is even loaded: no module, no patch site that may change a call."""
    failed = launched(case.runs[0])
    assert failed.status != 0, failed.output
    assert not [event for event in failed.events if event["event"].startswith("remedy.")]
    assert failed.ranks
    for told in failed.ranks:
        assert (told["remedies"], told["overridden"]) == ([], 0)
        assert told["patch_sites"] > 10


@EACH
def test_it_trains_to_the_end(case, launched, old_torch):
    """With auto it trains to the end; every rank has made the same changes, and has recorded each of them with before and after."""
    ended = launched(case.runs[1])
    assert ended.status == 0, ended.output
    assert len(ended.ranks) == case.runs[1].ranks
    for rank in range(case.runs[1].ranks):
        wanted = {*case.remedies, *(case.old_torch_too if old_torch else ())}
        assert wanted == set(ended.applied(rank)) - {"atomic-save"}, ended.output
        assert all(event["before"] and event["because"] for event in ended.of("remedy.applied", rank))
        assert ended.of("remedy.declined", rank) == ended.of("probe.fault", rank) == []
    assert ("atomic-save" in ended.applied(0)) is True
    assert not list(ended.folder.glob("work_dirs/.ddp_probe*"))


@EACH
def test_it_trains_to_the_same_bits(case, launched):
    """Final parameters are equal on all ranks, and in the checkpoint bit for bit those of the run that was corrected by hand."""
    ended, corrected = launched(case.runs[1]), launched(case.runs[2])
    assert corrected.status == 0, corrected.output
    digests = {told["parameters"] for told in (*ended.ranks, *corrected.ranks)}
    assert len(digests) == 1, digests
    assert digests != {""}
    mine, theirs = _saved(ended), _saved(corrected)
    assert list(mine) == list(theirs)
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)
    print("%s: %d ranks, %d steps, parameters %s" % (_name(case), len(ended.ranks), ended.ranks[0]["steps"], digests.pop()[:16]))


@pytest.mark.parametrize("case", _params(CASES[4:]))
def test_each_rank_trains_on_its_card(case, launched, old_torch):
    """On the simulated cards every rank's parameters are on the card of its LOCAL_RANK, as in the corrected run."""
    for run in case.runs[1:]:
        told = [rank["devices"] for rank in launched(run).ranks]
        assert told == [["%s:%d" % ("xla" if old_torch else "gcu", index)] for index in range(run.ranks)]
