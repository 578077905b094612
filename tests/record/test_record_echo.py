"""What a person sees, and what the job's own logging notices."""

import json
import re
from typing import Any, Callable

import pytest

_EVENTS = """
recorder = make(echo=%r)
recorder.begin(schema.Load(site=schema.Site("train.py", 9, "main"))).fail(schema.Failure(type="EOFError"))
recorder.warn("rank 3: parameters are on\\ncpu")
"""


@pytest.mark.parametrize(
    ("echo", "wanted"),
    [
        ("off", []),
        ("warn", ["ddp_probe: rank 3: parameters are on cpu"]),
    ],
)
def test_a_warning_is_one_line_on_stderr_unless_off(program: Callable[..., Any], echo: str, wanted: Any) -> None:
    """echo=off says nothing; echo=warn says the warning alone, on one line."""
    assert program(_EVENTS % echo).stderr.splitlines() == wanted


def test_echo_all_says_a_line_for_each_event(program: Callable[..., Any]) -> None:
    """echo=all names rank, event and phase, the place of the call, and the exception."""
    lines = program(_EVENTS % "all").stderr.splitlines()
    assert lines[0] == "ddp_probe: rank 3 | checkpoint.load | begin | train.py:9"
    assert re.fullmatch(r"ddp_probe: rank 3 \| checkpoint\.load \| error \| 0\.\d{3} s \| EOFError", lines[1])
    assert lines[2:] == ["ddp_probe: rank 3: parameters are on cpu"]


@pytest.mark.parametrize("how", ["os.close(2)", "r, w = os.pipe(); os.close(r); os.dup2(w, 2)", "os.dup2(os.open('/dev/full', os.O_WRONLY), 2)"])
def test_a_stderr_that_cannot_be_written_to_is_no_fault(program: Callable[..., Any], how: str) -> None:
    """A closed stderr, a pipe without a reader and a full device: the warning is in the file and the program goes on."""
    done = program(how + "\nrecorder = make()\nrecorder.warn('text')\nos._exit(recorder.lines)")
    assert done.returncode == 2


def test_the_jobs_own_structlog_is_left_alone(program: Callable[..., Any]) -> None:
    """The global configuration is not ours: it stays unset, and what the job sets afterwards does not reach our lines."""
    done = program("""
import structlog
recorder = make()
recorder.point(schema.SetDevice())
assert not structlog.is_configured()
structlog.configure(processors=[], wrapper_class=None, cache_logger_on_first_use=False)
structlog.contextvars.bind_contextvars(job="x")
with structlog.testing.capture_logs() as seen:
    recorder.point(schema.SetDevice())
assert seen == [] and recorder.lines == 3 and "job" not in open(recorder.path).read()
""")
    assert done.returncode == 0, done.stderr


def test_structlog_is_not_loaded_before_the_first_event(program: Callable[..., Any]) -> None:
    """A program that never fires a probe pays for neither structlog nor what it brings along."""
    done = program("""
recorder = make()
loaded = sorted({"structlog", "rich", "asyncio", "logging", "wrapt"} & set(sys.modules))
sys.stderr.write(repr(loaded))
""")
    assert done.stderr == "[]"


def test_a_job_without_structlog_trains_on(program: Callable[..., Any], clean_env: Callable[..., Any]) -> None:
    """A dependency that cannot be imported is said once and raises nothing."""
    done = program(
        "sys.modules['structlog'] = None\nrecorder = make()\nfor _ in range(3): recorder.begin(schema.Load()).end()\nos._exit(recorder.lost)",
        env=clean_env(DDP_PROBE_STRICT=None),
    )
    assert done.returncode == 6
    assert len(done.stderr.splitlines()) == 1
    assert "structlog does not import" in done.stderr


def test_a_line_is_json_that_jq_and_grep_take(program: Callable[..., Any], files: Callable[..., Any]) -> None:
    """A line begins with the event's name without blanks, so that a fixed string finds it."""
    program("make().point(schema.Wrap(wrapper='DDP'))")
    line = files()[0].read_text(encoding="utf-8").splitlines()[1]
    assert line.startswith('{"event":"ddp.init","phase":"point"')
    assert json.loads(line)["wrapper"] == "DDP"
