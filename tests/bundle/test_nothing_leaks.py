"""Planted secrets are nowhere in a bundle."""

import json
import re
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from secret_sets import COMMANDS, SECRET, SEEN, TEXTS

from ddp_probe.reading import bundled
from ddp_probe.shared.masks import mask

RECORDED = Path(__file__).resolve().parent.parent / "recorded" / "new"
_UNKNOWN = "correct7horse"  # A secret without a form, which only the environment names.
_KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIE%sq\nZZZ%s\n-----END RSA PRIVATE KEY-----" % (SECRET, SECRET)
_JOB = """\
import os, sys, torch.distributed as dist
PASSWORD = "{secret}"
dist.init_process_group("gloo")
dist.barrier()
if dist.get_rank() == 1:
    try:
        raise ConnectionError("https://bob:{secret}@hub.example/x.pth?token={secret} refused {unknown}")
    except ConnectionError as exc:
        raise RuntimeError("wrong password: {secret}") from exc
dist.barrier()
"""


def _leaks(files: Dict[str, bytes], secrets: List[str]) -> List[str]:
    return ["%s in %s" % (secret, name) for name, data in files.items() for secret in secrets if secret.encode() in name.encode() + data]


@pytest.mark.slow
def test_secrets_of_a_real_job(
    tmp_path: Path, torchrun: Any, armed: Any, monkeypatch: pytest.MonkeyPatch, bundle: Any, report: Any, contents: Callable[[Path], Dict[str, bytes]]
) -> None:
    """A job with secrets in its arguments, environment, exceptions, source and paths is bundled without any of them, and its report stays."""
    token = "ghp_%s1234567890abcdefghij" % SECRET
    folder, data = tmp_path / "job", tmp_path / token
    folder.mkdir()
    data.mkdir()
    (folder / "train.py").write_text(_JOB.format(secret=SECRET, unknown=_UNKNOWN))
    env = armed(tmp_path / "runs", HF_TOKEN=_UNKNOWN, PGPASSWORD=SECRET, NCCL_AUTH_TOKEN=SECRET, DDP_PROBE_STRICT=None)
    done = torchrun(folder / "train.py", args=["--api-key", SECRET, "--hub=https://u:%s@h/" % SECRET, "--data", str(data)], env=env, cwd=folder)
    assert done.returncode != 0
    monkeypatch.setenv("HF_TOKEN", _UNKNOWN)
    (run,) = [path for path in (tmp_path / "runs").iterdir() if path.is_dir() and not path.is_symlink()]
    files = contents(bundle([run], tmp_path / "b.tar.gz"))
    assert _leaks(files, [SECRET, _UNKNOWN, token]) == []
    kinds = {name.rpartition(".")[2] for name in files if name.startswith("run/")}
    assert {"jsonl", "ledger"} <= kinds
    assert "source/0-train.py" in files
    assert json.loads(report(run)[1])["verdict"] == json.loads(report(tmp_path / "b.tar.gz")[1])["verdict"] == "found"
    held = json.loads(files[bundled.MANIFEST])
    assert held["masked"]["the job's source"] == 3
    assert sum(held["already_masked"].values()) > 2


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """Return a recorded run in which an older probe has masked nothing."""
    run = tmp_path / "run"
    source = RECORDED / "12_holds_the_gil"
    (run / "models").mkdir(parents=True)
    for file in source.iterdir():
        if file.is_file():
            (run / file.name).write_bytes(file.read_bytes())
    log = next(run.glob("rank00001*.jsonl"))
    lines = log.read_text().splitlines()
    first = json.loads(lines[0])
    first["environment"] = {"WANDB_API_KEY": SECRET, "NOTE": TEXTS[0] % SECRET}
    first["argv"] = [word for command in COMMANDS for word in ["x.py", *command.replace("%s", SECRET).split(), "--end=1"]][:199]
    first["executable"] = "/data/%s/python" % ("ghp_" + SECRET + "0123456789")
    last = {"event": "probe.warning", "phase": "point", "rank": 1, "text": "\n".join(text % SECRET for text in TEXTS) + "\n" + _KEY}
    strange = {"event": "of.another.version", "deep": [{"password": SECRET, "list": ["token=%s" % SECRET]}], "hub_token": SECRET}
    torn = '{"event":"x","failure":{"message":"wrong password: %s' % SECRET
    log.write_text("\n".join([json.dumps(first), *lines[1:], json.dumps(last), json.dumps(strange), torn]))
    ledger = next(run.glob("rank00001*.ledger.txt"))
    rows = [json.loads(line) for line in ledger.read_text().splitlines()]
    for row in rows:
        if row.get("kind") == "site":
            row["is"] = "/home/%s/x.py\n3\nmain" % ("ghp_" + SECRET + "0123456789")
        if row.get("kind") == "group":
            row["is"] = json.dumps(dict(json.loads(row["is"]), description="password=%s" % SECRET))
    ledger.write_text("".join(json.dumps(row) + "\n" for row in rows))
    stacks = next(run.glob("*.stacks"))
    stacks.write_text(stacks.read_text() + '  File "/home/%s/x.py", line 3 in main\n%s\n' % ("ghp_" + SECRET + "0123456789", _KEY))
    (run / "models" / "0123456789abcdef.json").write_text('[\n["token=%s",[1],"float32",true,1],\n["b",[1],"float32",true,1]\n]\n' % SECRET)
    return run


