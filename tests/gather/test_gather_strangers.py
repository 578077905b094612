"""What comes over the network is bounded and checked: names, sizes, digests, order, and who sends it."""

import contextlib
import hashlib
import json
import re
import socket
import threading
import time

import pytest
from gathering import ended, split, until, without_paths

from ddp_probe.judging.doctor.programs import meet
from ddp_probe.moving.gather import choice, gather_run
from ddp_probe.moving.gather.hub import GatherHub
from ddp_probe.moving.gather.keep import Keep
from ddp_probe.moving.gather.messages import (
    PIECE,
    VERSION,
    Begin,
    ExitCode,
    Finished,
    GatherLine,
    Have,
    Hello,
    Holds,
    Leave,
    Nothing,
    Offer,
    RunOnHost,
    Sent,
    Wanted,
)
from ddp_probe.reading import fold
from ddp_probe.shared.meeting import wire
from ddp_probe.shared.meeting.place import MeetingPlace, place

_SECONDS = 200.0
_TOKEN = "5" * 64
_RUN = RunOnHost("run", [0], [], 1, 0.0)
_LOG = "rank00001.b.1.jsonl"


class _Rank0:
    """A hub of three ranks in this process; tests are the hosts."""

    def __init__(self, folder):
        listening = socket.create_server(("127.0.0.1", 0))
        self.hub = GatherHub(listening, MeetingPlace(0, 3, "127.0.0.1", listening.getsockname()[1], "job", _TOKEN), _SECONDS, logs=True, most=1000)
        self._address = self.address = listening.getsockname()
        self.hub.open()
        self._folder = folder

    def line(self):
        """Connect to it."""
        return GatherLine(wire.entered(*self._address, _TOKEN, _SECONDS), _SECONDS)

    def hello(self, rank, **other):
        """Connect as a rank; return the connection."""
        line = self.line()
        given = {"gather": VERSION, "world": 3, "run": "job", "token": self.hub.token, "host": "host%d" % rank, "leads": True, **other}
        line.say(Hello(rank=rank, **given))
        return line

    def take(self):
        """Take what the hosts bring, until all three have come to their end; return the folder."""
        keep = Keep(str(self._folder), "run")
        self.thread = threading.Thread(target=self.hub.take, args=(_RUN, keep, lambda *_: None), daemon=True)
        self.thread.start()
        return keep


@pytest.fixture
def rank0(tmp_path):
    """Rank 0, whose own host and rank 2 have nothing to bring."""
    made = _Rank0(tmp_path / "kept")
    made.take()
    for rank in (0, 2):
        line = made.hello(rank)
        line.wait(Wanted)
        line.say(Nothing("There is none"))
    return made


def _brings(rank0, logs=(_LOG,)):
    line = rank0.hello(1)
    line.wait(Wanted)
    line.say(Holds(list(logs)))
    line.wait(Leave)
    return line


def _offer(line, name, data, size=None, sha256=None):
    line.say(Offer(name, len(data) if size is None else size))
    have = line.wait(Have)
    if not have.not_wanted:
        line.say(Begin(0))
        line.send_piece(data)
        line.send_piece(b"")
        line.say(Sent(sha256 or hashlib.sha256(data).hexdigest()))
    return have


def _lacking(rank0):
    rank0.thread.join(_SECONDS)
    return [sentence for sentence in rank0.hub.lacking() if "(rank 1)" in sentence]


@pytest.mark.parametrize(
    "name",
    [
        "",
        "../rank0.jsonl",
        "/rank0.jsonl",
        "rank0/../../x.jsonl",
        "models/../rank0.jsonl",
        "models//x.json",
        "models/a/b.json",
        ".rank0.jsonl",
        "rank0.jsonl\n",
        "rank\x000.jsonl",
        "rank0.jsonl.part",
        "rank" + "0" * 300 + ".jsonl",
        "launcher.b\\..jsonl",
        "gathered.json",
        "b.fold",
        "train.py",
        "logs/rank0.jsonl",
    ],
)
def test_names_that_no_run_has(name):
    """A name with a path, a control character or an unknown kind never becomes a file."""
    assert not choice.accepted(name)


@pytest.mark.parametrize(
    "name", [_LOG, "launcher.node-1.jsonl", "rank00001.b.1.ledger", "rank00001.b.1.stacks", "models/596174d15c5024df.json", "rank_3.json"]
)
def test_names_that_a_run_has(name):
    """Logs, ledgers, stacks, lists of parameters and dumps of the Flight Recorder are kept under their names."""
    assert choice.accepted(name)


def test_hosts_become_names():
    """A host's name cannot lead out of the folder, and is never empty or hidden."""
    assert [choice.name_of_host(host) for host in ("gpu-1.cluster", "../../etc", "", ".x", "a/b c\n", "é")] == [
        "gpu-1.cluster",
        "etc",
        "host",
        "x",
        "a.b.c",
        "host",
    ]


