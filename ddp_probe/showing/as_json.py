"""The form for programs: one object with a published schema. Keys may be added; no key is removed or changes its meaning."""

import json
import sys
from datetime import datetime, timezone
from typing import Any, Dict, Iterator, List, Optional, Union

import msgspec

from ddp_probe.judging import late_ranks
from ddp_probe.judging.judge import Diagnosis
from ddp_probe.judging.restart import advice
from ddp_probe.judging.rule import Evidence, Finding
from ddp_probe.reading import bundled
from ddp_probe.reading.model import Run
from ddp_probe.shared.schema import Site, in_order
from ddp_probe.showing import inventory, remedies, safe
from ddp_probe.showing.rank_state import RankState, rank_states
from ddp_probe.wording.text import commands, fact_of

if sys.version_info >= (3, 9):
    from typing import Annotated
else:  # typing.Annotated is new in Python 3.9
    from typing_extensions import Annotated

VERSION = 1
ADDRESS = "urn:ddp-probe:report:%d" % VERSION
"""The schema's own, which is the same wherever the repository is."""
_INDENT = 2
_FACTS = (
    "A value is a number, a text, the list of some ranks, a line {file, line, function}, {bytes}, {seconds}, {time}, a list, or an object "
    "with what a clause names."
)
_LATEST = 1e11  # Seconds; a later time was not written by a clock.


def _doc(text: str) -> msgspec.Meta:
    return msgspec.Meta(description=text)


class EvidenceForm(msgspec.Struct):
    """A line of a log, the line of the job that it refers to, and what it shows."""

    file: Annotated[str, _doc("The path of the log, as given.")]
    line: Annotated[int, _doc("Counted from 1.")]
    site: Annotated[Optional[Site], _doc("The line of the job; null if the log names none.")]
    text: str
    facts: Annotated[Dict[str, Any], _doc("What the text names, by the names that its template has for it. " + _FACTS)]


class FindingForm(msgspec.Struct):
    """One identified cause."""

    id: Annotated[str, _doc("DDP and three digits, never reused for another rule; SITE for rules of a site.")]
    slug: Annotated[str, _doc("The rule's name; never reused for another rule.")]
    cause: Annotated[str, _doc("A key of the vocabulary of causes.")]
    severity: Annotated[str, _doc("error: it ended or hung the job, or will. warning: the job continues, but does not do what it appears to do.")]
    ranks: Annotated[List[int], _doc("The guilty ranks; empty if the cause concerns the whole job, or the ranks are unknown.")]
    verdict: Annotated[str, _doc("One sentence.")]
    evidence: List[EvidenceForm]
    remedy: Annotated[str, _doc("The change to make.")]
    fix: Annotated[str, _doc("The remedy's name for DDP_PROBE_FIX; empty if there is none.")]
    confidence: Annotated[str, _doc("high, medium or low.")]
    consequences: Annotated[List[str], _doc("What followed from it.")]
    facts: Annotated[Dict[str, Any], _doc("What the verdict and the remedy name: verdict, remedy. " + _FACTS)]
    restart: Annotated[str, _doc("What the rule says of a restart: no, yes, elsewhere, after or unknown.")]


class UndecidedForm(msgspec.Struct):
    """A question that the logs do not answer."""

    slug: Annotated[str, _doc("The rule that asks the question, or the question's own name.")]
    because: str
    next: Annotated[str, _doc("What to try next.")]
    commands: Annotated[List[str], _doc("The commands of this package in next, each as a shell takes it.")]
    facts: Annotated[Dict[str, Any], _doc("What the two texts name: because, next. " + _FACTS)]


