"""What the live checks run on, and the small job of programs/rank.py, launched once: which rank failed at which stage."""

import socket
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ddp_probe.doctor import cards, children
from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.children import ChildAnswer
from ddp_probe.doctor.host import Host
from ddp_probe.shared.accelerators import Accelerator
from ddp_probe.wording.text import Text, joined, say
from ddp_probe.wording.words import counted, listed, named, quoted

_RANKS = 2  # On a host without cards.


class LivePlan(NamedTuple):
    """What a job of this host would use."""

    types: str  # What torch may call the devices, the likeliest first: `gcu,xla`; `cpu`.
    attribute: str  # `gcu` for torch.gcu.
    module: str  # The vendor's module to import first.
    cards: int  # How many torch counts; 0 on the CPU.
    ranks: int
    backend: str
    known: Optional[Accelerator]  # Whose cards they are, or, on the CPU, whose cards were expected.

    @property
    def device(self) -> str:
        """The likeliest name of the devices."""
        return self.types.split(",")[0]

    @property
    def on(self) -> Text:
        """The place of the ranks, as a sentence ends."""
        if self.cards:
            return say("on {device} cards", device=self.device)
        if self.known:
            return say("on the CPU; torch counts no {kind} card", kind=self.known.name)
        return say("on the CPU; no accelerator is used")


def plan(host: Host) -> LivePlan:
    """Return the plan; it is made once."""
    return host.once("plan", lambda: _plan(host))


def _plan(host: Host) -> LivePlan:
    kind = cards.accelerator(host)
    count = cards.count(host)
    backend = host.request.backend or _backend(host, kind if count else None)
    if kind is None or not count:
        return LivePlan("cpu", "", "", 0, host.request.nproc or _RANKS, backend, kind)
    types = ",".join(kind.device_types) or kind.name
    module, ranks = cards.importable_module(host, kind), host.request.nproc or count
    return LivePlan(types, kind.torch_attribute, module, count, ranks, backend, kind)


def _backend(host: Host, kind: Optional[Accelerator]) -> str:
    """Return the first backend of the vendor that is registered, else gloo."""
    registered: List[str] = cards.torch_facts(host).last.get("backends", []) if kind else []
    return next((name for name in (kind.backends if kind else ()) if name in registered), "gloo")


def asked_and_absent(host: Host) -> str:
    """Return the requested device if torch does not count it; else empty."""
    asked = host.request.device
    return asked if asked and asked != "cpu" and not plan(host).cards else ""


def without(host: Host, indexes: Tuple[int, ...]) -> str:
    """Return the assignment that hides these cards from a job, such as TOPS_VISIBLE_DEVICES=0,1,3; empty if there is none."""
    live_plan = plan(host)
    if live_plan.known is None or not live_plan.known.visible or len(indexes) >= live_plan.cards:
        return ""
    variables = live_plan.known.visible
    name = next((variable for variable in variables if host.environ.get(variable)), variables[0])
    visible = [entry.strip() for entry in host.environ.get(name, "").split(",") if entry.strip()]
    entries = visible if len(visible) == live_plan.cards else [str(index) for index in range(live_plan.cards)]
    return "%s=%s" % (name, ",".join(entry for index, entry in enumerate(entries) if index not in indexes))


# Launches the small job of programs/rank.py once, and says which rank failed at which stage.

STAGES = ("import", "set_device", "init_process_group", "all_reduce", "broadcast", "barrier", "ddp", "bandwidth", "destroy_process_group")
"""In the order in which a rank goes through them."""

_AFTER_FAILURE = 5.0  # Seconds that the other ranks have to notice that one has failed.
_PORTS = 3  # How often another port is tried: a port that is free now may be taken a moment later.
_TAKEN = ("EADDRINUSE", "ddress already in use")
_FROM_LAUNCHERS = ("TORCHELASTIC_", "GROUP_", "ROLE_")


class RankFault(NamedTuple):
    """The first thing that went wrong in a launch."""

    stage: str
    ranks: Tuple[int, ...]
    how: str  # "was killed by SIGSEGV", "did not return within 60 s", "raised ..."
    error: str  # What was raised.
    others: Dict[str, List[int]]  # The stages in which the other ranks were, if they had not ended.
    lines: Tuple[str, ...]  # The last lines on stderr of the first of the ranks.

    @property
    def text(self) -> Text:
        """One sentence."""
        if not self.others:
            return say("{who:capital} {how}.", who=named(self.ranks), how=self.how)
        waiting = []
        for stage, ranks in self.others.items():
            waiting.append(say("{who} waited in {stage}", who=named(ranks), stage=stage))
        return say(
            "{who:capital} {how}; {others}.",
            who=named(self.ranks),
            how=self.how,
            others=listed(waiting, by="; "),
        )


class Launch(NamedTuple):
    """What the ranks of the job said."""

    plan: LivePlan
    told: List[ChildAnswer]  # Answers by rank.

    def facts(self, stage: str) -> Dict[int, Dict[str, Any]]:
        """Return what each rank that ended a stage found in it."""
        ended = {rank: _ended(answer, stage) for rank, answer in enumerate(self.told)}
        return {rank: said for rank, said in ended.items() if said is not None}


def launch(host: Host) -> Launch:
    """Return the launch; all checks share one."""
    return host.once("launch", lambda: _launch(host))


