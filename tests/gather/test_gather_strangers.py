"""Who connects to rank 0 is checked: strangers are refused and counted, and however many come, no rank is kept out."""

import contextlib
import re
import socket
import threading
import time

import pytest
from gathering import SECONDS, TOKEN, brings, ended, lacking, offer, split, until, without_paths

from ddp_probe.doctor.programs import meet
from ddp_probe.moving.gather import gather_run
from ddp_probe.moving.gather.messages import (
    VERSION,
    ExitCode,
    Finished,
    GatherLine,
    Hello,
    Wanted,
)
from ddp_probe.shared import meeting
from ddp_probe.shared.meeting import MeetingPlace, place


def test_strangers_are_refused(rank0):
    """A rank of another launch, size or version, one without the token of rank 0, and one that came already are refused, with the reason."""
    refused = []
    for rank, other in ((1, {"run": "else"}), (1, {"world": 4}), (0, {"token": ""}), (2, {}), (7, {}), (1, {"gather": 99})):
        refused.append(rank0.hello(rank, **other).wait(Wanted).refused)
    assert [text.partition(" on ")[0] for text in refused[:5]] == ["rank %s" % each for each in ("1 of 3", "1 of 4", "0 of 3", "2 of 3", "7 of 3")]
    assert refused[5].startswith("this host has another version of ddp_probe")
    assert len(rank0.hub.strangers()) == 5
    line = brings(rank0)
    offer(line, "", b"fold")
    line.say(Finished())
    assert lacking(rank0) == []


def test_who_knows_the_launch_comes_first(rank0):
    """Who says all that rank 1 says, but not the token, and comes before it, is refused and counted; rank 1 comes, and its fold is kept."""
    stranger = GatherLine(socket.create_connection(rank0.address), SECONDS)
    stranger.say(Hello(VERSION, 1, 3, "job", "", "host1", leads=True))
    assert "it has not the token of the launch" in stranger.wait(Wanted).refused
    with pytest.raises(meeting.RefusedError, match="it has not the token of the launch"):
        meeting.entered(*rank0.address, "6" * 64, SECONDS)
    line = brings(rank0)
    offer(line, "", b"fold")
    line.say(Finished())
    assert lacking(rank0) == []
    assert rank0.hub.strangers() == ["2 connections did not say the token of this launch, within 0 s: 2 from 127.0.0.1"]


def test_the_token_comes_by_the_launcher():
    """Ranks of one launch have one token whatever their rank and host are; another job or port has another one."""

    def token(**variables):
        return place({"MASTER_ADDR": "a", "MASTER_PORT": "1", "RANK": "0", "WORLD_SIZE": "2", **variables}).token

    launch = {"TORCHELASTIC_RUN_ID": "job7"}
    others = ({}, {"TORCHELASTIC_RUN_ID": "job8"}, {"SLURM_JOB_ID": "7"}, {"PMIX_NAMESPACE": "7@1"}, {"MASTER_PORT": "2"})
    assert token(**launch) == token(**launch, RANK="1", LOCAL_RANK="0", MASTER_ADDR="b")
    assert len({token(**launch), *(token(**other) for other in others)}) == 6


def _slow(address, over):
    """Hold 200 connections that begin as a rank does, and say one byte after another."""
    held = [socket.create_connection(address, source_address=("127.0.0.2", 0)) for _ in range(200)]
    for letter in meeting.word("5" * 64)[:60]:
        for one in held:
            with contextlib.suppress(OSError):
                one.sendall(bytes([letter]))
        if over.wait(0.05):
            break
    for one in held:
        one.close()
    return len(held)


def _fast(address, count):
    """Connect so many times, and say nothing, too much, or what a rank of another launch says."""
    for number in range(count):
        with contextlib.suppress(OSError), socket.create_connection(address, source_address=("127.0.0.3", 0)) as one:
            one.sendall((b"", b"x" * 5000, meeting.word("6" * 64))[number % 3])


