"""The table of hosts, and the cards that ranks share, from what children have said."""

from ddp_probe.doctor import live_ranks
from ddp_probe.doctor.check import verdict
from ddp_probe.doctor.checks import own_card_each
from ddp_probe.doctor.children import ChildAnswer
from ddp_probe.doctor.examine import examine
from ddp_probe.doctor.host import Host, Request
from ddp_probe.doctor.host_meeting import made_of
from ddp_probe.doctor.live_ranks import LivePlan
from ddp_probe.shared.accelerators import by_device_type
from ddp_probe.showing.doctor_page import of_hosts
from ddp_probe.showing.hosts_table import host_lines


def _said(name, identity, failed=False):
    facts = {"cards": "8 gcu", "torch": "1.12.1", "driver": "2.1.5", "Python": "3.8.18", "mmengine": "0.10.7", "environment": {}}
    result = {"id": "DOC301", "slug": "shm-size", "status": "fail" if failed else "ok", "saw": "It is small.", "remedy": "Make it larger."}
    return {"host": name, "identity": identity, "address": "10.0.0.9", "interface": "eth0", "gloo": "", "facts": {**facts, "results": [result]}}


def _met():
    came = {"0": _said("one", "x", True), "1": {**_said("one", "x"), "facts": {}}, "2": _said("two", "y", True), "4": _said("two", "z")}
    everything = {"ranks": came, "found": {}, "strangers": [], "unknown": ""}
    return made_of(ChildAnswer([{"meeting": everything}], 0, "", 1.0), 0, 5, "10.0.0.9:29500")


def test_one_row_per_host():
    """Ranks of a host share a row, two hosts of one name are told apart, an absent rank has a row, and a failure on two hosts is printed once."""
    page = [line.text for line in host_lines(_met(), 120)]
    assert page == [
        "3 hosts, 4 of 5 ranks at 10.0.0.9:29500",
        "  host   ranks  address        cards  torch   driver  Python  mmengine  checks",
        "  one    0-1    10.0.0.9 eth0  8 gcu  1.12.1  2.1.5   3.8.18  0.10.7    1 failed",
        "  two/2  2      10.0.0.9 eth0  8 gcu  1.12.1  2.1.5   3.8.18  0.10.7    1 failed",
        "  two/4  4      10.0.0.9 eth0  8 gcu  1.12.1  2.1.5   3.8.18  0.10.7    1 ok",
        "  ?      3      -              -      -       -       -       -         absent",
        "",
        "shm-size fails on one, two/2",
        "  It is small.",
        "  Make it larger.",
    ]


def test_the_verdict_over_all_hosts_comes_first():
    """What fails on one host is counted in the page's first line, once however many hosts it fails on, and no line says that none fails."""
    page = [line.text for line in of_hosts(_met(), [], 120)]
    assert page[0] == "1 check fails."
    assert not [line for line in page if "No check fails" in line]


def test_a_narrow_page_leaves_columns_out():
    """On a narrow page the least wanted columns are left out, and no line of the table is wider than the page."""
    page = [line.text for line in host_lines(_met(), 60)]
    assert page[1] == "  host   ranks  address        cards  torch   checks"
    assert max(map(len, page)) <= 60


def test_two_numbers_of_one_card():
    """Two ranks whose numbers lead to a card with one UUID fail own-card-each, with the variable to look at."""
    host = Host(Request(), {})
    known = by_device_type("gcu")
    host.once("plan", lambda: LivePlan("gcu,xla", "gcu", "torch_gcu", 2, 2, "eccl", known))
    said = [{"stage": "set_device", "phase": "end", "card": "gcu:%d" % rank, "identity": "GCU-7"} for rank in range(2)]
    host.once("launch", lambda: live_ranks.Launch(host.once("plan", dict), [ChildAnswer([each], 0, "", 1.0) for each in said]))
    (result,) = examine(host, [own_card_each])
    assert verdict([result]) == "found"
    assert result.answer.saw == "Ranks 0-1 share one card, GCU-7."
    assert "TOPS_VISIBLE_DEVICES or" in result.answer.remedy
