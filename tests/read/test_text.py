"""Plain logs: what a job printed becomes failures, each with its rank where the log tells it, the first one first."""

import subprocess
import sys
from pathlib import Path
from typing import List, Optional, Tuple

import pytest

from ddp_probe.reading import text
from ddp_probe.reading.model import Failed, TextLog
from ddp_probe.reading.text.logical import PastedLines

RECORDED = Path(__file__).resolve().parent.parent / "recorded"


def _read(log: str) -> TextLog:
    return text.read(log.encode().splitlines(keepends=True), "train.log")


def _told(log: str) -> List[Tuple[Optional[int], str, str]]:
    """Return rank, type and first line of each failure that is certainly one."""
    return [(failed.rank, failed.type, failed.message.strip().split("\n")[0]) for failed in _read(log).failures if failed.uncaught]


def _trail(failed: Failed) -> List[Tuple[int, str, str]]:
    return [(site.line, site.function, failed.source.get((site.file, site.line), "")) for site in failed.frames]


def _printed(code: str, *options: str) -> str:
    return subprocess.run([sys.executable, *options, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout


# --- tracebacks


def test_traceback_of_this_python(tmp_path: Path) -> None:
    """A real traceback gives type, message, frames, the text of each frame's line, and the job's own line."""
    program = tmp_path / "train.py"
    program.write_text("import json\n\ndef main():\n    json.loads(\n        'x',\n    )\n\nmain()\n")
    done = subprocess.run([sys.executable, str(program)], stderr=subprocess.PIPE, text=True, check=False)
    (failed,) = _read(done.stderr).failures
    assert (failed.type, failed.message) == ("json.decoder.JSONDecodeError", "Expecting value: line 1 column 1 (char 0)")
    assert _trail(failed)[:2] == [(8, "<module>", "main()"), (4, "main", "json.loads(")]
    assert failed.site is not None
    assert (failed.site.file, failed.site.line) == (str(program), 4)
    assert failed.at.line == len(done.stderr.splitlines())
    assert failed.when == failed.at.line


def test_chained() -> None:
    """Each exception of a chain is a failure of its own, the first to be raised first."""
    first = "try:\n    {}['RANK']\nexcept KeyError:\n"
    code = first + "    try:\n        raise ValueError('x')\n    except ValueError as v:\n        raise OSError('x') from v"
    assert [kind for _, kind, _ in _told(_printed(code))] == ["KeyError", "ValueError", "OSError"]


def test_syntax_error(tmp_path: Path) -> None:
    """A syntax error has no traceback header, but it has a line."""
    program = tmp_path / "train.py"
    program.write_text("x = = 1\n")
    done = subprocess.run([sys.executable, str(program)], stderr=subprocess.PIPE, text=True, check=False)
    (failed,) = _read(done.stderr).failures
    assert (failed.type, _trail(failed)) == ("SyntaxError", [(1, "", "x = = 1")])


def test_recursion() -> None:
    """A recursion without end is one failure with few frames."""
    (failed,) = _read(_printed("def f():\n    f()\nf()")).failures
    assert failed.type == "RecursionError"
    assert len(failed.frames) < 250


def test_exception_group() -> None:
    """The exceptions in a group are told apart, without the margin that shows their nesting."""
    log = """\
  + Exception Group Traceback (most recent call last):
  |   File "/train/t.py", line 3, in <module>
  |     raise ExceptionGroup("two", [ValueError(1), TypeError(2)])
  | ExceptionGroup: two (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/train/t.py", line 1, in f
    |     raise ValueError(1)
    | ValueError: 1
    +---------------- 2 ----------------
    | TypeError: 2
    +------------------------------------
"""
    assert _told(log) == [(None, "ExceptionGroup", "two (2 sub-exceptions)"), (None, "ValueError", "1"), (None, "TypeError", "2")]


@pytest.mark.parametrize("cut", range(6))
def test_head_is_lost(cut: int) -> None:
    """A piece that begins in the middle of a traceback, or with its last line, keeps type, message and the frames that are left."""
    lines = [
        "Traceback (most recent call last):",
        '  File "/train/t.py", line 9, in <module>',
        "    main()",
        '  File "/train/t.py", line 5, in main',
        "    run()",
        "torch.distributed.DistBackendError: NCCL error in: x.cpp:3, invalid usage",
        "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.",
        "Last error:",
        "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000",
    ]
    failed = [failed for failed in _read("\n".join(lines[cut:])).failures if failed.type]
    assert [one.text.split("\n")[-1] for one in failed] == [lines[-1]]
    assert len(failed[0].frames) == (2 - cut // 2 if cut else 2)


def test_end_is_lost() -> None:
    """Frames without an exception are kept as they were printed."""
    log = 'Traceback (most recent call last):\n  File "/train/t.py", line 9, in main\n    torch.cuda.set_device(local_rank)\n'
    (failed,) = _read(log).failures
    assert (failed.type, failed.message, failed.uncaught) == ("", log.rstrip(), False)
    assert _trail(failed) == [(9, "main", "torch.cuda.set_device(local_rank)")]


def test_message_goes_on() -> None:
    """The lines of a message belong to it up to the next record of the log."""
    log = """\
RuntimeError: Error(s) in loading state_dict for Net:
\tMissing key(s) in state_dict: "a.b".
\tUnexpected key(s) in state_dict: "module.a.b".
2026-01-01 12:00:00,000 - INFO - done
_pickle.UnpicklingError: Weights only load failed. WeightsUnpickler error:

Unsupported operand 60
"""
    first, record, second = _read(log).failures
    assert first.message.count("\n") == 2
    assert record.message == "2026-01-01 12:00:00,000 - INFO - done"
    assert second.message.endswith("Unsupported operand 60")


def test_survived_exceptions_are_not_fatal() -> None:
    """An exception that Python ignored in a destructor or while logging is not fatal."""
    printed = _printed("class A:\n    def __del__(self):\n        raise ValueError('in del')\na = A()\ndel a\nraise KeyError('real')")
    assert [(failed.type, failed.fatal) for failed in _read(printed).failures if failed.type] == [("ValueError", False), ("KeyError", True)]


_ONCE = 'Traceback (most recent call last):\n  File "/train/t.py", line 3, in step\nOSError: no cache\n'
_LATER = 'Traceback (most recent call last):\n  File "/train/t.py", line 9, in main\nKeyError: 5\n'


@pytest.mark.parametrize(
    ("log", "fatal"),
    [
        (_ONCE + "step 10 loss 0.5\n" + _LATER, False),
        (_ONCE + "no cache, reading again\n" * 300 + "epoch: 2\n" + "step done\n" * 300 + _LATER, False),
        ('INFO retried are "CUDA error: out of memory"\n' + _LATER, False),
        ("WARNING failed to import x: ImportError('libx.so: cannot open shared object file')\n" + _LATER, False),
        ("h1:77:99 [0] NCCL WARN Cuda failure 'out of memory'\n" + _LATER, True),
        (_ONCE + _LATER, True),
        (_ONCE + "step 10 loss 0.5\n", True),
        (_ONCE + "step 10 loss 0.5\nRuntimeError: Connection closed by peer [127.0.0.1]:41680\n", True),
        (_ONCE + "step 10 loss 0.5\nRuntimeError: Timed out waiting 1800000ms for recv operation to complete\n", True),
        (_ONCE + "WARNING Restarting worker group: a rank failed\nstep 10 loss 0.5\n" + _LATER, True),
        ("".join("[rank1]: %s\n" % line for line in _ONCE.splitlines()) + "[rank0]: step 10 loss 0.5\n" + _LATER, True),
    ],
    ids=["goes-on", "goes-on-later", "info", "warning", "nccl-warns", "at-once", "no-other", "peer-gone", "timeout", "restart", "another-rank"],
)
def test_a_failure_after_which_the_training_went_on_is_not_fatal(log: str, fatal: bool) -> None:
    """A failure is survived if its own rank trains on and fails by something else later; what ranks say of others, or a restart, proves nothing."""
    assert _read(log).failures[0].fatal is fatal


def test_what_the_probe_printed_is_no_failure_of_its_own() -> None:
    """In the output of a job with the probe, its line that quotes a failure does not count as one more; the same line of another program does."""
    line = "undecided because: Ranks 0-1 failed with KeyError: 'x' at t.py:9, and no rule knows the cause.\n"
    assert len(_told(_LATER + "ddp_probe: " + line)) == 1
    assert len(_told(_LATER + "ERROR launcher: " + line)) == 2


def test_original_traceback_of_a_worker() -> None:
    """The traceback that a DataLoader's worker sent along is a failure of its own."""
    log = """\
Traceback (most recent call last):
  File "/train/t.py", line 3, in <module>
    for batch in loader:
RuntimeError: Caught FileNotFoundError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "/train/data.py", line 30, in __getitem__
    open(path)
FileNotFoundError: [Errno 2] No such file or directory: 'x.jpg'
"""
    assert [(failed.type, failed.site and failed.site.file) for failed in _read(log).failures] == [
        ("RuntimeError", "/train/t.py"),
        ("FileNotFoundError", "/train/data.py"),
    ]


def test_rich_and_ipython() -> None:
    """The tracebacks of rich and of IPython have frames too."""
    rich = """\
\u256d\u2500\u2500\u2500 Traceback (most recent call last) \u2500\u2500\u256e
\u2502 /train/t.py:12 in main            \u2502
\u2502                                   \u2502
\u2502    9 def main():                  \u2502
\u2502 \u2771 12     run()                    \u2502
\u2570\u2500\u2500\u2500\u2500\u2500\u256f
ValueError: of rich
"""
    ipython = """\
---------------------------------------------------------------------------
ValueError                                Traceback (most recent call last)
/train/t.py in main(a)
     11     a = 1
---> 12     run()
     13

ValueError: of IPython
"""
    for log in (rich, ipython):
        (failed,) = [failed for failed in _read(log).failures if failed.uncaught]
        assert _trail(failed) == [(12, "main", "run()")]


# --- other passages


@pytest.mark.parametrize(
    "line",
    [
        "terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error: an illegal memory access was encountered",
        "node1:77:88 [0] transport/net_ib.cc:1038 NCCL WARN NET/IB : got completion with error 12",
        "train.py: error: unrecognized arguments: --local-rank=0",
        "Killed",
        "Segmentation fault (core dumped)",
        "slurmstepd: error: Detected 1 oom-kill event(s) in step 1.0 cgroup.",
        "/env/torch/cuda/__init__.py:83: UserWarning: CUDA initialization: CUDA unknown error",
        "No CUDA GPUs are available",
        "Fatal Python error: Aborted",
        "E1121 12:00:00.1 77 torch/distributed/elastic/multiprocessing/api.py:1] failed (exitcode: -11) local_rank: 0 (pid: 7) of binary: python",
        "ERROR:RuntimeError: Address already in use",
        "size mismatch for fc.weight: copying a param with shape torch.Size([1]) from checkpoint",
    ],
)
def test_passages(line: str) -> None:
    """A line that is not an exception but has a sign of trouble is found, alone and in the middle of a log of a thousand lines."""
    for log in (line, "step\n" * 1000 + line + "\n" + "step\n" * 1000):
        (failed,) = _read(log).failures
        assert line in failed.message
        assert failed.type == ""
        assert failed.at.line == (1001 if log is not line else 1)
        assert failed.source["train.log", failed.at.line] == line.partition("\n")[0]


def test_loss_of_another_lends_no_name() -> None:
    """A line about the launcher or a peer is separate from the failure next to it."""
    log = "CUDA error: out of memory\nSending process 77 closing signal SIGTERM\nfailed to save\n"
    assert [(failed.message, failed.consequence) for failed in _read(log).failures] == [
        ("CUDA error: out of memory", ""),
        ("Sending process 77 closing signal SIGTERM", "the launcher ended it"),
        ("failed to save", ""),
    ]


def test_summary_of_torchrun() -> None:
    """The launcher's summary is its own; a traceback in it is the failure of the rank that it names."""
    log = """\
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
t.py FAILED
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-21_12:26:52
  rank      : 3 (local_rank: 3)
  exitcode  : 1 (pid: 12988)
  traceback : Traceback (most recent call last):
    File "/train/t.py", line 3, in main
      run()
  ValueError: zero
============================================================
"""
    summary, own = _read(log).failures
    assert "exitcode  : 1" in summary.message
    assert (own.rank, own.type, own.site and own.site.line) == (3, "ValueError", 3)


def test_short_log_is_whole() -> None:
    """Of a short log every line is in a failure's words and in the text, whether it seems to matter or not."""
    log = "Num processes: 4\nDevice: cuda:0\n\n| 0  77  C  python  725MiB |\nValueError: x\n  more\nafterwards\n"
    found = _read(log)
    assert found.text == log.rstrip("\n")
    words = "\n".join(failed.text for failed in found.failures)
    assert all(line in words for line in log.splitlines())
    assert (found.file, found.lines) == ("train.log", 7)


def test_long_log_is_sifted() -> None:
    """Of a long log the quiet lines are left out, but for its beginning, its end and a few around each failure."""
    lines = ["line %d loss 0.5 accuracy 0.9" % count for count in range(5000)]
    lines[2500] = "CUDA error: device-side assert triggered"
    found = _read("\n".join(lines))
    assert [(failed.at.line, failed.message.count("\n")) for failed in found.failures] == [(2501, 6)]
    assert all(line in found.text for line in (lines[0], lines[2498], lines[2500], lines[-1]))
    assert len(found.text.splitlines()) < 400
    assert found.lines == 5000


def test_measures_are_not_failures() -> None:
    """Names of metrics and zero error counts are not signs of trouble."""
    log = "\n".join(["step %d error: 0.25 errors=0 fail_rate: 0.0 memory: 777 0 errors" % count for count in range(1000)])
    assert _told(log) == []


def test_marks_and_escapes() -> None:
    """What steers a terminal, draws a bar or marks up a page is not in the words; square brackets are."""
    log = "\x1b[1;31mRuntimeError\x1b[0m: [bold]x[/bold] [36mof[0m &lt;y&gt;<br/>\n 1%|# |\r 2%|# |\r 3%|# |\r 4%|##|\rValueError: after the bar\n"
    assert _told(log) == [(None, "RuntimeError", "[bold]x[/bold] of <y>"), (None, "ValueError", "after the bar")]


# --- recorded logs


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*/*/output.txt")), ids=lambda path: "/".join(path.parts[-3:-1]))
def test_recorded_outputs(path: Path) -> None:
    """In the output of each recorded job no header of a traceback is left in the words of another failure, and each has its frames and its type."""
    log = path.read_text(encoding="utf-8")
    failures = text.read(log.encode().splitlines(keepends=True), "output.txt").failures
    assert [failed.message for failed in failures if "Traceback (most recent call last)" in failed.message] == []
    assert sum(1 for failed in failures if failed.frames and failed.type) == log.count("Traceback (most recent call last)")
    assert [failed.when for failed in failures] == sorted(failed.when for failed in failures)


@pytest.mark.parametrize(
    ("torn", "messages"),
    [
        ('ValueError  File "/train/t.py", line 6, in b\n: of one\nValueError: no KeyError', ["of one", "no KeyError"]),
        ('ValueError:   File "/train/t.py", line 6, in b\nof one\nValueError: of two', ["of one", "of two"]),
        ("ValueErrorValueError: : of oneof two\n", ["of oneof two", "of oneof two"]),
        ("ValueErrorValueError: of two\n: of one", ["of two", "of two\n: of one"]),
        ("ValueError: of oneValueError: \nof two", ["of one", "of one\nof two"]),
        ("ValueError: ValueError: of oneof two", ["of oneof two", "of oneof two"]),
    ],
)
def test_last_lines_that_ran_together(torn: str, messages: List[str]) -> None:
    """An exception's name, its colon and its words are written one by one: what two ranks wrote into one line is two failures.

    These are the forms that pairs of interpreters left in one pipe.
    """
    frames = ['  File "/train/t.py", line %d, in b' % line for line in (7, 7, 6, 6)]
    log = "\n".join(["Traceback (most recent call last):"] * 2 + frames[: 3 if "File" in torn else 4] + [torn])
    assert [(failed.type, failed.message, len(failed.frames)) for failed in _read(log).failures] == [("ValueError", words, 2) for words in messages]


@pytest.mark.parametrize(
    ("pasted", "printed"),
    [
        ("> 1. RuntimeError: of one\n> 2.   more", ["RuntimeError: of one", "  more"]),
        ('{"log": "RuntimeError: of one\\n", "stream": "stderr"}', ["RuntimeError: of one"]),
        ("`RuntimeError: of\xa0\u2018one\u2019`", ["RuntimeError: of 'one'"]),
        ("<11>1 2026-11-25T12:31:01.1+00:00 gpu07 train 47 - - RuntimeError: of one", ["RuntimeError: of one"]),
        (
            'main:\n  File "/a/path/to/site-pack\nages/torch/x.py", line 3, in f',
            ["main:", '  File "/a/path/to/site-packages/torch/x.py", line 3, in f'],
        ),
        ("RuntimeError: " + "x" * 66 + "yz\ntwo", ["RuntimeError: " + "x" * 66 + "yz", "two"]),  # No width of a terminal.
        ("RuntimeError: " + "x" * 66 + "\nyz", ["RuntimeError: " + "x" * 66 + "yz"]),
        ("loading the weights of the model now\nand the data", ["loading the weights of the model now", "and the data"]),
    ],
)
def test_lines_as_they_were_printed(pasted: str, printed: List[str]) -> None:
    """Margins, collectors' prefixes and breaks are taken off a pasted text; a break that nothing explains stays."""
    found = PastedLines(whole=True).of(0, pasted.encode().splitlines(keepends=True))
    assert [one.text for one in found] == printed
    assert [one.number for one in found] == list(range(1, len(printed) + 1))
