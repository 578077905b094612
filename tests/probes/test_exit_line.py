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


CHILD = """
import multiprocessing, os, sys

def work(folder, leave):
    import torch.distributed as dist
    dist.init_process_group("gloo", init_method="file://" + folder + "/meet", rank=0, world_size=1)
    try:
        {}["key"]
    except KeyError:
        try:
            sys.exit(1)
        except SystemExit:
            pass
        if leave == "exits":
            sys.exit(1)
    raise ValueError(leave)

if __name__ == "__main__":
    child = multiprocessing.get_context(sys.argv[1]).Process(target=work, args=(os.getcwd(), sys.argv[2]))
    child.start()
    child.join()
    sys.exit(child.exitcode)
"""


@pytest.mark.parametrize(
    ("method", "leave", "line", "failed"),
    [
        ("spawn", "exits", 15, ("KeyError", False)),
        ("fork", "exits", 15, ("KeyError", False)),
        ("spawn", "raises", None, ("ValueError", True)),
    ],
)
def test_the_line_that_left_a_child(tmp_path, run_python, armed, read_events, method, leave, line, failed):
    """A child of multiprocessing names the line that called sys.exit and the exception behind it, or the exception that it did not catch."""
    pytest.importorskip("torch")
    script = tmp_path / "job.py"
    script.write_text(CHILD)
    done = run_python([script, method, leave], env=armed(tmp_path / "runs"), cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    files = [read_events(path) for path in (tmp_path / "runs" / "latest").glob("*.jsonl")]
    (end,) = [event for events in files if events[0]["role"] == "promoted" for event in events if event["event"] == "process.end"]
    assert (end["exit_code"], end.get("site", {}).get("line")) == (1, line)
    assert (end["failure"]["type"], end.get("uncaught", False)) == failed
