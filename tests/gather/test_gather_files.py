"""What a host brings is bounded and checked: names, sizes, digests, order, and the folder that keeps it."""

import hashlib
import json

import pytest
from gathering import LOG, Rank0, brings, lacking, offer, split

from ddp_probe.moving.gather import choice
from ddp_probe.moving.gather.keep import Keep
from ddp_probe.moving.gather.messages import (
    PIECE,
    Begin,
    ExitCode,
    Finished,
    Have,
    Holds,
    Offer,
    Sent,
)
from ddp_probe.reading import fold


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
    "name", [LOG, "launcher.node-1.jsonl", "rank00001.b.1.ledger", "rank00001.b.1.stacks", "models/596174d15c5024df.json", "rank_3.json"]
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
    line = brings(rank0)
    offer(line, "", b"fold")
    offer(line, LOG, b"log")
    assert offer(line, "rank00002.b.2.jsonl", b"", size=998).not_wanted == "--max-bytes"
    line.say(Finished())
    assert lacking(rank0) == []
    rank0.hub.tell(3)
    assert line.wait(ExitCode).code == 3
    assert (tmp_path / "kept" / "host1.fold").read_bytes() == b"fold"
    assert (tmp_path / "kept" / "logs" / "host1" / LOG).read_bytes() == b"log"
    assert [sentence for files in rank0.hub.hosts() for sentence in files.left_out()] == [
        "1 files of host1 (rank 1), 998 bytes, are left out: --max-bytes"
    ]


@pytest.mark.parametrize(
    ("misbehave", "said"),
    [
        (
            lambda line: offer(line, "", b"fold", sha256="0" * 64) and line.say(Finished()),
            "is not kept: its sha256 differs from the one on its host",
        ),
        (
            lambda line: offer(line, "", b"", size=1 << 40) and line.say(Finished()),
            "is not kept: it has 1.0 TiB",
        ),
        (lambda line: offer(line, "", b"fold and more", size=4), "was cut off (it sends more than it has announced)"),
        (lambda line: offer(line, "", b"x" * (PIECE + 1)), "was cut off (it sends more than it has announced)"),
        (lambda line: line.say(Offer("../../x", 1)), "was cut off (it offers a file of a name that no run has)"),
        (lambda line: line.send_bytes(b"[" * 100000 + b"\n"), "was cut off (it sent what is not a valid message"),
        (lambda line: line.send_bytes(b'{"type":"offer","name":"","size":-1}\n'), "was cut off (it sent what is not a valid message"),
        (lambda line: line.say(Holds([LOG])), "was cut off (it sends the names of its files twice)"),
        (lambda line: line.say(Finished()), "has ended without a fold"),
        (lambda line: line.close(), "was cut off: it was about to fold"),
    ],
    ids=["digest", "too-large", "more", "piece", "name", "nested", "negative", "twice", "nothing", "closed"],
)
def test_a_host_that_misbehaves(rank0, tmp_path, misbehave, said):
    """Whatever a host sends, rank 0 goes on, says what was wrong with it, and has no file of it."""
    line = brings(rank0)
    misbehave(line)
    (sentence,) = lacking(rank0)
    assert said in sentence
    assert not list((tmp_path / "kept").glob("*.fold"))
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_a_fold_goes_on_where_it_was_cut(tmp_path):
    """Rank 0 says what it has of a file with its digest; it takes the rest, and nothing else from that byte on."""
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "gathered.json").write_text(json.dumps({"gathered": 1, "run": "run"}))
    (tmp_path / "kept" / "host1.fold.part").write_bytes(b"fo")
    made = Rank0(tmp_path / "kept")
    made.take()
    for rank in (0, 2):
        line = made.hello(rank, leads=False)
    line = brings(made)
    line.say(Offer("", 4))
    assert line.wait(Have) == Have(2, hashlib.sha256(b"fo").hexdigest())
    line.say(Begin(2))
    line.send_piece(b"ld")
    line.send_piece(b"")
    line.say(Sent(hashlib.sha256(b"fold").hexdigest()))
    line.say(Finished())
    assert lacking(made) == []
    assert {path.name for path in (tmp_path / "kept").iterdir()} == {"host1.fold", "gathered.json"}


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
