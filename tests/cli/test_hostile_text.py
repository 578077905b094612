"""What a file or its name holds is shown in a terminal, and never sent to it: no escape sequence, no character that turns the text around."""

import json
import subprocess
import sys

import pytest
from terminal import in_terminal

from ddp_probe import pytest_plugin

_HOSTILE = "\u202e\x1b]0;evil\x07\x9b2J\u2066\u200b\u2028"
_SENT = frozenset(letter for letter in _HOSTILE if not letter.isprintable())


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A run in which every text, the names of its folder and of its file too, has such characters."""
    folder = tmp_path_factory.mktemp("runs") / ("20261125-000000-1-x" + _HOSTILE)
    folder.mkdir()
    who = {"rank": 0, "local_rank": 0, "world_size": 2, "host": "h" + _HOSTILE, "pid": 10, "run": _HOSTILE, "ts": "2026-11-22T10:00:00Z"}
    failure = {"type": "E" + _HOSTILE, "message": _HOSTILE, "frames": [{"file": "/t/%s.py" % _HOSTILE, "line": 9, "function": _HOSTILE}]}
    told = [
        {
            "event": "process.start",
            "phase": "point",
            "argv": ["t.py", _HOSTILE],
            "environment": {_HOSTILE: _HOSTILE},
            "versions": {"torch": _HOSTILE},
        },
        {"event": "hang.suspected", "phase": "point", "since": 1.0, "threads": [{"main": True, "frames": failure["frames"]}]},
        {"event": "x" + _HOSTILE, "phase": "point"},
        {"event": "process.end", "phase": "point", "uncaught": True, "exit_code": 1, "failure": failure},
    ]
    (folder / "rank00000.h\u202e\x1b[31m.10.jsonl").write_text("".join(json.dumps({**who, **event}) + "\n" for event in told), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "words",
    [
        "report",
        "report --brief",
        "report --format github",
        "logs",
        "logs --raw",
        "watch --once",
        "stacks --wait 0",
        "stacks --wait 0 --raw",
        "explain DDP623",
    ],
)
def test_nothing_of_a_run_controls_the_terminal(clean_env, hostile, words):
    """Each command shows such a character as an escape of letters, in its errors too."""
    _, seen = in_terminal([*words.split(), str(hostile)], clean_env(NO_COLOR="1"))
    assert "\\u202e" in seen
    assert not _SENT.intersection(seen)


def test_the_name_of_a_run_does_not_control_the_terminal(clean_env, hostile):
    """The list of runs shows such a name with its escapes."""
    _, seen = in_terminal(["runs"], clean_env(NO_COLOR="1", DDP_PROBE_DIR=str(hostile.parent)))
    assert "\\u202e" in seen
    assert not _SENT.intersection(seen)


def test_an_error_of_a_pipe_has_no_escape_and_no_line_of_its_own(run_python, clean_env, tmp_path):
    """An error that names a file is escaped where no terminal is, too: it may end in the log of CI, where ::error:: at the start of a line acts."""
    done = run_python(["-m", "ddp_probe", "report", "no\n::error::such\x1b[2J"], env=clean_env(), cwd=tmp_path)
    assert done.returncode == 2
    assert "\x1b" not in done.stderr
    assert not [line for line in done.stderr.splitlines() if line.startswith("::")]


def test_the_command_of_a_rank_begins_no_line(run_python, clean_env, tmp_path):
    """attach and status name processes whose arguments hold line breaks and escapes; each stays within its line."""
    words = [sys.executable, "-c", "import time; print(1, flush=True); time.sleep(600)", "\n::error::planted", "\x1b[2J"]
    ranks = []
    try:
        for port in ("29123", "29124"):
            place = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
            ranks.append(subprocess.Popen(words, env={**clean_env(), **place}, stdout=subprocess.PIPE))
        for rank in ranks:
            rank.stdout.readline()
        for command in ("attach", "status"):
            done = run_python(["-m", "ddp_probe", command], env=clean_env(DDP_PROBE_DIR=str(tmp_path / "none")), cwd=tmp_path, timeout=120)
            printed = done.stdout + done.stderr
            assert "\x1b" not in printed
            assert not [line for line in printed.splitlines() if line.startswith("::")]
    finally:
        for rank in ranks:
            rank.kill()
            rank.communicate()


def test_what_pytest_prints_of_a_launch_has_no_escape(hostile):
    """The section of a failed test shows the characters of a job's texts as letters."""
    said = "\n".join(pytest_plugin._judged([str(hostile)]))
    assert "\\u202e" in said
    assert not (_SENT - {"\n"}).intersection(said)
