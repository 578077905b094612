"""A rank never arrived to init_process_group: the others waited for it there."""

from itertools import chain
from typing import Dict, Iterator, List, Optional, Tuple

from ddp_probe.judging import proof
from ddp_probe.judging.ledgers import standings_of
from ddp_probe.judging.rule import HIGH, MEDIUM, Finding, Printed, Rule, Undecided, failed, first_of, shown
from ddp_probe.judging.who import ranks_of
from ddp_probe.reading.alive import kernel_state
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import Death, Failed, LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.shared.mask_forms import Expression
from ddp_probe.wording.text import Text, joined, say
from ddp_probe.wording.words import at, command, listed, named

_Wait = Tuple[LoggedProcess, "LoggedCall[schema.InitProcessGroup]", List[Failed]]
_MISSED = Expression(r"\d+/\d+ clients joined|Socket Timeout|store based barrier|[Ww]ait timeout|[Tt]imed out|[Tt]imeout")
_MASTER = Expression(r"trying to connect to|failed to connect|addresses of")  # Nobody was at the master's address: another matter.
# More came than there are ranks: the count includes what an earlier start left in the store, or in the file of file://.
_TOO_MANY = r"world_size=(?:%s|9, \w+=\d\d|\d\d, \w+=\d\d\d)" % "|".join(r"%d, \w+=(?:[%d-9]\b|\d\d)" % (size, size + 1) for size in range(1, 9))

_ONE_HOST = r"\blocalhost\b|127\.0\.0\.1|--standalone\b|--nnodes[= ]1\b"
_BARRIER = r"Timed out [^\n]*store based barrier[^\n]*world_size=(?P<all>\d+), (?:worker_count|num_workers_joined)=(?P<joined>\d+)"
_NOT_IT = r"_create_process_group_wrapper|" + _TOO_MANY
_WHO = "Look at what the other ranks print on each host; from there, nc -vz MASTER_ADDR MASTER_PORT shows whether the master can be reached."

_LATER = say(
    "Look at what the ranks with a file did before init_process_group: {logs}. If they were still loading, "
    "wait for the end of the job and run the report again.",
    logs=command("logs"),
)

RULE = Rule(
    id="DDP419",
    slug="rank-never-started",
    cause="rank_stopped_participating",
    title="A rank never reached init_process_group.",
    symptom=(
        "init_process_group waits until its timeout: '1/2 clients joined', 'Timed out initializing process group in store based barrier', "
        "or 'Socket Timeout'."
    ),
    evidence=(
        "Some of the WORLD_SIZE ranks left no file, and the others wait, or timed out, in init_process_group. If the master itself was missing, "
        "see master-unreachable."
    ),
    remedy=(
        "Start the missing ranks on each host with its own --node_rank (RANK) and the same --nnodes and WORLD_SIZE, and look at what they print at "
        "their start."
    ),
    restart="unknown",  # A host that was lost by chance, or a launch that leaves ranks out.
    needs=("dist.init_process_group", "process.start"),
    printed=(
        Printed(
            r"Failed to get global TPU topology|Invalid system configuration: \d+x\d+ host topology with 0 missing hosts, but \d+ hosts? in total"
            r"|slice_builder_worker_addresses specified\. Expected \d+ worker addresses, got 1\.",
            says="The program does not run on all hosts of this TPU slice: each waits for the others.",
            ranks=False,
        ),
        # Between hosts it is equally possible that the others cannot reach the master.
        Printed(
            r"(?P<joined>\d+)/(?P<all>\d+) clients joined",
            beside=_ONE_HOST,
            says="Only {joined} of {all} ranks came to init_process_group.",
            ranks=False,
        ),
        Printed(_BARRIER, beside=_ONE_HOST, unless=_NOT_IT, says="Only {joined} of {all} ranks came to the end of init_process_group.", ranks=False),
        Printed(
            r"(?P<joined>\d+)/(?P<all>\d+) clients joined",
            says=(
                "Only {joined} of {all} ranks came to init_process_group: the others were not started, ended before it, or "
                "cannot reach the master's address."
            ),
            next=_WHO,
        ),
        Printed(
            _BARRIER,
            unless=_NOT_IT,
            says=(
                "Only {joined} of {all} ranks came to the end of init_process_group: the others were not started, ended before it, or "
                "cannot reach the master's address."
            ),
            next=_WHO,
        ),
        Printed(
            r"[Ww]ait timeout after \d+ ?ms, keys: [^\n]*torchelastic/role_info",
            says="The launcher of another host did not say which ranks it starts: it was not started, has ended, or cannot reach this one.",
            next=_WHO,
        ),
        # A pod that waits for a card: the others wait for its ranks. Later events say that it has got one.
        Printed(
            r"\d+/\d+ nodes are available: [^\n]*Insufficient (?P<what>[\w.-]+/[\w-]+)",
            beside=r"worker-\d|master-0|launcher-|PyTorchJob|MPIJob|torchrun",
            nowhere=r"Successfully assigned|TriggeredScaleUp|Started container",
            says="A pod of the job has not started: no node has as many free {what} as it asks for.",
            ranks=False,
        ),
        Printed(
            r"Socket Timeout",
            beside=r"in _new_process_group_helper\b|ProcessGroupGloo\(",
            unless=r"_create_process_group_wrapper",
            says="A rank did not reach init_process_group.",
            ranks=False,
        ),
    ),
    yields_to=("environment-skew",),
)


