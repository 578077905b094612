"""What a file or its name holds is shown in a terminal, and never sent to it: no escape sequence, no character that turns the text around."""

import json

import pytest
from terminal import in_terminal

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