class InventoryForm(msgspec.Struct):
    """What was read."""

    run: Annotated[str, _doc("The run's name.")]
    began: Annotated[Optional[str], _doc("When its first process began, RFC 3339 in UTC; null if no process wrote a file.")]
    heard: Annotated[Optional[str], _doc("When a process last wrote a line, RFC 3339 in UTC; null if no process wrote a file.")]
    age: Annotated[Optional[float], _doc("Seconds from then to now if no path was given, and this is the newest run; else null.")]
    command: Annotated[List[str], _doc("The words of the command that started it; empty if no process tells it.")]
    launcher: Annotated[str, _doc("What launched the ranks; empty if unknown.")]
    hosts: List[str]
    folders: List[str]
    files: Annotated[List[str], _doc("All files that were read.")]
    lines: int
    bytes: int
    expected: Annotated[Optional[int], _doc("The expected number of ranks; null if unknown.")]
    seen: Annotated[int, _doc("How many processes wrote a file, not counting launchers.")]
    missing: Annotated[List[int], _doc("Ranks that never started or wrote no file.")]
    ends: Annotated[Dict[str, List[int]], _doc("How ranks ended, as in the table, to the list of ranks.")]
    skipped: Annotated[Dict[str, Dict[str, int]], _doc("File to reason to number of skipped lines.")]
    unreadable: Annotated[Dict[str, str], _doc("File or folder to why it could not be read.")]
    unknown: Annotated[Dict[str, int], _doc("Number of events from an unknown version of the probe, by name.")]
    earlier: Annotated[int, _doc("Number of files from earlier generations.")]
    clock_spread: Annotated[Optional[float], _doc("Seconds between the hosts' clocks before alignment.")]
    notes: List[str]


class RankForm(msgspec.Struct):
    """The state of one rank."""

    rank: Optional[int]
    local_rank: Optional[int]
    host: str
    devices: Annotated[str, _doc("The devices of its parameters.")]
    device_ids: Annotated[
        Optional[List[Union[int, str]]], _doc("The numbers of the cards, as given to the wrapper; null if none were given, or nothing was wrapped.")
    ]
    card: Annotated[str, _doc("The current card.")]
    phase: Annotated[str, _doc("How far it got: starting, init, grouped, wrapping, wrapped, loading, saving, closing, closed.")]
    last: Annotated[str, _doc("What it did last: an event, or a call in its ledger.")]
    site: Annotated[str, _doc("The line of the job that made it.")]
    end: Annotated[str, _doc("ended, failed, exit, killed, stopped, running, no end line, no file.")]
    exception: Annotated[Optional[str], _doc("What it failed with; null if it did not, or if that is not known.")]
    exit_code: Annotated[Optional[int], _doc("The code of an exit; null for another end.")]
    signal: Annotated[Optional[str], _doc("The signal that killed or stopped it.")]
    memory: Annotated[str, _doc("The most that it has held on its card; empty unless that tells ranks apart.")]
    waited: Annotated[str, _doc("How much longer it waits in a typical step than a late rank; is late, of that rank; empty if no rank is.")]
    near: Annotated[str, _doc("What is nearly full, with the part in use: its card, its host's control group, /dev/shm; empty if nothing is.")]


class LateForm(msgspec.Struct):
    """The ranks that come last step after step; times are in seconds, typical of a step."""

    ranks: List[int]
    host: Annotated[str, _doc("The host if these are all of its ranks; else empty.")]
    others: Annotated[List[int], _doc("The ranks that they were compared with.")]
    steps: Annotated[int, _doc("How many of the latest steps were compared.")]
    last_in: Annotated[int, _doc("In how many of them one of these ranks came last.")]
    behind: float
    took: Annotated[float, _doc("The whole step.")]
    waited: Annotated[float, _doc("How much longer the others wait.")]
    part: Annotated[str, _doc("The part in which they spend the time: dataloader, forward, backward, optimizer, saving, evaluating or elsewhere.")]
    more: Annotated[float, _doc("How much more they spend there than the others.")]
    usual: Annotated[float, _doc("What the others spend there.")]


class WaitForm(msgspec.Struct):
    """What a rank has spent in the collectives of one line, in the whole run."""

    rank: int
    op: str
    group: Annotated[str, _doc("The same on all ranks of a group.")]
    site: Annotated[Optional[Site], _doc("The line of the job; null if it is not known.")]
    calls: int
    seconds: Annotated[float, _doc("In the calls, or in wait() for their work.")]
    longest: Annotated[float, _doc("The longest of these times.")]


