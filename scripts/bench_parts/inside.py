"""What the probe costs inside a process: a line written, a model looked at, a call passed on."""

import os
import sys
import time
import types
from pathlib import Path
from typing import Any, Callable, Dict, Iterator

from bench_parts.rows import Question, Sample, answer, interleave, unanswered
from bench_parts.starts import REPO

_LINES, _CALLS, _PARAMETERS = 300, 20_000, 10_000

EVENT = Question(
    "event",
    "one event written",
    "cost",
    "µs",
    20.0,
    "%d times Recorder.point(dist.init_process_group, 8 fields) into a file, divided." % _LINES,
    "The line is on disk before the call that may hang: one system call a line cannot be spared, and here it takes %.0f µs by itself.",
)
BEGIN_END = Question("event-span", "a call's two lines, begin and end", "cost", "µs", None, "The same with begin and Span.end.")
WRITE = Question("event-write", "of which the system calls alone (fstat and os.write)", "cost", "µs", None, "The same bytes, with no code of ours.")
STATE = Question(
    "device-state",
    "one line of device.state on a CPU rank",
    "cost",
    "µs",
    150.0,
    "%d times facts.device_memory, facts.host_state and Recorder.point, divided. Each card adds one call of its allocator's counters." % _LINES,
)
SNAPSHOT = Question(
    "snapshot",
    "placement snapshot of 10 000 parameters, against a bare loop",
    "ratio",
    "ms",
    2.0,
    "facts.placement.snapshot of 5 000 blocks of Linear and ReLU, against `for _, p in model.named_parameters(): p.device`.",
    "The snapshot also reads shape, dtype and requires_grad, counts them, and digests every name.",
)
WRAPPED = Question(
    "call",
    "a wrapped call, against a bare one",
    "difference",
    "µs",
    None,
    "%d calls of an empty function, divided; the watch on it does nothing." % _CALLS,
)
SWITCHED_OFF = Question(
    "call-off",
    "the same with the probe switched off",
    "difference",
    "µs",
    None,
    "As in a forked child, or through what restore() could not reach.",
)


def timed(work: Callable[[], Any], factor: float) -> Sample:
    """Run it once; its wall and CPU time, multiplied."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return Sample((time.perf_counter() - wall) * factor, (time.process_time() - cpu) * factor)


# --- one event ----------------------------------------------------------------------------------------------------------


def event_rows(folder: Path, rounds: int) -> Iterator[Dict[str, Any]]:
    """Yield what a line costs, and what the system calls in it cost."""
    from ddp_probe.shared.schema import DeviceState
    from ddp_probe.traced.device_states import HostReader, device_memory
    from ddp_probe.traced.record import Recorder

    reader = HostReader()

    def state() -> None:
        current, devices = device_memory()
        recorder.point(DeviceState(when="periodic", current=current, devices=devices, system=reader.state()))

    recorder = Recorder(str(folder), lambda: "rank00000", _envelope(), max_bytes=1 << 32, echo="off")
    event = _event()
    recorder.point(event)
    assert recorder.path is not None
    size = Path(recorder.path).stat().st_size
    per_line = 1e6 / _LINES
    found = interleave(
        {
            "event": lambda: timed(lambda: [recorder.point(event) for _ in range(_LINES)], per_line),
            "span": lambda: timed(lambda: [recorder.begin(event).end(event) for _ in range(_LINES)], per_line),
            "state": lambda: timed(lambda: [state() for _ in range(_LINES)], per_line),
            "write": lambda: _bare_writes(folder / "bare", b"x" * (size - 1) + b"\n", per_line),
        },
        rounds,
    )
    recorder.close()
    write = min(sample.wall for sample in found["write"])
    yield answer(EVENT._replace(limit=EVENT.limit % write), [], found["event"])
    yield answer(BEGIN_END, [], found["span"])
    yield answer(WRITE, [], found["write"])
    yield answer(STATE, [], found["state"])


def _bare_writes(path: Path, line: bytes, factor: float) -> Sample:
    number = os.open(str(path), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        return timed(lambda: [(os.fstat(number), os.write(number, line)) for _ in range(_LINES)], factor)
    finally:
        os.close(number)


def _envelope() -> Dict[str, Any]:
    return {"rank": 0, "local_rank": 0, "world_size": 8, "host": "node", "pid": 0, "run": "bench"}


def _event() -> Any:
    from ddp_probe.shared import schema

    site = schema.Site(file="train.py", line=41, function="main")
    return schema.InitProcessGroup(backend="gloo", init_method="env://", site=site, master_addr="127.0.0.1", master_port="29500")


# --- the placement snapshot ---------------------------------------------------------------------------------------------


def snapshot_rows(rounds: int) -> Iterator[Dict[str, Any]]:
    """Yield the cost of a look at a model, by the model and the bare loop that the tests use."""
    sys.path.insert(0, str(REPO / "tests" / "facts"))
    try:
        import placement_cost
    except ImportError:
        yield unanswered(SNAPSHOT, "Not measured: torch does not import here.")
        return
    finally:
        sys.path.pop(0)
    model = placement_cost.model(_PARAMETERS)
    found = interleave(
        {"off": lambda: timed(lambda: placement_cost.bare_loop(model), 1e3), "on": lambda: timed(lambda: placement_cost.snapshot(model), 1e3)}, rounds
    )
    yield answer(SNAPSHOT, found["off"], found["on"])


# --- a wrapped call -----------------------------------------------------------------------------------------------------


def call_rows(rounds: int) -> Iterator[Dict[str, Any]]:
    """Yield the price of the way through a wrapper."""
    from ddp_probe.traced.patching import Observer, PatchRegistry, Target, switch

    def bare() -> None:
        """Do nothing."""

    module = types.ModuleType("bench_target")
    module.f = lambda: None  # type: ignore[attr-defined]
    sys.modules["bench_target"] = module
    registry = PatchRegistry()
    registry.apply(Target("bench_target", "f"), Observer())
    wrapped = module.f  # type: ignore[attr-defined]

    def off() -> Sample:
        switch.on = False
        try:
            return _calls(wrapped)
        finally:
            switch.on = True

    found = interleave({"bare": lambda: _calls(bare), "on": lambda: _calls(wrapped), "off": off}, rounds)
    registry.undo()
    del sys.modules["bench_target"]
    yield answer(WRAPPED, found["bare"], found["on"])
    yield answer(SWITCHED_OFF, found["bare"], found["off"])


def _calls(f: Callable[[], Any]) -> Sample:
    def work() -> None:
        for _ in range(_CALLS):
            f()

    return timed(work, 1e6 / _CALLS)
