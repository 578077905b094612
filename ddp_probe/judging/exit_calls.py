"""By which exit call a rank left its program, and which exception it hid so."""

from ddp_probe.reading.job_line import job_line
from ddp_probe.reading.model import LoggedProcess
from ddp_probe.wording.text import say
from ddp_probe.wording.words import at, place, quoted

_CHARACTERS = 160


def by_exit_call(process: LoggedProcess) -> str:
    """Return by which exit call a program was left, and which exception that hid; nothing if it was not left so."""
    if process.exit_call is None:
        return ""
    where, caught = place(process.exit_call), process.caught_at_exit
    if caught is None:
        return say("by the exit call at {where}", where=where)
    return say(
        "by the exit call at {where}, in an except clause that had caught {exception}",
        where=where,
        exception=caught.type.rpartition(".")[2],
    )


def fix_of_hidden(process: LoggedProcess) -> str:
    """Return what to do about the exception that an exit call hid; nothing if it hid none."""
    caught = process.caught_at_exit
    if caught is None or process.exit_call is None:
        return ""
    error = ": ".join(filter(None, (caught.type.rpartition(".")[2], caught.message[:_CHARACTERS].rstrip("."))))
    return say(
        "Fix what failed{at}: {error}. To see its traceback, let it end the rank: remove the exit call at {where}.",
        at=at(job_line(caught.frames)),
        error=quoted(error),
        where=place(process.exit_call),
    )
