"""A thread of a rank ended with an exception that nothing caught, and the rank went on without it."""

from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from ddp_probe.judging.rule import HIGH, LOW, WARNING, Finding, Rule, first_of, shown
from ddp_probe.reading.job_line import inside, job_line
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import LoggedProcess, Run, one_line
from ddp_probe.shared import schema
from ddp_probe.shared.schema import Failure, Site
from ddp_probe.wording.words import named, place

_MOST = 3  # Exceptions that are told one by one.
_LONGEST = 200

RULE = Rule(
    id="DDP699",
    slug="thread-ended",
    cause="own_exception",
    title="A thread of a rank ended with an exception, and the rank went on without it.",
    symptom="'Exception in thread …' on stderr and exit code 0; or what the thread had to bring, write or send is missing later.",
    evidence=(
        "thread.failed has the thread's name and its exception, as threading.excepthook got it. It says nothing of what else went wrong in the "
        "run. A thread without a line of the job, or one that ended after the main thread, is often a library's that was ended at exit. "
        "A job that sets threading.excepthook itself, after torch is imported and without calling the hook before, hides such threads."
    ),
    remedy=(
        "Fix what failed at that line. If the rank must not go on without the thread, catch the exception in it, hand it to the main thread "
        "(queue.Queue, or the result() of concurrent.futures) and raise it there."
    ),
    needs=("thread.failed",),
    severity=WARNING,
)


class _Ended(NamedTuple):
    process: LoggedProcess
    call: LoggedCall[schema.ThreadFailed]
    failure: Failure

    @property
    def line(self) -> Optional[Site]:
        """The line of the job, if the thread was in one."""
        return job_line(self.failure.frames)

    @property
    def says(self) -> str:
        """The exception and where it was raised."""
        failure = self.failure
        text = one_line(failure.type, failure.message, inside(failure.message, failure.cause_message, failure.cause), _LONGEST).rstrip(".")
        site = self.line or failure.raised_at
        return text + (" at %s" % place(site) if site is not None else "")


def check(run: Run) -> Iterator[Finding]:
    """Look at the threads of each rank, equal exceptions together."""
    alike: Dict[Tuple[str, bool, bool], List[_Ended]] = {}
    for ended in _all(run):
        alike.setdefault((ended.says, ended.line is None, ended.call.begin.after_main), []).append(ended)
    for (says, is_librarys, after_main), group in list(alike.items())[:_MOST]:
        yield _finding(says, is_librarys, after_main, group)


def _all(run: Run) -> Iterator[_Ended]:
    for process in run.processes:
        for call in process.calls(schema.ThreadFailed):
            if call.begin.failure is not None:
                yield _Ended(process, call, call.begin.failure)


def _finding(says: str, is_librarys: bool, after_main: bool, group: List[_Ended]) -> Finding:
    ranks = sorted({ended.process.rank for ended in group if ended.process.rank is not None})
    names = ", ".join(sorted({ended.call.begin.thread for ended in group if ended.call.begin.thread})[:_MOST])
    who = "%s of %s%s" % ("A thread" if len(group) == 1 else "Threads", named(ranks) if ranks else "the process", " (%s)" % names if names else "")
    of_library = ", in code of a library alone" if is_librarys else ""
    when = ", after the main thread had ended" if after_main else ""
    most = max(ended.call.begin.count for ended in group)
    others = "; at least %d threads of one process ended so" % most if most > len(group) else ""
    return RULE.found(
        ranks=ranks,
        verdict="%s ended with %s%s%s; the job went on%s." % (who, says, of_library, when, others),
        evidence=first_of([shown(ended.call, ended.says) for ended in group]),
        when=min(ended.call.when for ended in group),
        confidence=LOW if is_librarys or after_main else HIGH,
    )