def test_a_fold_comes(rank0, tmp_path):
    """A host's fold and a file of its run are kept, and its rank is told the exit code."""
    line = _brings(rank0)
    _offer(line, "", b"fold")
    _offer(line, _LOG, b"log")
    assert _offer(line, "rank00002.b.2.jsonl", b"", size=998).not_wanted == "--max-bytes"
    line.say(Finished())
    assert _lacking(rank0) == []
    rank0.hub.tell(3)
    assert line.wait(ExitCode).code == 3
    assert (tmp_path / "kept" / "host1.fold").read_bytes() == b"fold"
    assert (tmp_path / "kept" / "logs" / "host1" / _LOG).read_bytes() == b"log"
    assert [sentence for files in rank0.hub.hosts() for sentence in files.left_out()] == [
        "1 files of host1 (rank 1), 998 bytes, are left out: --max-bytes"
    ]


@pytest.mark.parametrize(
    ("misbehave", "said"),
    [
        (
            lambda line: _offer(line, "", b"fold", sha256="0" * 64) and line.say(Finished()),
            "is not kept: its sha256 differs from the one on its host",
        ),
        (lambda line: _offer(line, "", b"", size=1 << 40) and line.say(Finished()), "is not kept: it has 1099511.6 MB"),
        (lambda line: _offer(line, "", b"fold and more", size=4), "was cut off (it sends more than it has announced)"),
        (lambda line: _offer(line, "", b"x" * (PIECE + 1)), "was cut off (it sends more than it has announced)"),
        (lambda line: line.say(Offer("../../x", 1)), "was cut off (it offers a file of a name that no run has)"),
        (lambda line: line.send_bytes(b"[" * 100000 + b"\n"), "was cut off (it sent what is not a valid message"),
        (lambda line: line.send_bytes(b'{"type":"offer","name":"","size":-1}\n'), "was cut off (it sent what is not a valid message"),
        (lambda line: line.say(Holds([_LOG])), "was cut off (it sends the names of its files twice)"),
        (lambda line: line.say(Finished()), "has ended without a fold"),
        (lambda line: line.close(), "was cut off: it was about to fold"),
    ],
    ids=["digest", "too-large", "more", "piece", "name", "nested", "negative", "twice", "nothing", "closed"],
)
def test_a_host_that_misbehaves(rank0, tmp_path, misbehave, said):
    """Whatever a host sends, rank 0 goes on, says what was wrong with it, and has no file of it."""
    line = _brings(rank0)
    misbehave(line)
    (sentence,) = _lacking(rank0)
    assert said in sentence
    assert not list((tmp_path / "kept").glob("*.fold"))
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_a_fold_goes_on_where_it_was_cut(tmp_path):
    """Rank 0 says what it has of a file with its digest; it takes the rest, and nothing else from that byte on."""
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "gathered.json").write_text(json.dumps({"gathered": 1, "run": "run"}))
    (tmp_path / "kept" / "host1.fold.part").write_bytes(b"fo")
    made = _Rank0(tmp_path / "kept")
    made.take()
    for rank in (0, 2):
        line = made.hello(rank, leads=False)
    line = _brings(made)
    line.say(Offer("", 4))
    assert line.wait(Have) == Have(2, hashlib.sha256(b"fo").hexdigest())
    line.say(Begin(2))
    line.send_piece(b"ld")
    line.send_piece(b"")
    line.say(Sent(hashlib.sha256(b"fold").hexdigest()))
    line.say(Finished())
    assert _lacking(made) == []
    assert {path.name for path in (tmp_path / "kept").iterdir()} == {"host1.fold", "gathered.json"}


def test_strangers_are_refused(rank0):
    """A rank of another launch, size or version, one without the token of rank 0, and one that came already are refused, with the reason."""
    refused = []
    for rank, other in ((1, {"run": "else"}), (1, {"world": 4}), (0, {"token": ""}), (2, {}), (7, {}), (1, {"gather": 99})):
        refused.append(rank0.hello(rank, **other).wait(Wanted).refused)
    assert [text.partition(" on ")[0] for text in refused[:5]] == ["rank %s" % each for each in ("1 of 3", "1 of 4", "0 of 3", "2 of 3", "7 of 3")]
    assert refused[5].startswith("this host has another version of ddp_probe")
    assert len(rank0.hub.strangers()) == 5
    line = _brings(rank0)
    _offer(line, "", b"fold")
    line.say(Finished())
    assert _lacking(rank0) == []


def test_who_knows_the_launch_comes_first(rank0):
    """Who says all that rank 1 says, but not the token, and comes before it, is refused and counted; rank 1 comes, and its fold is kept."""
    stranger = GatherLine(socket.create_connection(rank0.address), _SECONDS)
    stranger.say(Hello(VERSION, 1, 3, "job", "", "host1", leads=True))
    assert "it has not the token of the launch" in stranger.wait(Wanted).refused
    with pytest.raises(wire.RefusedError, match="it has not the token of the launch"):
        wire.entered(*rank0.address, "6" * 64, _SECONDS)
    line = _brings(rank0)
    _offer(line, "", b"fold")
    line.say(Finished())
    assert _lacking(rank0) == []
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
    for letter in wire.word("5" * 64)[:60]:
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
            one.sendall((b"", b"x" * 5000, wire.word("6" * 64))[number % 3])


