"""What a log holds is text in a terminal: it moves no cursor, sets no title and turns no letters round, whichever command shows it."""

import json
import re
import shutil
from pathlib import Path
from typing import Any, List

import pytest
from terminal import in_terminal

_HOSTILE = "\x1b[2J\x1b]0;title\x07\u202ednuor\u2066\u200f\x9b31m\x08\x7f\r"
_TEXTS = re.compile(r'"((?:host|message|file|function|type|model|wrapper|backend|name|text|warning)[a-z_]*)":"')
_COLOURS = re.compile(r"\x1b(?:\[[0-9;]*m|\]8;[^\x07\x1b\u202e]*(?:\x1b\\|\x07))")  # and links, which are ours
_PROGRESS = re.compile(r"\r(?:reading  \[[#-]{30}\] +\d+ % of \d+\.\d MB *| {70}\r)")  # Ours too, if reading takes longer than a second.
_ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def hostile(repo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a recorded run whose texts all begin with what a terminal would act on, and a file of such a name."""
    run = tmp_path_factory.mktemp("hostile") / "run"
    shutil.copytree(repo / "tests" / "recorded" / "new" / "08_all_reduce_against_broadcast", run)
    quoted = json.dumps(_HOSTILE)[1:-1]
    for path in run.rglob("*.*"):
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
        if path.suffix == ".jsonl":
            text = _TEXTS.sub(lambda found: '"%s":"%s' % (found[1], quoted), text)
        else:
            text = text.replace(".py", (quoted if "ledger" in path.name else _HOSTILE) + ".py")
            text += "" if "ledger" in path.name else "\n\0RuntimeError: %s%s\n" % (_HOSTILE, "A" * 100_000)
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
    (run / ("c%s.pt" % _HOSTILE)).write_bytes(b"\xff\xfe" * 50)
    return run


@pytest.mark.parametrize(
    "command", ["report", "watch --once", "stacks --wait 0", "logs", "logs --raw", "runs", "checkpoint", "report text", "in Chinese"]
)
def test_a_terminal_is_sent_nothing_that_it_acts_on(hostile: Path, command: str, clean_env: Any) -> None:
    """Of escapes, controls and marks of direction that the log holds, none reaches the terminal; what is ours are colours and links."""
    words: List[Any] = command.split()
    if command in ("report text", "in Chinese"):
        words = ["report", hostile / "output.txt" if command == "report text" else hostile]
    else:
        words.append({"runs": hostile.parent, "checkpoint": hostile / ("c%s.pt" % _HOSTILE)}.get(command, hostile))
    env = clean_env(TERM="xterm-256color", DDP_PROBE_LANG="zh" if command == "in Chinese" else "en")
    code, seen = in_terminal(list(map(str, words)), env)
    assert code in (0, 1, 3), seen[-2000:]
    assert "nuor" in seen or command in ("watch --once", "runs", "stacks --wait 0"), seen[:500]
    theirs = _PROGRESS.sub("", _COLOURS.sub("", seen)).replace("\r\n", "\n")
    assert [theirs[max(0, found.start() - 20) : found.end() + 20] for found in _ACTS.finditer(theirs)] == []
