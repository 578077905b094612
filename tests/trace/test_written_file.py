"""A file that report writes beside what it prints: whole or not at all, told on stderr, and never over another file."""

import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

from ddp_probe import cli
from ddp_probe.showing import forms

RECORDED = Path(__file__).resolve().parent.parent / "recorded" / "new"
FOUND, CLEAR, PLAIN = "03_submodule_left_behind", "00_healthy_ddp", "12_killed_by_sigkill/output.txt"
_OPTIONS = [form.option for form in forms.FILES]


@pytest.mark.parametrize("option", _OPTIONS)
def test_stdout_and_the_exit_code_stay_those_of_the_report(option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With a file the command prints and returns what it does without, and says on stderr in one line where the file is and what opens it."""
    (form,) = [form for form in forms.FILES if form.option == option]
    target = tmp_path / "run file"
    for job, code in ((FOUND, 1), (CLEAR, 0)):
        assert cli.main(["report", "--brief", str(RECORDED / job)]) == code
        printed = capsys.readouterr().out
        assert cli.main(["report", "--brief", option, str(target), str(RECORDED / job)]) == code  # The second one replaces the first.
        out, err = capsys.readouterr()
        assert out == printed
        assert err.startswith("Written: %s, " % target)
        assert err.endswith("; %s.\n" % form.then)
        assert form.sign in target.read_text(encoding="utf-8")[:4096]
    assert [path.name for path in tmp_path.iterdir()] == ["run file"]


@pytest.mark.parametrize("option", _OPTIONS)
def test_a_name_that_ends_in_gz_is_compressed(option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """FILE.gz holds the same text as FILE, written again too."""
    plain, packed = tmp_path / "run", tmp_path / "run.gz"
    for target in (plain, packed, packed):
        assert cli.main(["report", "--brief", option, str(target), str(RECORDED / CLEAR)]) == 0
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    assert "cannot be written" not in capsys.readouterr().err


@pytest.mark.parametrize("option", _OPTIONS)
def test_what_cannot_be_written_is_told_before_anything_is_read(option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder, a pipe, a missing folder and a file of somebody else end the command with 2 and why, and nothing is printed or changed."""
    log = tmp_path / "err1.log"
    log.write_text("epoch 1\n", encoding="utf-8")
    os.mkfifo(tmp_path / "pipe")
    missing = str(tmp_path / "no" / "f")
    refused = {str(tmp_path): "a folder", str(tmp_path / "pipe"): "not a regular file", missing: "There is not a folder", str(log): "has not written"}
    for path, why in refused.items():
        assert cli.main(["report", option, path, str(RECORDED / CLEAR)]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("%s %s cannot be written.\n" % (option, path))
        assert why in err
        assert "what to do: " in err
    assert log.read_text(encoding="utf-8") == "epoch 1\n"
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize("option", _OPTIONS)
def test_follow_is_refused(option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file is written once: with --follow the command line is wrong, and says what to do."""
    assert cli.main(["report", option, str(tmp_path / "f"), "--follow", str(RECORDED / CLEAR)]) == 2
    out, err = capsys.readouterr()
    assert (out, list(tmp_path.iterdir())) == ("", [])
    assert err.startswith("%s writes one file" % option)
    assert "what to do: Leave out --follow" in err


@pytest.mark.parametrize("option", _OPTIONS)
def test_a_link_keeps_pointing_at_the_file(option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If FILE is a link, the file behind it is written."""
    (tmp_path / "there").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "there" / "run")
    assert cli.main(["report", "--brief", option, str(link), str(RECORDED / CLEAR)]) == 0
    assert link.is_symlink()
    assert (tmp_path / "there" / "run").stat().st_size > 500
    assert "Written: %s" % link in capsys.readouterr().err


@pytest.mark.parametrize("option", _OPTIONS)
def test_a_full_disk_leaves_nothing_behind(option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """If the disk is full in the middle, the report is printed, the exit code is 2, and the former file is still whole."""
    target = tmp_path / "run"
    assert cli.main(["report", "--brief", option, str(target), str(RECORDED / CLEAR)]) == 0
    before = target.read_bytes()
    capsys.readouterr()
    monkeypatch.setattr(forms.os, "replace", _full)
    assert cli.main(["report", "--brief", option, str(target), str(RECORDED / FOUND)]) == 2
    out, err = capsys.readouterr()
    assert "DDP104" in out
    assert "No space left on device" in err
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert target.read_bytes() == before


def _full(*_: Any) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("option", _OPTIONS)
def test_a_closed_pipe_does_not_cost_the_file(option: str, tmp_path: Path, clean_env: Callable[..., Dict[str, str]]) -> None:
    """'report FILE | head' writes FILE although nobody reads the report to its end."""
    command: List[str] = [sys.executable, "-m", "ddp_probe", "report", "--json", option, str(tmp_path / "run"), str(RECORDED / FOUND)]
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(command, env=clean_env(), stdout=write, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    os.close(write)
    assert done.returncode in (141, -signal.SIGPIPE), done.stderr
    assert "Written: " in done.stderr
    assert (tmp_path / "run").stat().st_size > 500


def test_the_trace_of_a_plain_log_has_its_findings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a job printed has no times; its trace has the findings as moments of the run."""
    code = cli.main(["report", "--json", "--trace", str(tmp_path / "t"), str(RECORDED / PLAIN)])
    printed = json.loads(capsys.readouterr().out)
    events = json.loads((tmp_path / "t").read_text(encoding="utf-8"))["traceEvents"]
    assert code in (1, 3)
    assert [event["name"].partition(" ")[0] for event in events if event["ph"] == "i"] == [finding["id"] for finding in printed["findings"]]
    assert {event["ph"] for event in events} <= {"M", "i"}