def test_a_crowd_keeps_no_rank_out(rank0, whole):
    """While 200 connections dawdle and thousands (with --all, 10 000) come and go, a rank is heard; one sentence counts them all."""
    over, fast = threading.Event(), 10_000 if whole else 2_000
    crowd = [threading.Thread(target=_slow, args=(rank0.address, over)), threading.Thread(target=_fast, args=(rank0.address, fast))]
    for thread in crowd:
        thread.start()
    line = _brings(rank0)
    _offer(line, "", b"fold")
    crowd[1].join()
    assert wire.entered(*rank0.address, _TOKEN, 1.0)
    over.set()
    crowd[0].join()
    line.say(Finished())
    assert _lacking(rank0) == []
    end = time.monotonic() + _SECONDS
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
    hub = meet.Hub(listening, 2, "job", _TOKEN)
    thread = threading.Thread(target=hub.hold, args=(_SECONDS,), daemon=True)
    thread.start()
    said = {"world": 2, "run": "job", "token": hub.token, "host": "b", "identity": "", "address": "", "port": 1}
    stranger = wire.Line(socket.create_connection(address))
    stranger.send({**said, "rank": 1})
    assert "token" in stranger.receive(_SECONDS)["refused"]
    held = [socket.create_connection(address) for _ in range(200)]
    ranks = [wire.Line(wire.entered(*address, _TOKEN, _SECONDS)) for _ in range(2)]
    for rank, line in enumerate(ranks):
        line.send({**said, "rank": rank})
    for line in ranks:
        assert set(line.receive(_SECONDS)["ranks"]) == {"0", "1"}
        line.send({"links": {}})
    told = ranks[0].receive(_SECONDS)
    thread.join(_SECONDS)
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
                line = GatherLine(connected, _SECONDS)
                assert line.receive_line(_SECONDS) == wire.word(_TOKEN)
                line.send_bytes(wire.COME_IN)
                assert line.hear_first(_SECONDS).rank == 1
                line.say(Wanted())
                line.say(ExitCode(1))
            else:
                connected.close()

    thread = threading.Thread(target=rank_0, daemon=True)
    thread.start()
    at = MeetingPlace(1, 2, "127.0.0.1", port, "job", _TOKEN)
    assert gather_run._brought(at, gather_run.GatherRequest(seconds=_SECONDS), leads=True) == 1
    thread.join(_SECONDS)
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


def test_one_bad_fold_is_one_line(whole_run, whole_report, tmp_path, run_python):
    """Ten bytes of garbage as one host's fold are said in one line, and the folds of the others are read; a folder of nothing else is refused."""
    for node in "1234":
        part = split(whole_run, tmp_path / node, node) / whole_run.name
        with open(tmp_path / ("node%s.fold" % node), "wb") as file:
            fold.write([str(part)], file)
    folds = sorted(tmp_path.glob("*.fold"))
    folds[0].write_bytes(b"0123456789")
    done = run_python(["-m", "ddp_probe", "report", "--json", tmp_path])
    found = json.loads(done.stdout)
    assert found["inventory"]["unreadable"] == {str(folds[0]): "It does not begin as a fold does."}
    assert [finding["ranks"] for finding in found["findings"]] == [finding["ranks"] for finding in whole_report["findings"]]
    shown = run_python(["-m", "ddp_probe", "report", tmp_path]).stdout
    assert " ".join(shown.split()).count("It does not begin as a fold does") == 1
    for each in folds:
        each.write_bytes(b"0123456789")
    assert "is not a usable fold" in run_python(["-m", "ddp_probe", "report", tmp_path]).stderr


def test_a_folder_belongs_to_one_run_and_one_gather(tmp_path):
    """A folder with other files, of another run, or of a gather that still runs is refused."""
    keep = Keep(str(tmp_path / "kept"), "run")
    with pytest.raises(Exception, match="is in use"):
        Keep(str(tmp_path / "kept"), "run")
    keep.close([])
    with pytest.raises(Exception, match="holds another run"):
        Keep(str(tmp_path / "kept"), "other")
    with pytest.raises(Exception, match="holds other files"):
        Keep(str(tmp_path), "run")
    Keep(str(tmp_path / "kept"), "run").close([])


def test_hosts_of_one_name_keep_their_files(tmp_path):
    """Containers may share a host name and come in another order: each is known by its logs, and new ones take a new name."""
    keep = Keep(str(tmp_path / "kept"), "run")
    assert [keep.name_for("pod", [log]) for log in ("rank0.jsonl", "rank1.jsonl")] == ["pod", "pod.2"]
    keep.close([])
    keep = Keep(str(tmp_path / "kept"), "run")
    assert [keep.name_for("pod", logs) for logs in (["rank2.jsonl"], ["rank1.jsonl", "rank5.jsonl"], ["rank0.jsonl"])] == ["pod.3", "pod.2", "pod"]
    keep.close([])
