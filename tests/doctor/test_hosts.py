"""Hosts as network namespaces: one table of all, a cut link and a host that does not come are named, and so is what differs."""

import json
import re
import sys
from pathlib import Path

import pytest
from live import left_running
from namespaces import MASTER, ended, network

pytestmark = pytest.mark.slow
_PROGRAM = Path(__file__).resolve().parent / "programs" / "one_host.py"
_FACTS = {"torch": "2.13.0", "backends": ["gloo"], "cards": {}}


@pytest.fixture(scope="module")
def hosts():
    """Three hosts, a, b and c; b and c do not reach each other."""
    made = network("abc")
    try:
        made.cut("b", "c")
        yield made
    finally:
        made.remove()


@pytest.fixture
def start(hosts, clean_env, tmp_path):
    """Start one rank by hand on a host; its answers are in rank.N."""

    def begin(name, rank, world, port, wanted, **variables):
        named = {"RANK": str(rank), "WORLD_SIZE": str(world), "MASTER_ADDR": MASTER, "MASTER_PORT": str(port), "LOCAL_RANK": "0"}
        command = [sys.executable, _PROGRAM, tmp_path / "rank", json.dumps({"facts": _FACTS, **wanted})]
        return hosts.start(name, command, clean_env(**named, **variables))

    return begin


@pytest.fixture
def answers(tmp_path):
    """What a rank said."""
    return lambda rank: json.loads((tmp_path / ("rank.%d" % rank)).read_text(encoding="utf-8"))


def test_torchrun_over_two_hosts(hosts, clean_env, tmp_path, answers):
    """Under torchrun on two hosts the ranks meet, nothing is wrong, and both ranks have the one table of both hosts."""
    launched, wanted = [], json.dumps({"facts": _FACTS, "seconds": 200})
    for number, name in enumerate("ab"):
        agent = ["-m", "torch.distributed.run", "--nnodes=2", "--node_rank=%d" % number, "--nproc_per_node=1"]
        rank = [*agent, "--master_addr=" + MASTER, "--master_port=29511", _PROGRAM, tmp_path / "rank", wanted]
        launched.append(hosts.start(name, [sys.executable, *rank], clean_env(GLOO_SOCKET_IFNAME="eth0")))
    ended(launched)
    first, second = answers(0), answers(1)
    assert {slug: each["status"] for slug, each in first["checks"].items()} == {"hosts-meet": "ok", "links": "ok", "skew": "ok", "gloo-address": "ok"}
    assert first["checks"]["hosts-meet"]["saw"] == "2 ranks on 2 hosts met at 10.77.0.1:29511: a (rank 0), b (rank 1)."
    assert first["table"] == second["table"]
    assert (first["verdict"], second["verdict"]) == ("clear", "clear")
    title, head, one, two = first["table"]
    assert title == "2 hosts, 2 of 2 ranks at 10.77.0.1:29511"
    assert head.split()[:4] == ["host", "ranks", "address", "cards"]
    assert [line.split()[:4] for line in (one, two)] == [["a", "0", "10.77.0.1", "eth0"], ["b", "1", "10.77.0.2", "eth0"]]


