"""The last line of a process tells which line of the job called sys.exit or os._exit."""

import pytest

JOB = """
import sys, torch
torch.save({}, "a.pt")
def give_up():
    sys.exit(3)
try:
    sys.exit(2)
except SystemExit:
    pass
{leave}
"""


USAGE = "import argparse; argparse.ArgumentParser().parse_args(['x'])"


@pytest.mark.parametrize(("leave", "code", "line"), [("give_up()", 3, 5), (USAGE, 2, None), ("import os; os._exit(4)", 4, 10), ("", 0, None)])
def test_the_line_that_left(tmp_path, run_python, armed, read_events, leave, code, line):
    """It is the job's line, of the call that ended it; an exit that a library decided on, or one that was caught, names none."""
    script = tmp_path / "job.py"
    script.write_text(JOB.replace("{leave}", leave))
    done = run_python([script], env=armed(tmp_path / "runs"), cwd=tmp_path)
    assert done.returncode == code
    end = next(event for event in read_events(tmp_path / "runs" / "latest") if event["event"] == "process.end")
    assert (end["exit_code"], end.get("site", {}).get("line")) == (code, line)