def check(run: Run) -> "Iterator[Finding | Undecided]":
    """Find ranks without a file, and ranks that waited for them."""
    missing = run.missing
    waited = _waited(run)
    if not missing or not waited:
        return
    if run.astray:
        yield RULE.undecided(
            say("The file of {who} is not here, but the launcher reports that there was one.", who=named(run.astray)),
            then=proof.NEXT_MISSING,
        )
        return
    here = {process.rank for process, _, _ in waited}
    others = [process for process in run.processes if process.rank is not None and process.rank not in here]
    if any(process.first(schema.InitProcessGroup) is None for process in others):
        yield RULE.undecided(
            say("{who:capital} left no file, but other ranks did not reach init_process_group either.", who=named(missing)),
            then=_LATER,
        )
        return
    failures = list(chain.from_iterable(of_process for _, _, of_process in waited))
    is_over = not run.waited_in(*waited[0][:2])
    ended = [_ended(death) for death in run.deaths if death.rank in missing and death.exit_code]
    starting = {} if is_over else _starting(run, missing)
    remedy = say(
        "Start {who} (WORLD_SIZE is {size}), with the same MASTER_ADDR and MASTER_PORT; if it was started, look at "
        "what it printed before the probe was loaded.",
        who=named(missing),
        size=run.expected,
    )
    if starting:
        remedy = say(
            "Nothing is wrong if it still imports or reads something large: wait. If nothing changes, see where it "
            "stands: {command}; a stale lock, a disk that does not answer and a prompt on the terminal look the same "
            "from outside.",
            command=command("attach", str(next(iter(starting.values())))),
        )
    yield RULE.found(
        ranks=missing,
        verdict=joined([_verdict(run, waited, ended), _silent(starting) if starting else ""]),
        evidence=first_of(
            [failed(failure) for failure in failures[:4]]
            or [shown(call, say("{who} {who:waits|wait} for the others", who=named(ranks_of([process])))) for process, call, _ in waited]
        ),
        when=min(call.when for _, call, _ in waited),
        remedy=remedy,
        explains=failures,
        confidence=MEDIUM if ended or not is_over else HIGH,
        severity="warning" if starting else "",
    )


def _verdict(run: Run, waited: "List[_Wait]", ended: List[Text]) -> Text:
    """Say who is missing, how it ended, and who waited for it, where and for how long."""
    process, call, _ = waited[0]
    lasts = run.waited_in(process, call)
    facts = {
        "who": named(run.missing),
        "size": run.expected,
        "ended": say(" ({ends})", ends=listed(ended)) if ended else "",
        "others": named([process.rank or 0 for process, _, _ in waited]),
        "where": at(call.site),
    }
    if lasts:
        return say(
            "{who:capital} of {size} {who:has|have} not arrived{ended}: {others} {others:has|have} waited "
            "{seconds:.0f} s in init_process_group{where}.",
            seconds=lasts,
            **facts,
        )
    return say(
        "{who:capital} of {size} never arrived{ended}: {others} waited {seconds:.0f} s in init_process_group{where}.",
        seconds=(call.until or process.last_when) - call.when,
        **facts,
    )


def _ended(death: Death) -> Text:
    who = named([death.rank or 0])
    if death.signal:
        return say("{who} ended with {signal}", who=who, signal=death.signal)
    return say("{who} ended with exit code {code}", who=who, code=death.exit_code)


def _starting(run: Run, missing: List[int]) -> Dict[int, int]:
    """Return the processes of the missing ranks, if one launcher of this host has started the whole job and all of these run."""
    for launcher in run.launchers:
        group = launcher.final(schema.LauncherGroup)
        children = group.end.children if group is not None and group.end is not None else {}
        if len(children) == run.expected:
            pids = {rank: children.get(str(rank), 0) for rank in missing}
            if all(pid > 0 and kernel_state(pid, launcher.host, 0, "") for pid in pids.values()):
                return pids
    return {}


def _silent(pids: Dict[int, int]) -> Text:
    """Say that the processes of the missing ranks run."""
    if len(pids) == 1:
        return say(
            "Its process ({pid}) runs and has written nothing: torch is not imported there yet, or the probe was not loaded.",
            pid=next(iter(pids.values())),
        )
    more = ["..."] if len(pids) > 4 else []
    return say(
        "Their processes ({pids}) run and have written nothing: torch is not imported there yet, or the probe was not loaded.",
        pids=listed([*list(pids.values())[:4], *more]),
    )


def _waited(run: Run) -> "List[_Wait]":
    """Return the ranks that timed out in init_process_group, or still wait there after the time of DDP_PROBE_HANG_AFTER."""
    waits: List[_Wait] = []
    failures: Dict[Optional[int], List[Failed]] = {}
    for failure in run.failures:
        failures.setdefault(failure.rank, []).append(failure)
    for process in run.processes:
        call = process.final(schema.InitProcessGroup)
        if call is None or process.rank is None:
            continue
        if run.waited_in(process, call) > standings_of(run).patience:
            waits.append((process, call, []))
            continue
        if call.failure is None:
            continue
        text = call.failure.message
        if _MISSED.search(text) and not _MASTER.search(text):
            waits.append((process, call, [failure for failure in failures.get(process.rank, []) if call in failure.calls]))
    return waits
