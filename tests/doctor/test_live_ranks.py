"""A rank that fails, a backend that is absent and a wrong interface are named, and what the remedy says makes the checks pass."""

import re
import signal
import socket
import subprocess
import sys
import time

import pytest
from accelerator.fixtures import gcu_env  # noqa: F401  # a fixture is found by its name
from live import LIVE, PLUGIN, SECONDS, Clock, left_running, on_cards, run, stage, statuses

from ddp_probe.doctor import children, live_ranks
from ddp_probe.doctor.checks import world_size_by_hand
from ddp_probe.doctor.examine import examine
from ddp_probe.doctor.host import Host, Request

pytestmark = pytest.mark.slow
_LAUNCHED = [module for module in LIVE if module.CHECK.slug != "card-computes"]
_AFTER_GROUP = {"collectives-right": "skipped", "ddp-step": "skipped", "bandwidth": "skipped", "group-ends": "skipped"}
_FAULTS = {
    "init_process_group": (
        r"Rank 1 was killed by SIGKILL in init_process_group(; rank 0 waited in \w+)?\. It runs 2 ranks with eccl on gcu cards\.",
        {"group-starts": "fail", **_AFTER_GROUP, "own-card-each": "ok"},
    ),
    "all_reduce": (
        r"Rank 1 was killed by SIGSEGV in all_reduce(; rank 0 waited in \w+)?\. It runs 2 ranks with eccl on gcu cards\.",
        {"group-starts": "ok", **_AFTER_GROUP, "collectives-right": "fail", "own-card-each": "ok"},
    ),
    "set_device": (
        r"Rank 1 did not return from set_device within \d+ s; rank 0 waited in init_process_group\. It runs 2 ranks with eccl on gcu cards\.",
        {"group-starts": "fail", **_AFTER_GROUP, "own-card-each": "skipped"},
    ),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("fault", sorted(_FAULTS))
def test_a_rank_and_its_stage_are_named(gcu_env, clean_env, monkeypatch, fault):  # noqa: F811  # the fixture above
    """A rank that is killed, crashes or hangs is named with its stage; only the check of that stage fails, and no process is left."""
    monkeypatch.syspath_prepend(str(PLUGIN))
    monkeypatch.setattr(live_ranks, "_AFTER_FAILURE", 0.5)
    Clock(monkeypatch, lambda started: [stage(child) for child in started[-2:]] == ["init_process_group", "set_device"])
    host = Host(Request(seconds=SECONDS), on_cards(gcu_env, clean_env, TOPS_VISIBLE_DEVICES="0,1", RANK_FAULT=fault + ":1"))
    results = {result.check.slug: result for result in examine(host, _LAUNCHED)}
    saw, expected = _FAULTS[fault]
    assert statuses(results) == expected
    assert re.match(saw + "$", next(result.answer.saw for result in results.values() if result.answer.status == "fail"))
    assert left_running() == []


def test_a_backend_that_is_absent(clean_env):
    """The backend of a vendor whose module is not there fails group-starts, and the remedy names a backend that is there; nothing else fails."""
    host = Host(Request(backend="eccl", device="cpu", seconds=SECONDS, command=("torchrun", "--nproc_per_node=2", "train.py")), clean_env())
    assert world_size_by_hand.check(host).status == "ok"  # A launch command is looked at beside.
    results = {result.check.slug: result for result in examine(host, _LAUNCHED)}
    assert statuses(results) == {"group-starts": "fail", **_AFTER_GROUP, "own-card-each": "skipped"}
    answer = results["group-starts"].answer
    assert re.search(r"^Ranks 0-1 failed in init_process_group: \w+: .*eccl", answer.saw)
    assert re.search(r"has these backends here: gloo.*\. Use one of them, as in --backend gloo, or install what brings eccl\.$", answer.remedy)


def test_an_interface_that_is_absent(clean_env, monkeypatch):
    """A wrong GLOO_SOCKET_IFNAME fails group-starts; with what the remedy says every check passes on the CPU, and none says that a card is ready.

    In the second launch the first port that is tried is taken.
    """
    broken = Host(Request(device="cpu", seconds=SECONDS), clean_env(GLOO_SOCKET_IFNAME="nothere7"))
    results = {result.check.slug: result for result in examine(broken, _LAUNCHED)}
    assert statuses(results) == {"group-starts": "fail", **_AFTER_GROUP, "own-card-each": "skipped"}
    remedy = results["group-starts"].answer.remedy
    assert re.match(r"There is no interface nothere7; this host has [\w, ]*\blo\b", remedy)
    name, value = re.search(r"set (\w+)=(\S+)\.$", remedy).groups()
    with socket.socket() as taken:
        taken.bind(("", 0))
        free, ports = live_ranks._free_port, [taken.getsockname()[1]]
        monkeypatch.setattr(live_ranks, "_free_port", lambda: ports.pop() if ports else free())
        monkeypatch.setattr(live_ranks, "_AFTER_FAILURE", 0.1)
        followed = run(Host(Request(device="cpu", seconds=SECONDS), clean_env(**{name: value})))
        assert ports == []
    assert statuses(followed) == {module.CHECK.slug: "skipped" if module.CHECK.slug == "own-card-each" else "ok" for module in LIVE}
    assert followed["card-computes"].answer.saw.startswith("The CPU computes correctly. No card was tried: ")
    assert all("cards" not in result.answer.saw for result in followed.values())


@pytest.fixture
def hangs(clean_env, tmp_path):
    """An environment in which `import torch` notes that it has begun, and hangs; and the note."""
    (tmp_path / "torch.py").write_text("import time\nopen(%r, 'w').close()\ntime.sleep(1000)\n" % str(tmp_path / "begun"), encoding="utf-8")
    path = ":".join(filter(None, [str(tmp_path), clean_env().get("PYTHONPATH", "")]))
    return clean_env(PYTHONPATH=path), tmp_path / "begun"


@pytest.mark.parametrize("when", ["at once", "in a hang"])
def test_children_end_with_doctor(hangs, when):
    """If doctor is killed, so are its children, whether they have only begun or hang in an import."""
    env, begun = hangs
    code = "from ddp_probe.doctor.host import *; Host(Request(seconds=1000)).ask('torch_facts')"
    doctor = subprocess.Popen([sys.executable, "-c", code], env=env)
    while not (begun.exists() if when == "in a hang" else left_running(doctor.pid)):
        assert doctor.poll() is None
        time.sleep(0.02)
    assert left_running(doctor.pid)
    doctor.send_signal(signal.SIGKILL)
    doctor.wait()
    while left_running(doctor.pid):  # the time limit of the test says that they do not end
        time.sleep(0.05)


def test_the_time_limit_is_kept(hangs):
    """A child that never answers is ended at its limit, and says so."""
    (told,) = children.together([("torch_facts", (), hangs[0])], 0.3)
    assert (told.code, told.answers, told.how()) == (None, [], "did not answer within 0 s")
    assert left_running() == []
