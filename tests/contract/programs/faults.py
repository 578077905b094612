"""Lets every method of every probe fail, in many ways, on calls that return and on calls that raise; prints what reached the job."""

import json
import sys

import stand_ins
from stand_ins import ORIGINAL

from ddp_probe.traced.patching.guard import guard, here

METHODS = ("before", "after", "raised", "begin", "end", "error")


class UnspeakableError(Exception):
    """A fault that cannot even be printed."""

    def __str__(self):
        raise RuntimeError("no words")

    __repr__ = __str__


class JobError(Exception):
    """The job's own."""


FAULTS = (RecursionError, MemoryError, StopIteration, UnspeakableError)
ENDS = (None, JobError("the job's"), KeyboardInterrupt(), SystemExit(3), GeneratorExit(), StopIteration(1), RecursionError("the job's"))
found = []


def check(truth, *what):
    """Keep what is wrong."""
    if not truth and len(found) < 30:
        found.append(" ".join(str(item) for item in what))


def raiser(fault):
    """Return a method that fails."""

    def fail(*args, **kwargs):
        raise fault("injected")

    return fail


def one_call(row, end, *what):
    """Call a target once; the original is called once, and its answer or its exception comes back as the same object."""
    ORIGINAL.calls.clear()
    ORIGINAL.answer, ORIGINAL.raises = object(), end
    before = () if end is None else (end.__cause__, end.__context__, end.__suppress_context__, end.args)
    try:
        result, raised = row.call(row.plain()), None
    except BaseException as exc:
        result, raised = None, exc
    check(len(ORIGINAL.calls) == 1, row.name, *what, "called", len(ORIGINAL.calls), "times")
    check(raised is end, row.name, *what, "raised", type(raised).__name__)
    check(end is not None or result is ORIGINAL.answer, row.name, *what, "answered something else")
    if raised is end is not None:
        check((end.__cause__, end.__context__, end.__suppress_context__, end.args) == before, row.name, *what, "changed the exception")
        end.__traceback__ = None
    check(not here.thread.busy and not here.thread.open, row.name, *what, "left something open")


def faults_in(path):
    """Return the probe.fault lines of the file."""
    with open(path) as file:
        return [line for line in map(json.loads, file) if line["event"] == "probe.fault"]


def sweep(rows):
    """Every row and method: one fault with every end of the call, every fault with two."""
    for row in rows:
        for method in METHODS:
            for fault, end in [(RuntimeError, end) for end in ENDS] + [(fault, end) for fault in FAULTS for end in ENDS[:2]]:
                setattr(row.observer, method, raiser(fault))
                guard.forget()
                one_call(row, end, method, fault.__name__, type(end).__name__)
                delattr(row.observer, method)


def broken_recorder(rows, session):
    """Every row, while the recorder itself fails."""
    for method in ("begin", "point", "model"):
        setattr(session.recorder, method, raiser(RuntimeError))
        for row in rows:
            for end in ENDS[:2]:
                guard.forget()
                one_call(row, end, "recorder." + method)
        delattr(session.recorder, method)


def five(rows, session):
    """A probe that fails five times says so five times and is off; the sixth call runs none of it."""
    for name in stand_ins.probes():
        row = next(row for row in rows if row.observer.name == name)
        ran = []
        before = len(faults_in(session.recorder.path))
        guard.forget()
        row.observer.before = lambda call, ran=ran: ran.append(1) or raiser(RuntimeError)()
        for _ in range(8):
            one_call(row, None, "five")
        del row.observer.before
        written = faults_in(session.recorder.path)[before:]
        check([(line["probe"], line["count"]) for line in written] == [(name, count) for count in range(1, 6)], name, "wrote", written)
        check([line.get("switched_off", False) for line in written] == [False] * 4 + [True], name, "switched off", written)
        check(all(line["failure"]["type"].endswith("RuntimeError") for line in written), name, "type", written)
        check(len(ran) == 5, name, "ran", len(ran), "times")


def main():
    """Print what is wrong, and how many calls were made."""
    session = stand_ins.arm()
    rows = stand_ins.rows(session)
    session.recorder.start()
    sweep(rows)
    broken_recorder(rows, session)
    five(rows, session)
    guard.forget()
    with open(sys.argv[1], "w") as file:
        json.dump({"found": found, "targets": len(rows), "probes": sorted({row.observer.name for row in rows})}, file)


if __name__ == "__main__":
    main()