def test_what_an_older_probe_left(planted: Path, bundle: Any, contents: Any) -> None:
    """Each kind of file is masked again: environments, arguments, messages, unknown events, torn lines, ledgers, stacks and models."""
    files = contents(bundle([planted], planted.parent / "b.tar.gz"))
    assert _leaks(files, [SECRET]) == []
    log = next(data for name, data in files.items() if re.search(r"rank00001.*jsonl$", name))
    assert log.count(b"\n") == next(planted.glob("rank00001*.jsonl")).read_bytes().count(b"\n")
    for name, data in files.items():
        if name.startswith("run/") and not name.endswith((".stacks", "json")) and "rank00001" in name:
            assert data.splitlines()[0].startswith(b"{")
            json.loads(data.splitlines()[0])


def test_plain_log(tmp_path: Path, bundle: Any, contents: Any, report: Any) -> None:
    """The plain log of a job goes in line by line, masked, and is read again."""
    log = tmp_path / "err.log"
    lines = [text % SECRET for text in TEXTS] + [text for text, _ in SEEN] + _KEY.splitlines()
    trace = 'Traceback (most recent call last):\n  File "/job/t.py", line 3, in <module>\n    load()\nValueError: wrong password: %s\n' % SECRET
    log.write_text("\n".join(lines) + "\n" + trace)
    files = contents(bundle([log], tmp_path / "b.tar.gz"))
    assert _leaks(files, [SECRET]) == []
    assert _leaks(files, [core for _, core in SEEN]) == []
    assert files["text/err.log"].count(b"\n") == log.read_bytes().count(b"\n")
    there, here = (json.loads(report(path)[1]) for path in (log, tmp_path / "b.tar.gz"))
    assert here["inventory"]["lines"] == there["inventory"]["lines"]
    assert here["verdict"] == there["verdict"]


def test_recorder_dump_without_its_strangers(tmp_path: Path, bundle: Any, contents: Any) -> None:
    """Of a Flight Recorder dump only what the diagnosis reads goes in, masked; one that cannot be read stays out, and the listing says so."""
    run = tmp_path / "run"
    run.mkdir()
    for file in (RECORDED / "00_healthy_cards").glob("rank*"):
        (run / file.name).write_bytes(file.read_bytes())
    entry = {
        "process_group": ["0", "default"],
        "profiling_name": "nccl:all_reduce",
        "collective_seq_id": 1,
        "state": "completed",
        "input_sizes": [[2]],
    }
    frame = {"filename": "/data/x.py?token=%s" % SECRET, "line": 3, "name": "main"}
    dump = {"entries": [{**entry, "frames": [frame], "secret": SECRET}], "nccl_comm_state": {"token": SECRET}}
    (run / "nccl_trace_rank_0").write_text(json.dumps(dump))
    (run / "nccl_trace_rank_1").write_bytes(b"\x80\x02" + SECRET.encode())
    files = contents(bundle([run], tmp_path / "b.tar.gz"))
    assert _leaks(files, [SECRET]) == []
    assert json.loads(files["run/run/nccl_trace_rank_0"])["entries"][0]["frames"][0]["line"] == 3
    assert "cannot be masked" in json.loads(files[bundled.MANIFEST])["left_out"]["run/run/nccl_trace_rank_1"]


def test_masks_change_no_recorded_file(masker: Any) -> None:
    """In what jobs without secrets leave, nothing is masked: a mask that is too eager would change the report."""
    for file in sorted(RECORDED.glob("1*/rank00000*.jsonl")):
        for line in file.read_bytes().splitlines(keepends=True):
            assert masker.event(line) == line
    assert not masker.masked


@pytest.mark.parametrize("value", ["true", "/home/me/.ssh/agent.sock", "auto", "password"])
def test_common_value_of_the_environment(value: str) -> None:
    """A switch, a path or a common word under a secret's name does not hide every other place where it stands."""
    from ddp_probe.showing.masker import Masker

    text = "the value is %s here" % value
    assert Masker({"MY_TOKEN": value}).text(text, "a test") == mask(text)
