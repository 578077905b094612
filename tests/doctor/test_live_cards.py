"""A card that hangs and a card that crashes are named, the remedy leaves them out, and without them all live checks pass."""

import re
import sys

import pytest
from accelerator.fixtures import gcu_env  # noqa: F401  # a fixture is found by its name
from live import PLUGIN, SECONDS, Clock, left_running, on_cards, run, stage, statuses

from ddp_probe.doctor.host import Host, Request

pytestmark = pytest.mark.slow
_FAULTS = {"CARD_FAULTS": "hang:1,crash:2", "TOPS_VISIBLE_DEVICES": "0,1,2,3", "UUIDS": "1"}


@pytest.fixture(scope="module")
def patched():
    """A place for the changes of this file."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.syspath_prepend(str(PLUGIN))
        yield monkeypatch


_CHILDREN = 6  # Of packages, of torch, and of four cards.


@pytest.fixture(scope="module")
def broken(gcu_env, clean_env, patched):  # noqa: F811  # the fixture above
    """The answers on four cards, of which card 1 hangs and card 2 crashes."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        Clock(
            monkeypatch, lambda started: len(started) == _CHILDREN and [stage(child) for child in started if child.poll() is None] == ["set_device"]
        )
        return run(Host(Request(seconds=SECONDS), on_cards(gcu_env, clean_env, **_FAULTS))), left_running()


@pytest.fixture(scope="module")
def followed(gcu_env, clean_env, broken):  # noqa: F811  # the fixture above
    """The answers on the same cards, with what the remedy says."""
    name, value = re.search(r"set (\w+)=(\S+) and start 2 ranks", broken[0]["card-computes"].answer.remedy).groups()
    return run(Host(Request(seconds=SECONDS), on_cards(gcu_env, clean_env, **{**_FAULTS, name: value})))


def test_both_cards_are_named(broken):
    """Card 1 did not answer, card 2 was killed, each in set_device; the other checks are skipped because of it, and no process is left."""
    results, left = broken
    kind = "xla" if "xla" in results["card-computes"].answer.saw else "gcu"
    saw = results["card-computes"].answer.saw
    assert re.match(
        r"Card %s:1 did not answer within \d+ s; it was in set_device\. Card %s:2 was killed by SIGSEGV; it was in set_device\.$" % (kind, kind), saw
    )
    assert statuses(results).pop("card-computes") == "fail"
    assert {status for slug, status in statuses(results).items() if slug != "card-computes"} == {"skipped"}
    assert left == []


def test_the_remedy_leaves_the_cards_out(broken, followed):
    """The remedy names the tool, the variable with the cards that are left, and their number; with it, every check passes on two cards."""
    assert broken[0]["card-computes"].answer.remedy == (
        "Look at it with efsmi, and restart its driver or the host. To train without it, set TOPS_VISIBLE_DEVICES=0,3 and start 2 ranks."
    )
    assert set(statuses(followed).values()) == {"ok"}
    kind = "gcu" if sys.version_info >= (3, 11) else "xla"
    assert followed["card-computes"].answer.saw == "2 cards computed the same as the CPU: %s:0, %s:1." % (kind, kind)
    assert followed["group-starts"].answer.saw == "2 ranks formed a group with eccl on gcu cards."
    assert re.match(r"\d+ MB/s: an all_reduce of 4 MB over 2 ranks took [\d.]+ ms", followed["bandwidth"].answer.saw)
    assert followed["own-card-each"].answer.details == ("rank 0: %s:0 GCU-0" % kind, "rank 1: %s:1 GCU-3" % kind)


def test_more_ranks_than_cards(gcu_env, clean_env, patched):  # noqa: F811  # the fixture above
    """If more ranks are asked for than there are cards, own-card-each fails without a launch, and the launch is skipped because of it."""
    host = Host(Request(nproc=3, seconds=SECONDS), on_cards(gcu_env, clean_env, TOPS_VISIBLE_DEVICES="4,6"))
    results = run(host)
    assert results["own-card-each"].answer[:3] == (
        "fail",
        "3 ranks are asked for, but torch counts 2 gcu cards.",
        "Start 2 ranks on this host: --nproc_per_node=2.",
    )
    assert {slug for slug, status in statuses(results).items() if status == "skipped"} == set(results) - {"own-card-each", "card-computes"}
    assert statuses(results)["card-computes"] == "ok"