class RemedyForm(msgspec.Struct):
    """A change that DDP_PROBE_FIX made or declined to make."""

    remedy: Annotated[str, _doc("Its name in DDP_PROBE_FIX.")]
    ranks: List[int]
    applied: Annotated[bool, _doc("False if it could not be sure and did nothing.")]
    site: Annotated[Optional[Site], _doc("The line of the job whose call was changed.")]
    before: Annotated[Dict[str, str], _doc("What the job requested, on the first rank.")]
    after: Annotated[Dict[str, str], _doc("What was done instead, on the first rank.")]
    because: str


class CardForm(msgspec.Struct):
    """One card of a host."""

    host: str
    card: Annotated[str, _doc("As torch names it on that host, such as cuda:3; or its address on the bus.")]


class RestartForm(msgspec.Struct):
    """Whether a restart helps if nothing is changed, by the cause and by the attempts before this one."""

    helps: Annotated[
        str,
        _doc(
            "no: the code or its settings fail again. yes: it was chance. elsewhere: it is a host or a card. "
            "after: something has to be freed or waited for first. unknown: none of these is sure."
        ),
    ]
    because: Annotated[str, _doc("One sentence.")]
    hosts: Annotated[List[str], _doc("To be left out, if helps is elsewhere; empty if they are not known.")]
    cards: Annotated[List[CardForm], _doc("To be left out; the rest of their hosts can stay.")]
    checkpoint: Annotated[str, _doc("What the next attempt goes on from; empty if no save is recorded.")]
    attempts: Annotated[List[str], _doc("The runs and starts compared, oldest first, this one last.")]
    facts: Annotated[Dict[str, Any], _doc("What the sentence names: because. " + _FACTS)]


class ReportForm(msgspec.Struct):
    """What report --json prints."""

    schema: Annotated[str, _doc("The $id of this schema, which schema report prints.")] = msgspec.field(name="$schema")
    report: Annotated[int, _doc("Version of this shape.")]
    verdict: Annotated[str, _doc("found, clear or undecided.")]
    findings: Annotated[List[FindingForm], _doc("In order of importance.")]
    undecided: List[UndecidedForm]
    inventory: InventoryForm
    ranks: List[RankForm]
    late: Annotated[Optional[LateForm], _doc("null if no rank is late, or if that cannot be told.")]
    waits: Annotated[List[WaitForm], _doc("By line, that with most time first, and by rank; DistributedDataParallel's own calls are not among them.")]
    remedies: Annotated[List[RemedyForm], _doc("Empty without DDP_PROBE_FIX.")]
    restart: Annotated[Optional[RestartForm], _doc("null if nothing failed.")]


