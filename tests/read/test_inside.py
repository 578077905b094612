"""Causes are not cut from messages: a nested exception is shown with the outer one."""

import json

from ddp_probe.judging.judge import judge
from ddp_probe.reading.job_line import inside
from ddp_probe.reading.load_run import from_lines

WORKER = """Caught OSError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "/env/lib/python3.11/site-packages/torch/utils/data/_utils/worker.py", line 351, in _worker_loop
    data = fetcher.fetch(index)
  File "/work/data.py", line 12, in __getitem__
    return Image.open(self.paths[index])
  File "/env/lib/python3.11/site-packages/PIL/Image.py", line 3536, in open
    raise OSError(msg)
OSError: image file is truncated (7 bytes not processed)
"""
CHILD = """

-- Process 1 terminated with the following error:
Traceback (most recent call last):
  File "/env/lib/python3.11/site-packages/torch/multiprocessing/spawn.py", line 90, in _wrap
    fn(i, *args)
  File "/work/train.py", line 31, in main
    raise ValueError("loss is nan")
ValueError: loss is nan
"""


def ended(**failure):
    """Return the diagnosis of one rank that ended of this exception."""
    start = {"event": "process.start", "rank": 0, "world_size": 1}
    end = {"event": "process.end", "rank": 0, "exit_code": 1, "uncaught": True, "failure": failure}
    return judge(from_lines(json.dumps(start) + "\n" + json.dumps(end)))


def test_the_exception_of_a_worker():
    """The exception of a DataLoader worker is shown with the line of the job that raised it."""
    assert inside(WORKER) == "OSError: image file is truncated (7 bytes not processed), at /work/data.py:12"
    because = ended(type="OSError", message=WORKER).undecided[0].because
    assert "OSError: Caught OSError in DataLoader worker process 0 (OSError: image file is truncated" in because
    assert "(7 bytes not processed), at /work/data.py:12)" in because


def test_the_exception_of_a_child():
    """The exception of a spawned child follows its parent's message."""
    assert inside(CHILD) == "ValueError: loss is nan, at /work/train.py:31"
    raised = {"type": "torch.multiprocessing.spawn.ProcessRaisedException", "message": CHILD}
    log = {"event": "launcher.end", "failure": raised, "exit_code": 1, "uncaught": True}
    because = " ".join(answer.because for answer in judge(from_lines(json.dumps(log))).undecided)
    assert "-- Process 1 terminated with the following error (ValueError: loss is nan, at /work/train.py:31)" in because


def test_the_signal_of_a_killed_worker():
    """The cause of an exception is shown if the exception does not have the same text."""
    killed = {"cause": "RuntimeError", "cause_message": "DataLoader worker (pid 7) is killed by signal: Killed. "}
    because = ended(type="RuntimeError", message="DataLoader worker (pid(s) 7) exited unexpectedly", **killed).undecided[0].because
    assert "exited unexpectedly (from RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed.)" in because
    assert inside("a: b", "b", "KeyError") == ""


def test_an_exception_without_another_is_as_it_was():
    """Most exceptions carry none."""
    assert inside("size mismatch for head.weight") == ""


def test_a_handled_exception_of_a_rank_that_left_by_os_exit_is_no_failure():
    """A rank that its launcher saw end with 0 has survived what it caught, with or without an end line."""
    caught = {"type": "RuntimeError", "message": "Found no NVIDIA driver on your system"}
    lines = [
        {"event": "process.start", "rank": 0, "local_rank": 0, "world_size": 1, "pid": 7},
        {"event": "device.set", "phase": "begin", "rank": 0, "span": 1, "pid": 7},
        {"event": "device.set", "phase": "error", "rank": 0, "span": 1, "pid": 7, "failure": caught},
        {"event": "launcher.start", "launcher": "torchrun"},
        {"event": "launcher.child", "child_rank": 0, "child_local_rank": 0, "child_pid": 7, "exit_code": 0},
    ]
    run = from_lines("\n".join(map(json.dumps, lines)))
    assert [failure.fatal for failure in run.failures] == [False]
    assert judge(run).findings == []