def _launch(host: Host) -> Launch:
    live_plan = plan(host)
    for _ in range(_PORTS):
        programs = _programs(host, live_plan, _free_port())
        answers = children.together(programs, host.request.seconds, after_failure=_AFTER_FAILURE)
        if not any(taken in _error(answers[0]) for taken in _TAKEN):
            break
    return Launch(live_plan, answers)


def _programs(host: Host, live_plan: LivePlan, port: int) -> List[Tuple[str, Sequence[str], Dict[str, str]]]:
    arguments = (live_plan.types, live_plan.attribute, live_plan.module, live_plan.backend)
    kept = {name: value for name, value in host.environ.items() if not name.startswith(_FROM_LAUNCHERS)}
    kept.setdefault("OMP_NUM_THREADS", "1")  # as torchrun does: all ranks share the cores
    size = str(live_plan.ranks)
    kept.update(WORLD_SIZE=size, LOCAL_WORLD_SIZE=size, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    ranks = map(str, range(live_plan.ranks))
    return [("rank", arguments, {**kept, "RANK": rank, "LOCAL_RANK": rank}) for rank in ranks]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def fault(host: Host) -> Optional[RankFault]:
    """Return what went wrong first; None if every rank went through all stages."""
    return host.once("fault", lambda: _fault(launch(host).told))


def _fault(answers: Sequence[ChildAnswer]) -> Optional[RankFault]:
    unfinished = [rank for rank, answer in enumerate(answers) if answer.code != 0]
    if not unfinished:
        return None
    first = _first(answers, unfinished)
    stage = _reached(answers[first[0]])
    others: Dict[str, List[int]] = {}
    for rank in unfinished:
        if rank not in first and answers[rank].code is None:
            others.setdefault(_reached(answers[rank]), []).append(rank)
    error = _error(answers[first[0]])
    return RankFault(stage, tuple(first), _how(answers[first[0]], stage, error), error, others, answers[first[0]].last_lines)


def _first(answers: Sequence[ChildAnswer], unfinished: Sequence[int]) -> List[int]:
    """Return the ranks that failed by themselves: killed ranks, else those with the first error, else those that made the least progress."""
    killed = [rank for rank in unfinished if (answers[rank].code or 0) < 0]
    if killed:
        return killed
    raised = sorted((rank for rank in unfinished if _error(answers[rank])), key=lambda rank: float(answers[rank].last["at"]))
    if raised:
        return sorted(
            rank for rank in raised if _reached(answers[rank]) == _reached(answers[raised[0]]) and _error(answers[rank]) == _error(answers[raised[0]])
        )
    left = [rank for rank in unfinished if answers[rank].code is not None]  # ended by a library, with an exit code
    if left:
        return left
    least = min(STAGES.index(_reached(answers[rank])) for rank in unfinished)
    return [rank for rank in unfinished if STAGES.index(_reached(answers[rank])) == least]


def _how(answer: ChildAnswer, stage: str, error: str) -> Text:
    if error:
        return say("failed in {stage}: {error}", stage=stage, error=quoted(error.rstrip(".")))
    if answer.code is None and not answer.too_much:
        return say("did not return from {stage} within {seconds:.0f} s", stage=stage, seconds=answer.seconds)
    return say("{how} in {stage}", how=answer.how(), stage=stage)


def _reached(answer: ChildAnswer) -> str:
    """Return the stage that a rank began last."""
    return next((str(line["stage"]) for line in reversed(answer.answers) if "stage" in line), STAGES[0])


def _error(answer: ChildAnswer) -> str:
    return str(answer.last.get("error", ""))


def _ended(answer: ChildAnswer, stage: str) -> Optional[Dict[str, Any]]:
    return next((line for line in answer.answers if line.get("stage") == stage and line.get("phase") == "end"), None)


def shared_cards(host: Host) -> str:
    """Say which ranks have, or would have, one card; empty if each has its own. More ranks than cards are not launched."""
    live_plan = plan(host)
    if not live_plan.cards:
        return ""
    if live_plan.ranks > live_plan.cards:
        return say(
            "{ranks} are asked for, but torch counts {count} {device} {count:card|cards}.",
            ranks=counted(live_plan.ranks, "rank"),
            count=live_plan.cards,
            device=live_plan.device,
        )
    ranks_of: Dict[str, List[int]] = {}
    for rank, facts in launch(host).facts("set_device").items():
        ranks_of.setdefault(facts["identity"] or facts["card"], []).append(rank)
    sharing = []
    for card, ranks in ranks_of.items():
        if len(ranks) > 1:
            sharing.append(say("{who:capital} share one card, {card}.", who=named(ranks), card=quoted(card)))
    return joined(sharing)


def judge(host: Host, check: Check, stages: Sequence[str], remedy: str = "") -> Optional[Answer]:
    """Return the failure if the launch failed in one of these stages; if earlier, that this cannot be judged; None if all ranks passed them."""
    failure = fault(host)
    if failure is None or STAGES.index(failure.stage) > STAGES.index(stages[-1]):
        return None
    if failure.stage not in stages:
        return check.blocked(say("It needs {stage}: {failure}", stage=failure.stage, failure=failure.text))
    live_plan = launch(host).plan
    runs = say(
        "It runs {count} ranks with {backend} {on}.",
        count=live_plan.ranks,
        backend=live_plan.backend,
        on=live_plan.on,
    )
    return check.fail(joined([failure.text, runs]), remedy, [quoted(line) for line in failure.lines])
