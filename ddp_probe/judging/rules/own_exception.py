"""The first exception that does not report the loss of a peer: the job's own, which no other rule knows."""

from typing import Iterator, List, Optional

from ddp_probe.judging.printed import root_cause
from ddp_probe.judging.rule import LOW, MEDIUM, UNKNOWN, Finding, Rule, failed
from ddp_probe.judging.rules import first_to_fail
from ddp_probe.judging.vendor_words import CARDS, COMMUNICATION
from ddp_probe.judging.waiting import TIMED_OUT
from ddp_probe.judging.who import ranks, ranks_of
from ddp_probe.reading.job_line import nested_line
from ddp_probe.reading.model import Failed, Run
from ddp_probe.shared.mask_forms import Expression
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import cut, named, place, quoted

# Exceptions from these are about the machine, the versions or the other ranks: they need a separate rule.
_LIBRARY = Expression(r"[/\\](?:torch|torch_\w+|mmengine|mmcv|deepspeed|apex|horovod)[/\\]")
_SYSTEM = Expression(
    r"NCCL|nccl|gloo|[Cc]uda|CUDA|ProcessGroup|process group|[Rr]endezvous|TCPStore|[Ss]tate_dict|\.so\b|[Dd]evice|SIG[A-Z]{3,4}\b|[Mm]emory"
    r"|%s|%s" % (CARDS, COMMUNICATION)
)
# A program's code nearly always raises these: they count even if a listing has lost the frames.
_PLAIN = ("KeyError", "IndexError", "NameError", "UnboundLocalError", "ZeroDivisionError", "JSONDecodeError", "RecursionError")
_NOT_OWN = (
    "ImportError",
    "ModuleNotFoundError",
    "MemoryError",
    "OutOfMemoryError",
    "SystemExit",
    "ExceptionGroup",
    "DistBackendError",
    "DistNetworkError",
)
# The place where the code met a file or another machine, which may do otherwise the next time.
_FAULTS = (
    "OSError",
    "IOError",
    "ConnectionError",
    "ConnectionResetError",
    "ConnectionRefusedError",
    "ConnectionAbortedError",
    "BrokenPipeError",
    "TimeoutError",
    "HTTPError",
    "URLError",
    "ReadTimeout",
    "ConnectTimeout",
    "IncompleteRead",
    "ChunkedEncodingError",
    "BlockingIOError",
    "InterruptedError",
)

_ABSENT = Expression(r"No module named '(?P<module>(?!torch\b|mm\w+|amp_C|\w+_(?:C|cuda|ext)\b)\w+)'$")

RULE = Rule(
    id="DDP623",
    slug="own-exception",
    cause="own_exception",
    title="An exception in the job's own code came first; what other ranks report follows from it.",
    symptom="The same traceback of the job's own code on all ranks, or one among many about closed connections.",
    evidence="The first exception that is not about another rank, with the last line of the job in its traceback.",
    remedy="Fix what failed at that line; the other ranks' exceptions follow from it.",
    restart="no",  # The same code meets the same values; after a fault of a file or a network: unknown.
    last_resort=True,
    needs_all=True,
    yields_to=("rank-left-while-others-wait",),
)


def check(run: Run) -> Iterator[Finding]:
    """Find the first exception that a probe recorded in a distributed job, unless first-to-fail names the rank that the others lost."""
    fatal = [failure for failure in run.failures if failure.process is not None and failure.fatal and failure.uncaught]
    own = next((failure for failure in fatal if not failure.consequence), None)
    if own is None or own.process is None or own.process.alone or not _is_own(own) or any(True for _ in first_to_fail.check(run)):
        return
    alike = [failure for failure in fatal if failure.text == own.text and failure.site == own.site]
    yield _found(own, alike, [failure for failure in fatal if failure.consequence], ranks(failure.process for failure in alike), MEDIUM)


def read(run: Run) -> Iterator[Finding]:
    """Find the first exception of a plain log, if the log shows several ranks."""
    fatal = [failure for failure in run.failures if failure.process is None and failure.fatal and failure.uncaught]
    own = next((failure for failure in fatal if failure.type and not failure.consequence), None)
    lost = [failure for failure in fatal if failure.consequence]
    if own is None or not (lost or own.rank is not None) or not _is_own(own):
        return
    alike = [failure for failure in fatal if failure.text == own.text and failure.site == own.site]
    yield _found(own, alike, lost, _printed(alike, lost), LOW)


def _found(own: Failed, alike: List[Failed], lost: List[Failed], guilty: List[int], confidence: str) -> Finding:
    losers, missing = _losers(lost, guilty), _missing(own)
    message = own.said(200) if own.inside else cut(own.text, 200)
    error, where = quoted(message.rstrip(".")), place(own.site)
    if losers:
        verdict = say(
            "{who:capital} failed first, with {error} at {where}; an exception in the job's own code; {losers} lost the connection.",
            who=named(guilty),
            error=error,
            where=where,
            losers=losers,
        )
    else:
        verdict = say(
            "{who:capital} failed with {error} at {where}; an exception in the job's own code.",
            who=named(guilty),
            error=error,
            where=where,
        )
    follow = say("; the other ranks' exceptions follow from it") if losers else ""
    remedy = say("Fix what failed at {where}{follow}.", where=where, follow=follow)
    if missing:
        remedy = say(
            "Install {package} where these ranks run, or correct its name at {where}{follow}.",
            package=missing,
            where=where,
            follow=follow,
        )
    return RULE.found(
        ranks=guilty,
        verdict=verdict,
        evidence=[failed(failure) for failure in [own, *lost[:2]]],
        when=own.when,
        explains=[*alike, *lost],
        confidence=confidence,
        remedy=remedy,
        restart=UNKNOWN if own.type.rpartition(".")[2] in _FAULTS else "",
    )


def _is_own(failure: Failed) -> bool:
    """Tell whether the job's code or data led to the exception, and not the machine, the versions or the other ranks."""
    if not failure.frames and failure.process is None:
        return failure.type.rpartition(".")[2] in _PLAIN and not _SYSTEM.search(failure.text)
    if failure.process is not None and failure.site is not None and _missing(failure):
        return True
    if not failure.frames or failure.site is None or failure.type.rpartition(".")[2] in _NOT_OWN:
        return False
    if failure.process is not None and nested_line(failure.message) is not None:
        words = failure.inside.rpartition(", at ")[0]  # Without the place: a folder may be named after a card.
        return not (_SYSTEM.search(words) or TIMED_OUT.search(words))
    return not (_LIBRARY.search(failure.frames[-1].file) or _SYSTEM.search(failure.text) or TIMED_OUT.search(failure.text))


def _missing(failure: Failed) -> str:
    """Return the package that is not installed, if the exception says so; a part of a package that is there is a matter of versions."""
    match = _ABSENT.match(failure.message) if failure.type.rpartition(".")[2] == "ModuleNotFoundError" else None
    return match["module"] if match is not None else ""


def _printed(alike: List[Failed], lost: List[Failed]) -> List[int]:
    """Return the ranks that printed it; if that is not known, the rank that the launcher names as the first to fail."""
    ranks = sorted(set(ranks_of(alike)))
    return ranks or root_cause(failure.text for failure in lost)


def _losers(lost: List[Failed], guilty: List[int]) -> Optional[Text]:
    others = sorted(set(ranks_of(lost)) - set(guilty))
    return named(others) if others else None