def report_schema() -> Dict[str, Any]:
    """Return the JSON Schema of the output."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": ADDRESS, **in_order(msgspec.json.schema(ReportForm))}


def show(diagnosis: Diagnosis) -> None:
    """Print the object, in pieces: in a launch of a hundred thousand ranks there are millions of them."""
    sys.stdout.writelines(json.JSONEncoder(indent=_INDENT).iterencode(safe.fields(msgspec.to_builtins(form(diagnosis), enc_hook=str))))
    sys.stdout.write("\n")


def text(diagnosis: Diagnosis, indent: Optional[int] = _INDENT) -> str:
    """Return the object as plain ASCII text, so that nothing from a log reaches a terminal unescaped."""
    return json.dumps(safe.fields(msgspec.to_builtins(form(diagnosis), enc_hook=str)), indent=indent)


def form(diagnosis: Diagnosis) -> ReportForm:
    """Return the report as one object."""
    states = rank_states(diagnosis.run)
    return ReportForm(
        ADDRESS,
        VERSION,
        diagnosis.verdict,
        [_finding(finding) for finding in diagnosis.findings],
        [
            UndecidedForm(
                reason.slug,
                reason.because,
                reason.next,
                list(commands(reason.next)),
                _facts(because=reason.because, next=reason.next),
            )
            for reason in diagnosis.undecided
        ],
        _inventory(diagnosis.run, states),
        [_rank(row) for row in states],
        _late(diagnosis.run),
        list(_waits(diagnosis.run)),
        [RemedyForm(*row) for row in remedies.made(diagnosis.run)],
        _restart(diagnosis),
    )


def _restart(diagnosis: Diagnosis) -> Optional[RestartForm]:
    answer = advice(diagnosis)
    if answer is None:
        return None
    return RestartForm(
        answer.helps,
        answer.because,
        list(answer.hosts),
        [CardForm(*card) for card in answer.cards],
        answer.checkpoint,
        list(answer.attempts),
        _facts(because=answer.because),
    )


def _rank(state: RankState) -> RankForm:
    return RankForm(
        rank=state.rank,
        local_rank=state.local_rank,
        host=state.host,
        devices=state.devices,
        device_ids=state.ids,
        card=state.card,
        phase=state.phase,
        last=state.last,
        site=state.site,
        end=state.ending.state,
        exception=state.ending.exception or None,
        exit_code=state.ending.exit_code,
        signal=state.ending.signal or None,
        memory=state.memory,
        waited=state.waited,
        near=state.near,
    )


def _late(run: Run) -> Optional[LateForm]:
    slow = late_ranks.late(run)
    if slow is None:
        return None
    behind, took, waited, more, usual = (time / 1e6 for time in (slow.behind, slow.took, slow.waited, slow.more, slow.usual))
    host = late_ranks.host(run, slow)
    return LateForm(slow.ranks, host, slow.others, slow.steps, slow.last_in, behind, took, waited, slow.part, more, usual)


def _waits(run: Run) -> Iterator[WaitForm]:
    for line, times in late_ranks.sites(run).items():
        for rank, time in sorted(times.items()):
            site = Site(line.site.file, line.site.line, line.site.function) if line.site is not None else None
            yield WaitForm(rank, line.op, line.group, site, time.calls, time.inside, time.longest)


def _finding(finding: Finding) -> FindingForm:
    return FindingForm(
        finding.id,
        finding.slug,
        finding.cause,
        finding.severity,
        finding.ranks,
        finding.verdict,
        [_evidence(item) for item in finding.evidence],
        finding.remedy,
        finding.fix,
        finding.confidence,
        finding.consequences,
        _facts(verdict=finding.verdict, remedy=finding.remedy),
        finding.restart,
    )


def _evidence(item: Evidence) -> EvidenceForm:
    return EvidenceForm(bundled.shown(item.file), item.line, item.site, item.text, fact_of(item.text))


def _facts(**texts: str) -> Dict[str, Any]:
    return {name: fact_of(text) for name, text in texts.items()}


def _stamp(when: float) -> Optional[str]:
    return datetime.fromtimestamp(when, tz=timezone.utc).isoformat(timespec="milliseconds") if 0 < when < _LATEST else None


def _inventory(run: Run, states: List[RankState]) -> InventoryForm:
    processes = [*run.launchers, *run.earlier, *run.processes]
    read = run.inventory
    return InventoryForm(
        run.name,
        _stamp(inventory.began(run)),
        _stamp(inventory.heard(run)),
        round(inventory.age(run), 1) if run.is_newest and inventory.heard(run) else None,
        inventory.command(run),
        inventory.launcher(run),
        sorted({process.host for process in processes if process.host}),
        list(map(bundled.shown, run.folders)),
        list(map(bundled.shown, read.files)),
        read.lines + sum(log.lines for log in run.texts),
        read.bytes,
        run.expected,
        len(run.processes),
        run.missing,
        inventory.ends(states),
        {bundled.shown(file): reasons for file, reasons in read.skipped.items()},
        {bundled.shown(file): why for file, why in read.unreadable.items()},
        inventory.unknown(processes),
        len(run.earlier),
        read.clock_spread,
        list(map(bundled.shown, read.notes)),
    )
