"""What a run leaves open where no rule found a cause: ranks without a file, without an end, or with a failure that nobody knows."""

from collections import Counter
from typing import Dict, Iterator, List, Sequence, Set, Tuple

from ddp_probe.diagnose._waits import stood
from ddp_probe.diagnose.rule import Undecided
from ddp_probe.diagnose.words import clock, named
from ddp_probe.read.failures import INTERRUPTED
from ddp_probe.read.model import Call, Failed, Process, Run


def open_questions(run: Run, told: Sequence[Undecided]) -> List[Undecided]:
    """Return why a run cannot be called clear, beyond what the rules have told."""
    known = {id(failure) for answer in told for failure in answer.explains}
    asked = [*_nothing(run), *_missing(run), *_failed(run, known), *_interrupted(run), *_waiting(run), *_no_end(run), *_exit_codes(run, known)]
    return asked or [*_texts(run), *([] if told else _launch(run))]


def _nothing(run: Run) -> Iterator[Undecided]:
    if run.processes or run.texts:
        return
    failures = [launcher.end.failure for launcher in run.launchers if launcher.end is not None and launcher.end.failure is not None]
    told = ["its launcher failed with %s: %s" % (f.type.rpartition(".")[2], f.message.strip().split("\n", 1)[0][:200]) for f in failures[:1]]
    what = told[0] if told else "there is only its launcher's" if run.launchers else "there is none that can be read"
    yield Undecided("no-rank-wrote", "No rank left a file: %s." % what)


def _missing(run: Run) -> Iterator[Undecided]:
    if run.missing and run.processes:
        yield Undecided("missing-ranks", "%s left no file, of %s that there should be." % (_subject(run.missing), run.expected))


def _failed(run: Run, known: Set[int]) -> Iterator[Undecided]:
    """Tell the first failures that no rule knows, alike ones of several ranks in one sentence."""
    fatal = [failure for failure in run.failures if failure.fatal and id(failure) not in known and (failure.process or failure.uncaught)]
    if known and all(failure.consequence for failure in fatal):
        return
    own = [failure for failure in fatal if not failure.consequence] or [failure for failure in fatal if failure.consequence != INTERRUPTED]
    for (text, site), alike in _alike(own)[:3]:
        ranks = sorted({failure.rank for failure in alike if failure.rank is not None})
        who = _subject(ranks) if ranks else alike[0].at.file
        place = " at %s" % site if site else " (%s:%d)" % alike[0].at
        yield Undecided("unrecognised-failure", "%s failed with %s%s, which no rule can name the cause of." % (who, text, place))


def _interrupted(run: Run) -> Iterator[Undecided]:
    """Tell where each rank stood when a person ended the job: that is where it hung, if it did."""
    stopped = [failure for failure in run.failures if failure.consequence == INTERRUPTED and failure.process is not None]
    for where, alike in _places(stopped)[:6]:
        yield Undecided("interrupted", "%s interrupted %s." % (_subject(sorted(f.rank for f in alike if f.rank is not None), "was", "were"), where))


def _places(failures: Sequence[Failed]) -> List[Tuple[str, List[Failed]]]:
    groups: Dict[str, List[Failed]] = {}
    for failure in failures:
        groups.setdefault(stood(failure), []).append(failure)
    return list(groups.items())


def _launch(run: Run) -> Iterator[Undecided]:
    """Tell of a launch that failed although each rank seems well."""
    for launcher in run.launchers:
        failure = launcher.end.failure if launcher.end is not None else None
        if failure is not None:
            said = failure.message.strip().split("\n", 1)[0][:200]
            yield Undecided("launch-failed", "The launcher on %s failed with %s: %s" % (launcher.host, failure.type.rpartition(".")[2], said))


def _alike(failures: Sequence[Failed]) -> List[Tuple[Tuple[str, str], List[Failed]]]:
    groups: Dict[Tuple[str, str], List[Failed]] = {}
    for failure in failures:
        site = "%s:%d" % (failure.site.file, failure.site.line) if failure.site else ""
        groups.setdefault((failure.text.strip().split("\n", 1)[0][:200], site), []).append(failure)
    return list(groups.items())


def _waiting(run: Run) -> Iterator[Undecided]:
    """Tell who is inside a call that did not come back, and since when."""
    groups: Dict[Tuple[str, str], List[Tuple[Process, Call]]] = {}  # type: ignore[type-arg]  # calls of any kind
    for process in run.processes:
        call = process.waiting
        if call is not None:
            site = "%s:%d" % (call.site.file, call.site.line) if call.site else "an unknown line"
            groups.setdefault((call.name, site), []).append((process, call))
    for (name, site), inside in groups.items():
        since = min(call.when for _, call in inside)
        ranks = sorted(process.rank for process, _ in inside if process.rank is not None)
        yield Undecided("waiting", "%s did not come back from %s at %s, since %s." % (_subject(ranks), name, site, clock(since)))


def _no_end(run: Run) -> Iterator[Undecided]:
    alive = sorted(run.running)
    if alive:
        yield Undecided("still-running", "%s still %s." % (_subject(alive), "runs" if len(alive) == 1 else "run"))
    lost = [process.rank for process in run.processes if process.end is None and process.rank is not None and process.rank not in run.running]
    if lost and not run.failures:
        signals = Counter(process.signal for process in run.processes if process.signal)
        how = " (%s)" % ", ".join(sorted(signals)) if signals else ": killed, or still running elsewhere"
        yield Undecided("no-end", "%s no end line%s." % (_subject(lost, "has", "have"), how))


def _exit_codes(run: Run, known: Set[int]) -> Iterator[Undecided]:
    codes: Dict[int, List[int]] = {}
    for death in run.deaths:
        if id(death) in known or death.signal == "SIGTERM":
            continue
        if death.exit_code not in (None, 0) and death.rank is not None and not any(f.rank == death.rank and f.fatal for f in run.failures):
            codes.setdefault(death.exit_code or 0, []).append(death.rank)
    for code, ranks in sorted(codes.items()):
        yield Undecided("exit-code", "%s ended with exit code %d without an exception that the probe saw." % (_subject(ranks), code))


def _texts(run: Run) -> Iterator[Undecided]:
    if run.texts and not run.processes:
        yield Undecided("plain-log", "The log holds no failure that is known, and without the probe's files nothing shows that all ranks did well.")


def _subject(ranks: Sequence[int], one: str = "", many: str = "") -> str:
    """Begin a sentence with ranks, and with the verb that fits their number."""
    who = named(ranks)
    verb = one if len(ranks) == 1 else many
    return who[:1].upper() + who[1:] + (" " + verb if verb else "")
