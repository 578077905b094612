"""Ctrl-C ends each command alike: with 130, without a word, wherever it comes."""

import shutil
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

RECORDED = Path(__file__).resolve().parent.parent / "recorded" / "new"
_RUN = str(next(path for path in sorted((RECORDED / "03_submodule_left_behind").rglob("rank*.jsonl"))).parent)
# A signal of its own process at the call of the command's code with this number: no clock decides where it comes.
_CODE = """\
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
import ddp_probe
from ddp_probe.cli import main
at, calls, home = int(sys.argv[1]), 0, os.path.dirname(ddp_probe.__file__) + os.sep

def count(frame, event, _):
    global calls
    # A generator that is put aside half read is called once more to be closed, and Python reports and drops what is raised there.
    if event == "call" and frame.f_code.co_filename.startswith(home) and not frame.f_code.co_flags & 0x20:
        calls += 1
        if calls == at:
            sys.setprofile(None)
            signal.raise_signal(signal.SIGINT)

sys.setprofile(count)
try:
    code = main(sys.argv[2:])
finally:
    sys.setprofile(None)
if not at:
    print(calls, file=sys.stderr)
sys.exit(%d if at > calls else code)
"""
_TOO_LATE = 77  # The exit code if the command has ended before its call with that number.
COMMANDS: List[List[str]] = [
    ["report", _RUN],
    ["report", "--json", _RUN],
    ["report", "--follow", _RUN],
    ["logs", _RUN],
    ["logs", "--follow", _RUN],
    ["runs"],
    ["explain"],
    ["explain", "DDP104", _RUN],
    ["watch", _RUN],
    ["stacks", _RUN],
    ["bundle", _RUN, "--force", "-o", "b.tar.gz"],
    ["checkpoint", str(RECORDED.parent.parent / "checkpoints" / "corpus")],
    ["doctor", "--static"],
    ["schema"],
    ["completion", "bash"],
    ["help"],
    ["status"],
    ["install", "--dry-run"],
    ["gather", "--into", "gathered", _RUN],
]


@pytest.mark.sample(6)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_each_command_ends_with_130(
    command: List[str], run_python: Callable[..., Any], tmp_path: Path, clean_env: Callable[..., Dict[str, str]]
) -> None:
    """An interrupt early, in the middle or late in what a command does ends it with 130 and nothing on stderr."""

    def start(at: int) -> Any:
        # A copy each time: `runs` keeps its verdicts beside the files, and makes a fraction of the calls where they are kept.
        runs = tmp_path / f"runs{at}"
        shutil.copytree(_RUN, runs / "run")
        env = clean_env(DDP_PROBE_DIR=str(runs), DDP_PROBE_STRICT=None)
        return run_python(["-c", _CODE % _TOO_LATE, str(at), *command], env=env, cwd=tmp_path)

    calls = int(start(0).stderr.split()[-1])
    for share in (0.1, 0.5, 0.9):
        at = max(3, int(calls * share))
        done = start(at)
        while done.returncode == _TOO_LATE:  # While a child works, its state is asked for again and again: less often if it is quicker.
            at -= max(1, at // 10)
            done = start(at)
        assert (done.returncode, done.stderr) == (130, ""), (share, calls, done.stderr)