def test_a_crowd_keeps_no_rank_out(rank0, whole):
    """While 200 connections dawdle and thousands (with --all, 10 000) come and go, a rank is heard; one sentence counts them all."""
    over, fast = threading.Event(), 10_000 if whole else 2_000
    crowd = [threading.Thread(target=_slow, args=(rank0.address, over)), threading.Thread(target=_fast, args=(rank0.address, fast))]
    for thread in crowd:
        thread.start()
    line = brings(rank0)
    offer(line, "", b"fold")
    crowd[1].join()
    assert meeting.entered(*rank0.address, TOKEN, 1.0)
    over.set()
    crowd[0].join()
    line.say(Finished())
    assert lacking(rank0) == []
    end = time.monotonic() + SECONDS
    while _counted(rank0.hub) != fast + 200 and time.monotonic() < end:  # It stops counting when it is done.
        time.sleep(0.01)
    (told,) = rank0.hub.strangers()
    assert told.startswith("%d connections did not say the token of this launch, within " % (fast + 200))
    assert told.endswith(": %d from 127.0.0.3, 200 from 127.0.0.2" % fast)


def _counted(hub):
    return int((hub.strangers() or ["0 "])[0].split()[0])


def test_doctors_meet_among_strangers():
    """Strangers that come first, one as rank 1, keep no doctor out of the meeting; its check says how many there were."""
    listening = socket.create_server(("127.0.0.1", 0))
    address = listening.getsockname()
    hub = meet.Hub(listening, 2, "job", TOKEN)
    thread = threading.Thread(target=hub.hold, args=(SECONDS,), daemon=True)
    thread.start()
    said = {"world": 2, "run": "job", "token": hub.token, "host": "b", "identity": "", "address": "", "port": 1}
    stranger = meeting.Line(socket.create_connection(address))
    stranger.send({**said, "rank": 1})
    assert "token" in stranger.receive(SECONDS)["refused"]
    held = [socket.create_connection(address) for _ in range(200)]
    ranks = [meeting.Line(meeting.entered(*address, TOKEN, SECONDS)) for _ in range(2)]
    for rank, line in enumerate(ranks):
        line.send({**said, "rank": rank})
    for line in ranks:
        assert set(line.receive(SECONDS)["ranks"]) == {"0", "1"}
        line.send({"links": {}})
    told = ranks[0].receive(SECONDS)
    thread.join(SECONDS)
    assert told["strangers"] == []
    assert re.match(r"\d+ connections did not say the token of this launch", told["unknown"])
    assert int(told["unknown"].split()[0]) >= len(held) + 1 - 64


def test_a_rank_that_was_turned_away_comes_again(tmp_path, monkeypatch):
    """Rank 0 closes a connection before it has said anything, if strangers crowd it out: the rank comes again, and once rank 0 is gone it says so."""
    monkeypatch.setenv("DDP_PROBE_DIR", str(tmp_path))
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    turned = []

    def rank_0():
        for last in (False, False, True):
            connected, _ = listening.accept()
            turned.append(connected)
            if last:
                line = GatherLine(connected, SECONDS)
                assert line.receive_line(SECONDS) == meeting.word(TOKEN)
                line.send_bytes(meeting.COME_IN)
                assert line.hear_first(SECONDS).rank == 1
                line.say(Wanted())
                line.say(ExitCode(1))
            else:
                connected.close()

    thread = threading.Thread(target=rank_0, daemon=True)
    thread.start()
    at = MeetingPlace(1, 2, "127.0.0.1", port, "job", TOKEN)
    assert gather_run._brought(at, gather_run.GatherRequest(seconds=SECONDS), leads=True) == 1
    thread.join(SECONDS)
    assert len(turned) == 3
    listening.close()
    with pytest.raises(OSError, match="refused"):
        gather_run._brought(at, gather_run.GatherRequest(seconds=1.0), leads=True)


def test_a_flood_keeps_no_rank_out(launch, whole_run, whole_report, tmp_path):
    """While strangers connect without end, from the address of the ranks too, gather brings all hosts together and reports as without them."""
    hosts = launch(2)
    first = hosts.start(0, split(whole_run, tmp_path / "a", "12"), "--json", "--time-limit", 120)
    over, count = threading.Event(), [0]

    def flood():
        while not over.is_set():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", hosts._port), 1) as one:
                one.sendall(b"x" * (count[0] % 3))
                count[0] += 1

    crowd = [threading.Thread(target=flood, daemon=True) for _ in range(4)]
    for thread in crowd:
        thread.start()
    until(lambda: count[0] > 500, first)
    second = ended(hosts.start(1, split(whole_run, tmp_path / "b", "34"), "--time-limit", 120))
    done = ended(first)
    over.set()
    for thread in crowd:
        thread.join()
    assert without_paths(done.stdout) == whole_report, done.stderr
    assert second.returncode == done.returncode == 1
    assert re.search(r"\d+ connections did not say the token of this launch, within \d+ s: \d+ from ", done.stderr)
