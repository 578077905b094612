"""Jobs in the shape of large code bases that need no framework but torch and mmengine: healthy they are clear, broken each way is named."""

import json
import shutil
from pathlib import Path
from typing import Any, Callable, Dict, NamedTuple

import pytest
from client_table import CODE_BASES, PROGRAMS, WIDE_WAYS, Client, lines

BROKEN = tuple(way for way in WIDE_WAYS if way not in ("", "hang"))
# Ways in which the rank writes no line of its own, or has logged it and goes on: only how it ended is known.
_LINELESS = ("_exit", "kill", "swallow")


class Ended(NamedTuple):
    """How a launch ended, and what the report says."""

    code: int
    output: str
    report: Dict[str, Any]


@pytest.fixture
def start(
    run_python: Callable[..., Any], armed: Callable[..., Dict[str, str]], free_port: Callable[[], int], tmp_path: Path
) -> Callable[[Client, str], Ended]:
    """Launch a client, and read the report."""

    def launch(client: Client, way: str) -> Ended:
        folder = tmp_path / "here"
        shutil.copytree(str(PROGRAMS), str(folder), ignore=shutil.ignore_patterns("__pycache__"))
        env = armed(tmp_path / "runs", WAY=way or None, OMP_NUM_THREADS="1")
        words = client.command.format(port=free_port()).split()
        done = run_python(["-m", "torch.distributed.run", *words[1:]], env=env, cwd=folder, timeout=150)
        told = run_python(["-m", "ddp_probe", "report", "--json", tmp_path / "runs" / "latest"], env=env, cwd=folder)
        return Ended(done.returncode, done.stdout + done.stderr, json.loads(told.stdout))

    return launch


@pytest.mark.parametrize("client", CODE_BASES, ids=lambda client: client.name)
@pytest.mark.sample(1)
def test_healthy(start: Callable[[Client, str], Ended], client: Client) -> None:
    """A job in which nothing is wrong ends with 0, and the report's verdict is clear."""
    ended = start(client, "")
    assert ended.code == 0, ended.output
    assert (ended.report["verdict"], ended.report["findings"]) == ("clear", [])


@pytest.mark.parametrize("way", BROKEN)
@pytest.mark.parametrize("client", CODE_BASES, ids=lambda client: client.name)
@pytest.mark.sample(2)
def test_broken(start: Callable[[Client, str], Ended], client: Client, way: str) -> None:
    """A broken job is never clear, and the first finding or question names rank 1, all ranks, or the line that is at fault."""
    ended = start(client, way)
    assert ended.report["verdict"] in ("found", "undecided"), ended.report
    said = json.dumps([ended.report["findings"][:1], ended.report["undecided"]])
    wanted = lines(client.program, way) + lines("pieces.py", way)
    assert way in _LINELESS or not wanted or any(line in said for line in wanted), said
    # Parameters that all ranks leave out alike are told without a rank in the words: the finding names the ranks beside them.
    alike = way == "ddp" and [(each["slug"], each["ranks"]) for each in ended.report["findings"][:1]] == [("unused-parameters", [0, 1])]
    assert alike or "ank 1" in said or "anks 0-1" in said, said
