"""The command: what it prints, what it writes, and how it ends."""

import json
import os
import platform
import stat
import subprocess
import sys
import tarfile
from importlib import metadata
from pathlib import Path
from typing import Any, Callable, List

import pytest

from ddp_probe import cli
from ddp_probe.doctor import cards, children
from ddp_probe.moving.bundle import bundle_pages
from ddp_probe.shared.accelerators import by_device_type

RECORDED = Path(__file__).resolve().parent.parent / "recorded" / "new"
_NAME = "03_submodule_left_behind"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one run in ddp_probe_runs, in which the command is started."""
    folder = tmp_path / "ddp_probe_runs" / _NAME
    folder.mkdir(parents=True)
    for file in (RECORDED / _NAME).iterdir():
        if file.is_file() and file.name != "output.txt":
            (folder / file.name).write_bytes(file.read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def test_listing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The newest run is written into this folder, readable by the user alone, and every line of the listing fits into 80 columns."""
    assert cli.main(["bundle"]) == 0
    out = capsys.readouterr().out
    made = here / ("ddp_probe-%s.tar.gz" % _NAME)
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    assert [line for line in out.splitlines() if len(line) > 80] == []
    for part in ("what the bundle holds", "3 logs", "2 ledgers, as text", "what was masked", "### Environment", "DDP104", "Written: %s" % made.name):
        assert part in out
    assert sorted(os.listdir(here)) == ["ddp_probe-%s.tar.gz" % _NAME, "ddp_probe_runs"]
    with tarfile.open(made) as tar:
        members = tar.getmembers()
    assert {(one.uid, one.gid, one.uname, one.gname, one.mode, one.isreg()) for one in members} == {(0, 0, "", "", 0o600, True)}
    assert all(one.name.startswith("ddp_probe-%s/" % _NAME) for one in members)


