"""A thread of a rank ended with an exception that nothing caught, and the rank went on without it."""

from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from ddp_probe.judging.rule import HIGH, LOW, WARNING, Finding, Rule, first_of, shown
from ddp_probe.judging.who import ranks_of
from ddp_probe.reading.job_line import inside, job_line
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import LoggedProcess, Run, one_line
from ddp_probe.shared import schema
from ddp_probe.shared.schema import Failure, Site
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import listed, named, place, quoted

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
    restart="no",  # The same code runs in the thread again.
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
    def says(self) -> Text:
        """The exception and where it was raised."""
        failure = self.failure
        nested = inside(failure.message, failure.cause_message, failure.cause)
        message = quoted(one_line(failure.type, failure.message, nested, _LONGEST).rstrip("."))
        site = self.line or failure.raised_at
        return message if site is None else say("{message} at {where}", message=message, where=place(site))


def check(run: Run) -> Iterator[Finding]:
    """Look at the threads of each rank, equal exceptions together."""
    alike: Dict[Tuple[str, bool, bool], List[_Ended]] = {}
    for ended in _all(run):
        alike.setdefault((ended.says, ended.line is None, ended.call.begin.after_main), []).append(ended)
    for group in list(alike.values())[:_MOST]:
        yield _finding(group)


def _all(run: Run) -> Iterator[_Ended]:
    for process in run.processes:
        for call in process.calls(schema.ThreadFailed):
            if call.begin.failure is not None:
                yield _Ended(process, call, call.begin.failure)


def _finding(group: List[_Ended]) -> Finding:
    """Return what is known of threads that ended alike."""
    ranks = sorted(set(ranks_of(ended.process for ended in group)))
    names = sorted({ended.call.begin.thread for ended in group if ended.call.begin.thread})[:_MOST]
    is_librarys, after_main = group[0].line is None, group[0].call.begin.after_main
    most = max(ended.call.begin.count for ended in group)
    others = ""
    if most > len(group):
        others = say("; at least {count} threads of one process ended so", count=most)
    facts = {
        "who": named(ranks) if ranks else say("the process"),
        "names": say(" ({names})", names=listed(names)) if names else "",
        "exception": group[0].says,
        "in_library": say(", in code of a library alone") if is_librarys else "",
        "when": say(", after the main thread had ended") if after_main else "",
        "others": others,
    }
    verdict = say("A thread of {who}{names} ended with {exception}{in_library}{when}; the job went on{others}.", **facts)
    if len(group) > 1:
        verdict = say("Threads of {who}{names} ended with {exception}{in_library}{when}; the job went on{others}.", **facts)
    return RULE.found(
        ranks=ranks,
        verdict=verdict,
        evidence=first_of([shown(ended.call, ended.says) for ended in group]),
        when=min(ended.call.when for ended in group),
        confidence=LOW if is_librarys or after_main else HIGH,
    )