def test_a_cut_link_and_what_differs(start, answers, tmp_path):
    """On three hosts, the pair that is cut is named with its addresses; so are another torch, another variable, a clock and a failed check."""
    (tmp_path / "sitecustomize.py").write_text("import time\n_real = time.time\ntime.time = lambda: _real() - 100\n", encoding="utf-8")
    variables = {"NCCL_DEBUG": "INFO", "PYTHONPATH": None}
    ended(
        [
            start("a", 0, 3, 29512, {"seconds": 200}, **variables),
            start("b", 1, 3, 29512, {"seconds": 200, "check": "fail"}, NCCL_DEBUG="INFO"),
            start("c", 2, 3, 29512, {"seconds": 200, "facts": {**_FACTS, "torch": "1.12.1"}}, PYTHONPATH=str(tmp_path)),
        ]
    )
    first = answers(0)
    checks = first["checks"]
    assert {slug: each["status"] for slug, each in checks.items()} == {"hosts-meet": "ok", "links": "fail", "skew": "fail", "gloo-address": "fail"}
    assert re.match(
        r"b and c cannot reach each other: b \(10\.77\.0\.2, eth0\) to 10\.77\.0\.3:\d+: No route to host;"
        r" c \(10\.77\.0\.3, eth0\) to 10\.77\.0\.2:\d+: No route to host\.$",
        checks["links"]["saw"],
    )
    assert checks["skew"]["saw"].startswith(
        "torch differs: 1.12.1 on c, and 2.13.0 on the other 2. $NCCL_DEBUG differs: unset on c, and INFO on the other 2."
    )
    assert re.search(r"The clock of c is \d+\.\d s behind that of a\.$", checks["skew"]["saw"])
    assert checks["skew"]["remedy"].startswith("On c, make torch what the others have: 2.13.0. On c, set NCCL_DEBUG=INFO.")
    assert checks["gloo-address"]["remedy"] == "Set GLOO_SOCKET_IFNAME=eth0 on a, b, c."  # with it, the launch of torchrun above is clear
    assert [answers(rank)["verdict"] for rank in range(3)] == ["found"] * 3
    assert first["table"] == answers(2)["table"]
    assert first["table"][-3:] == ["planted fails on b", "  It is planted.", "  Repair it."]


def test_a_host_that_does_not_come(start, answers):
    """A rank that does not come is named by rank 0 after the time limit, and without rank 0 the other ranks say that they did not meet it."""
    doctors = [start("a", 0, 2, 29513, {"seconds": 1}), start("b", 1, 2, 29514, {"seconds": 1})]
    ended(doctors)
    alone, lost = answers(0), answers(1)
    assert alone["checks"]["hosts-meet"]["saw"] == "Rank 1 of 2 did not reach 10.77.0.1:29513 within 1 s. There were a (rank 0)."
    assert (alone["checks"]["links"]["status"], alone["verdict"]) == ("skipped", "found")
    assert alone["table"][-1].split() == ["?", "1", *"-" * (len(alone["table"][-1].split()) - 3), "absent"]
    saw = lost["checks"]["hosts-meet"]["saw"]
    assert re.match(r"Rank 1 did not meet rank 0 at 10\.77\.0\.1:29514 \(connect from 10\.77\.0\.2, eth0: .*Connection refused\)\.$", saw)
    assert lost["verdict"] == "found"
    assert [left_running(each.pid) for each in doctors] == [[], []]


def test_a_rank_that_comes_twice(start, answers):
    """If two hosts have the same RANK, the second one is named and told to take another."""
    first = start("a", 0, 2, 29515, {"seconds": 200})
    ended([start("b", 0, 2, 29515, {"seconds": 200})])
    assert "rank 0 of 2 on b does not belong to this meeting" in answers(0)["checks"]["hosts-meet"]["saw"]
    ended([start("c", 1, 2, 29515, {"seconds": 200}), first])
    answer = answers(0)["checks"]["hosts-meet"]
    assert answer["saw"] == "Rank 0 on b arrived as well, but a has that rank already. There were a (rank 0), c (rank 1)."
    assert answer["remedy"].startswith("Give each host its own RANK (torchrun: --node_rank)")


def test_a_port_that_is_taken(hosts, start, answers):
    """If something listens on MASTER_PORT already, rank 0 says so, and how to find it."""
    code = "import socket; held = socket.create_server(('', 29516)); print('listens', flush=True); held.accept()"
    taken = hosts.start("a", [sys.executable, "-c", code], {})
    assert taken.stdout.readline() == "listens\n"
    ended([start("a", 0, 2, 29516, {"seconds": 200})])
    taken.kill()
    answer = answers(0)["checks"]["hosts-meet"]
    assert re.match(r"Rank 0 cannot listen on port 29516 of this host \(listen: OSError: .*Address already in use", answer["saw"])
    assert "ss -ltnp 'sport = :29516'" in answer["remedy"]
