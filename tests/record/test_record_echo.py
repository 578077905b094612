"""What a person sees, and what the job's own logging notices."""

import json
import re
from typing import Any, Callable

import pytest

_EVENTS = """
recorder = make(echo=%r)
recorder.begin(schema.Load(site=schema.Site("train.py", 9, "main"))).error(schema.Failure(type="EOFError"))
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
    """A job that configures structlog before or after our lines gets the real one whole, and its settings reach none of our lines."""
    done = program("""
recorder = make()
recorder.point(schema.SetDevice())
assert "structlog" not in sys.modules
import structlog
from structlog import contextvars, dev, processors, stdlib, testing
assert not structlog.is_configured()
assert callable(structlog.get_logger().info)
structlog.configure(processors=[], wrapper_class=None, cache_logger_on_first_use=False)
contextvars.bind_contextvars(job="x")
with testing.capture_logs() as seen:
    recorder.point(schema.SetDevice())
assert seen == [] and recorder.lines == 3 and "job" not in open(recorder.path).read()
""")
    assert done.returncode == 0, done.stderr


def test_an_event_loads_no_terminal_library(program: Callable[..., Any]) -> None:
    """The probe's copy of structlog brings neither rich nor pygments, and does not stand under structlog's own name."""
    done = program("""
recorder = make(echo="all")
recorder.begin(schema.Load()).error(schema.Failure(type="EOFError"))
recorder.warn("text")
assert recorder.lines == 4 and "ddp_probe.traced.record.structlog" in sys.modules
loaded = sorted({"structlog", "rich", "pygments", "wrapt"} & set(sys.modules))
os._exit(len(loaded))
""")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("first", ["probe", "job"])
def test_the_jobs_structlog_keeps_its_rich_tracebacks(program: Callable[..., Any], first: str) -> None:
    """Whoever imports structlog first, the job's formats exceptions with rich, and shares no module, setting or logger with the probe's copy."""
    pytest.importorskip("rich")
    ours, theirs = "recorder = make(); recorder.point(schema.SetDevice())\n", "import structlog, structlog.dev\n"
    done = program(
        (ours + theirs if first == "probe" else theirs + ours)
        + """
copy = sys.modules["ddp_probe.traced.record.structlog"]
assert structlog.dev.rich is not None and copy.dev.rich is None
assert structlog.dev is not copy.dev and structlog.DropEvent is not copy.DropEvent
assert not structlog.is_configured() and not copy.is_configured()
assert [name for name in sys.modules if name.startswith("structlog") and sys.modules[name].__name__ != name] == []
"""
    )
    assert done.returncode == 0, done.stderr


def test_threads_that_import_structlog_and_rich_meanwhile_get_their_own(program: Callable[..., Any]) -> None:
    """A thread that imports structlog and rich while the copy is loaded gets both whole."""
    pytest.importorskip("rich")
    done = program("""
import threading
seen = []
def theirs():
    import structlog.dev, rich.console
    seen.append(structlog.dev.rich is rich)
threads = [threading.Thread(target=theirs) for _ in range(8)]
for thread in threads[:4]: thread.start()
make().point(schema.SetDevice())
for thread in threads[4:]: thread.start()
for thread in threads: thread.join()
assert seen == [True] * 8
""")
    assert done.returncode == 0, done.stderr


def test_a_line_is_json_that_jq_and_grep_take(program: Callable[..., Any], files: Callable[..., Any]) -> None:
    """A line begins with the event's name without blanks, so that a fixed string finds it."""
    program("make().point(schema.Wrap(wrapper='DDP'))")
    line = files()[0].read_text(encoding="utf-8").splitlines()[1]
    assert line.startswith('{"event":"ddp.init","phase":"point"')
    assert json.loads(line)["wrapper"] == "DDP"