@pytest.mark.parametrize("asks", ["nothing", "another Python", "a card"])
def test_torch_is_not_started_for_a_run_that_has_shown_it(
    asks: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the ranks imported the torch of this Python on this host without a card, no child imports it again; otherwise one does."""
    started: List[str] = []

    def record(program: str, arguments: Any, environ: Any) -> children.Child:
        started.append(program)
        return start(program, arguments, environ) if program == "packages" else children.Child([sys.executable, "-c", ""], environ)

    start = children.started
    monkeypatch.setattr(children, "started", record)
    monkeypatch.setattr(cards, "signed", lambda host: by_device_type("cuda") if asks == "a card" else None)
    bundle_pages._doctors_host.cache_clear()
    shown = {"host": platform.node(), "executable": "/usr/bin/python9" if asks == "another Python" else sys.executable}
    for file in (RECORDED / "00_healthy_ddp").glob("*.jsonl"):
        events = [{**event, **{name: shown[name] for name in shown if name in event}} for event in map(json.loads, file.read_text().splitlines())]
        for event in events:
            event.get("versions", {}).update({"torch": metadata.version("torch")} if "versions" in event else {})
        (tmp_path / file.name).write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    assert cli.main(["bundle", str(tmp_path), "-o", str(tmp_path / "made.tar.gz")]) == 0
    bundle_pages._doctors_host.cache_clear()
    assert ("torch_facts" in started) == (asks != "nothing")
    with tarfile.open(tmp_path / "made.tar.gz") as tar:
        table = b"".join(file.read() for one in tar if one.name.endswith("doctor.txt") for file in [tar.extractfile(one)] if file).decode()
    assert ("the ranks of the run imported torch %s here" % metadata.version("torch") in table) == (asks == "nothing")
    assert ("DOC101" in table) == (asks != "nothing")
    assert ("\ntorch built  for " in capsys.readouterr().out) == (asks == "nothing")


def test_not_overwritten(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is there stays as it is, unless --force replaces it."""
    (here / "b.tgz").write_text("mine")
    assert cli.main(["bundle", _NAME, "-o", "b.tgz"]) == 2
    assert "b.tgz is there already." in capsys.readouterr().err
    assert (here / "b.tgz").read_text() == "mine"
    assert cli.main(["bundle", _NAME, "-o", "b.tgz", "--force"]) == 0
    assert cli.main(["report", "b.tgz", "--brief"]) == 1
    assert cli.main(["bundle", _NAME, "-o", "."]) == 2


@pytest.mark.parametrize("output", ["missing/b.tgz", "/proc/b.tgz"])
def test_folder_that_cannot_be_written(here: Path, output: str, capsys: pytest.CaptureFixture[str]) -> None:
    """If the archive cannot be written, the error says why and what to do, and nothing is read or listed before."""
    assert cli.main(["bundle", "-o", output]) == 2
    shown = capsys.readouterr()
    assert "%s cannot be written." % output in shown.err
    assert "Name a file in another folder" in shown.err
    assert shown.out == ""


def test_a_file_that_is_there_is_said_before_the_run_is_read(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The archive of an earlier call, under the name that bundle chooses, is refused at once."""
    (here / ("ddp_probe-%s.tar.gz" % _NAME)).write_text("mine")
    monkeypatch.setattr("ddp_probe.moving.bundle.make.load", lambda *_: pytest.fail("The run is read."))
    assert cli.main(["bundle"]) == 2


def test_list_writes_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--list prints the same listing, and --json the same as one object."""
    assert cli.main(["bundle", "--list"]) == 0
    assert "Nothing was written" in capsys.readouterr().out
    assert cli.main(["bundle", "--list", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["file"], found["differs"], found["bundle"]["masked"]) == (None, "", {})
    assert os.listdir(here) == ["ddp_probe_runs"]


def test_environment_alone(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--env-only prints the block of a run from its own events: another machine's versions, command and verdict, and nothing of this one."""
    assert cli.main(["bundle", "--env-only", _NAME]) == 0
    out = capsys.readouterr().out
    assert out.startswith("### Environment\n\n```text\n")
    assert out.endswith("```\n")
    for part in ("verdict      found: DDP104", "torch        2.13.0+cpu", "--nproc_per_node=2", "MASTER_ADDR=127.0.0.1", "accelerator  gcu"):
        assert part in out
    assert "platform" not in out
    assert os.listdir(here) == ["ddp_probe_runs"]


@pytest.mark.slow
def test_environment_of_this_host(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a run, --env-only prints this host: torch as a child imports it, and variables with their secrets masked."""
    monkeypatch.setenv("NCCL_DEBUG", "INFO")
    monkeypatch.setenv("TORCH_HUB_TOKEN", "correct7horse")
    assert cli.main(["bundle", "--env-only"]) == 0
    out = capsys.readouterr().out
    assert "torch        %s" % ".".join(__import__("importlib.metadata").metadata.version("torch").split(".")[:2]) in out
    assert "gloo" in out
    assert "NCCL_DEBUG=INFO" in out
    assert "correct7horse" not in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["no-such-run"], "No such file or folder: no-such-run."),
        (["--max-bytes", "much"], "is not a valid size"),
        (["--max-bytes", "100"], "is not a valid size"),
        (["--list", "--env-only"], "not allowed with"),
    ],
)
def test_usage(here: Path, arguments: List[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What cannot be done is said, with exit code 2."""
    assert cli.main(["bundle", *arguments]) == 2
    assert says in capsys.readouterr().err


def test_no_run_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Without any run the exit code is 2."""
    monkeypatch.chdir(tmp_path)
    assert cli.main(["bundle"]) == 2
    assert "No run found." in capsys.readouterr().err


def test_closed_pipe(here: Path, clean_env: Callable[..., Any]) -> None:
    """If the reader of the listing goes away, the archive is written all the same."""
    command = [sys.executable, "-m", "ddp_probe", "bundle", _NAME, "-o", "b.tgz"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_env(), cwd=here)
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(60) == 141
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert cli.main(["report", str(here / "b.tgz"), "--brief"]) == 1


def test_other_commands_read_it(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """'logs' and 'explain' read a bundle as they read the run, and so does 'report' after it was unpacked by hand."""
    assert cli.main(["bundle", "-o", "b.tgz"]) == 0
    capsys.readouterr()
    shown = []
    for run in (_NAME, "b.tgz"):
        assert cli.main(["logs", run, "--rank", "0"]) == 0
        assert cli.main(["explain", "DDP104", run]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]
    with tarfile.open("b.tgz") as tar:
        tar.extractall(here / "by_hand")  # our own archive
    assert cli.main(["report", str(here / "by_hand" / ("ddp_probe-" + _NAME)), "--brief"]) == 1


def test_stacks_of_a_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """'stacks' shows what a hang left, asks nobody, and an error names the bundle, not the folder into which it was unpacked."""
    monkeypatch.chdir(tmp_path)
    assert cli.main(["bundle", str(RECORDED / "12_holds_the_gil"), "-o", "b.tgz"]) == 0
    assert cli.main(["bundle", str(RECORDED / _NAME), "-o", "none.tgz"]) == 0
    capsys.readouterr()
    shown = []
    for run in (str(RECORDED / "12_holds_the_gil"), "b.tgz"):
        assert cli.main(["stacks", run, "--wait", "0"]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]
    assert cli.main(["stacks", "none.tgz"]) == 2
    assert "There are no stacks in none.tgz." in capsys.readouterr().err


def test_two_bundles(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A bundle is read alone: two of them are two runs."""
    assert cli.main(["bundle", "-o", "b.tgz"]) == 0
    assert cli.main(["report", "b.tgz", _NAME]) == 2
    assert "A bundle is read alone." in capsys.readouterr().err


@pytest.mark.parametrize("command", [["report", "--follow"], ["logs", "--follow"], ["watch"]])
def test_what_needs_a_run(here: Path, command: List[str], capsys: pytest.CaptureFixture[str]) -> None:
    """What looks at a run while it goes on refuses a bundle, and says what reads it."""
    assert cli.main(["bundle", "-o", "b.tgz"]) == 0
    assert cli.main([*command, "b.tgz"]) == 2
    assert "b.tgz is a bundle, which does not change." in capsys.readouterr().err


def test_bundle_of_a_bundle(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A bundle is not bundled again."""
    assert cli.main(["bundle", "-o", "b.tgz"]) == 0
    assert cli.main(["bundle", "b.tgz", "-o", "c.tgz"]) == 2
    assert "b.tgz is a bundle already." in capsys.readouterr().err


def test_temporary_folder_that_cannot_be_written(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """If the temporary folder takes nothing more, the error names it and says what to do."""

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device", "/tmp/x")

    monkeypatch.setattr("ddp_probe.moving.bundle.stage.part", full)
    assert cli.main(["bundle", "-o", "b.tgz"]) == 2
    err = capsys.readouterr().err
    assert "No space left on device" in err
    assert "TMPDIR" in err
    assert not (here / "b.tgz").exists()
