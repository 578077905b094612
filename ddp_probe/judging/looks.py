"""Places each rank by looks from outside: in which call of torch it is, at which line, and whether it stands. Stacks show less than ledgers.

A stack names neither the group of a call nor its number, and a look shows a moment: conclusions from it have less confidence, and are never "clear".
"""

import re
from itertools import chain
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ddp_probe.judging.facts import fact
from ddp_probe.judging.memory import NEARLY
from ddp_probe.judging.rule import Evidence, Finding, Rule, Undecided
from ddp_probe.reading import job_source
from ddp_probe.reading.job_line import job_line
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.reading.rank_stacks import main_frames
from ddp_probe.shared import accelerators
from ddp_probe.shared.mask_forms import Expression
from ddp_probe.shared.own_code import task
from ddp_probe.shared.schema import OpenSocket, ProcessLook, Site
from ddp_probe.wording.text import Text, joined, say
from ddp_probe.wording.words import at, command, counted, listed, named, place, quoted, size

NEEDS = str(ProcessLook.__struct_config__.tag)
NOT_RUNNING, GONE, DISK = ("T", "t"), ("Z", "X", "x", ""), "D"
LOADER, INIT = say("a DataLoader"), "init_process_group"
IDLE, _BUSY = 0.05, 0.5  # CPU seconds a second.
_WAKES = 3.0  # Times a second that a thread which only waits wakes up at most.
_TORCH = Expression(r"[/\\]torch[/\\](?P<module>distributed|nn[/\\]parallel|utils[/\\]data|autograd|_tensor\.py)")
_POLLS = (INIT, "new_group")  # They ask the store many times a second.
_WRAPPERS = Expression(r"^_|^(?:wrapper|inner|forward|__call__|__init__|decorate_context)$")
_FILES, _TASKS = Expression(r"[/\\]torch[/\\](?:serialization\.py|distributed[/\\]checkpoint)"), ("save", "load", "async_save")
_COMPILES = Expression(r"[/\\]torch[/\\]_(?:dynamo[/\\]convert_frame|inductor[/\\](?:async_compile|codecache|compile_fx))\.py$")
_ASKS = Expression(r"[/\\]subprocess\.py$")
_WAITS = Expression(r"\.wait\(|\.synchronize\(|\.item\(")


class Stance(NamedTuple):
    """The place of one rank, and what it does there."""

    rank: int
    pid: int
    looks: "Tuple[LoggedCall[ProcessLook], ...]"
    operation: str  # The call of torch in which it may wait for others: all_reduce, backward; LOADER, INIT; empty for none.
    site: Optional[Site]  # The line of the job.
    still: bool  # Its main thread was at the same lines in each look.
    load: float  # CPU seconds a second between the first look and the last.
    wakes: float  # Times a second that its main thread has gone to sleep.

    @property
    def last(self) -> ProcessLook:
        """Return what was seen last."""
        return self.looks[-1].begin

    @property
    def states(self) -> List[str]:
        """Return the kernel's letters, in their order."""
        return [each.begin.state for each in self.looks]

    @property
    def known(self) -> bool:
        """Return whether there are stacks."""
        return bool(main_frames(self.last.threads))

    @property
    def stands(self) -> bool:
        """Return whether it waits: at the same lines in each look, without CPU time, and without having been woken for work in between."""
        if not self.still or (self.wakes >= _WAKES and self.operation not in _POLLS):
            return False
        if self.load > 1 - IDLE:
            return bool(self.operation)  # NCCL and others wait for a card in a loop.
        asleep = self.wakes == 0 and self.last.switches is not None and set(self.states) == {"S"}
        return self.load < (_BUSY if asleep else IDLE)  # Threads of rpc and others poll.

    @property
    def waits(self) -> bool:
        """Return whether it is in a call that others have to make, too."""
        return self.stands and bool(self.operation) and self.operation != LOADER

    @property
    def spins(self) -> bool:
        """Return whether it computes; beside many others it gets little time, and is ready to run in each look."""
        return self.load >= _BUSY or (self.load >= IDLE and set(self.states) == {"R"})

    def where(self) -> Text:
        """Say where it is."""
        if self.last.state in NOT_RUNNING:
            template = "stopped (process {pid} is in state {state}){at}"
            return say(template, pid=self.pid, state=self.last.state, at=at(self.site))
        if self.last.state in GONE:
            return say("gone: {problem}", problem=quoted(self.last.problem))
        if not self.known:
            return say("at an unknown line")
        if self.site is None:
            return say("in {call}", call=self.operation) if self.operation else say("in code of a library")
        if self.operation:
            return say("in {call} below {where}", call=self.operation, where=place(self.site))
        if self.task() == "import":
            return say("importing at {where}", where=place(self.site))
        if self.task() == "debugger":
            return say("in a debugger at {where}", where=place(self.site))
        return say("at {where}", where=place(self.site))

    def task(self) -> str:
        """Return what it is busy with that may take long and end: a function that evaluates, saves or loads, an import, a debugger."""
        frames = [(frame.file, frame.function) for frame in main_frames(self.last.threads)]
        if any(_COMPILES.search(file) for file, _ in frames):
            return "compile"
        return task(frames) or next((function for file, function in frames if _FILES.search(file) and function in _TASKS), "")

    def may_come(self) -> str:
        """Say why it may still reach the call in which the others wait; empty if nothing suggests that."""
        if self.task():
            return say("in {task}, which may end", task=self.task())
        asked = main_frames(self.last.threads)[-1:]
        if self.children_load >= (0.001 if any(_ASKS.search(frame.file) for frame in asked) else IDLE):  # A copy over a network needs little.
            return say("processes that it has started compute")
        if self.moved():
            return say("{file}, which it has open, moves on", file=quoted(self.moved()[0]))
        if self.still and self.wakes >= _WAKES:
            return say("it is woken {times:.0f} times a second", times=self.wakes)
        if self.still and self.load >= IDLE:  # A download in threads looks so, and threads of rpc that poll do.
            return say("its threads use {percent}% of a core", percent=round(100 * self.load))
        return "" if self.stands else say("it moves")

    @property
    def children_load(self) -> float:
        """Return the CPU seconds a second of the processes that it has started."""
        first, last = self.looks[0], self.looks[-1]
        return (last.begin.children_cpu - first.begin.children_cpu) / max(last.when - first.when, 1e-3)

    def moved(self) -> List[str]:
        """Return its open checkpoints whose position or size differs in the last look."""
        first, last = ({file.path: (file.position, file.size) for file in each.begin.files} for each in (self.looks[0], self.looks[-1]))
        return [path for path in {**first, **last} if first.get(path) != last.get(path)]

    def shown(self) -> Evidence:
        """Return its last look as evidence."""
        call = self.looks[-1]
        text = say("{where}, {doing}", where=self.where(), doing=self.does())
        return Evidence(call.at.file, call.at.line, self.site, text)

    def does(self) -> Text:
        """Say what it does there."""
        return joined([self._moves(), *self._memory(), *self._unread()], by=", ")

    def _moves(self) -> Text:
        if self.last.state in (*NOT_RUNNING, *GONE):
            return say("state {state}", state=self.last.state or "X")
        if self.last.state == DISK:
            return say("state D in {function}", function=self.last.wchan or say("the kernel"))
        used = say("no CPU")
        if self.load >= IDLE:
            used = say("{percent}% of a core", percent=round(100 * self.load))
        if self.still:
            return say("{used}, the same line in each look", used=used)
        return say("{used}, another line than before", used=used)

    def _memory(self) -> Iterator[Text]:
        """Say that its control group has no room, or that the kernel has ended a process of it meanwhile."""
        first, last = self.looks[0].begin.system, self.last.system
        if last is not None and last.memory_limit and (last.memory_taken or 0) >= NEARLY * last.memory_limit:
            yield say(
                "its control group has {used} of {limit} in use",
                used=size(last.memory_taken or 0),
                limit=size(last.memory_limit),
            )
        kills = (last.oom_kills or 0) - (first.oom_kills or 0) if first is not None and last is not None else 0
        if kills > 0:
            yield say(
                "the kernel has killed {processes} of its control group for lack of memory",
                processes=counted(kills, "process", "processes"),
            )

    def _unread(self) -> Iterator[Text]:
        """Say that others have sent what it does not read."""
        least = [min(open_socket.unread for open_socket in same) for same in self.connections().values()]
        if sum(least):
            yield say("{bytes} bytes sent to it not read", bytes=sum(least))

    def connections(self) -> "Dict[Tuple[str, int], List[OpenSocket]]":
        """Return its connections that exist in each look, by their ends; an outgoing one has another port each time."""
        alike: Dict[Tuple[str, int], List[OpenSocket]] = {}
        for look in self.looks:
            for connection in {(each.peer, 0 if each.asks else each.port): each for each in look.begin.sockets}.items():
                alike.setdefault(connection[0], []).append(connection[1])
        return {ends: same for ends, same in alike.items() if len(same) == len(self.looks)}


@fact
def stances(run: Run) -> List[Stance]:
    """Return where each rank is, if looks were taken."""
    return list(chain.from_iterable(map(_stance, run.processes)))


def only(run: Run) -> bool:
    """Tell whether looks from outside are all that there is of a run."""
    return bool(run.processes) and all(process.count(ProcessLook) for process in run.processes)


def _stance(process: LoggedProcess) -> Iterator[Stance]:
    looks = tuple(process.calls(ProcessLook))
    if not looks or process.rank is None:
        return
    frames = [main_frames(look.begin.threads) for look in looks]
    first, last = looks[0], looks[-1]
    between = max(last.when - first.when, 1e-3)
    cpu = (last.begin.cpu_seconds or 0.0) - (first.begin.cpu_seconds or 0.0) if last.begin.cpu_seconds is not None else 0.0
    wakes = (last.begin.switches or 0) - (first.begin.switches or 0)
    still = bool(frames[-1]) and all(_lines(stack) == _lines(frames[-1]) for stack in frames)
    call, site = operation(frames[-1]), job_line(frames[-1])
    yield Stance(process.rank, process.pid, looks, call, site, still, max(cpu, 0.0) / between, max(wakes, 0) / between)


def _lines(frames: Sequence[Site]) -> List[Tuple[str, int]]:
    return [(frame.file, frame.line) for frame in frames]


def operation(frames: Sequence[Site]) -> str:
    """Return the call of torch in which a stack, outermost first, is: the outermost public one below the innermost line of the job."""
    site = job_line(frames)
    inner = frames[max((index for index, frame in enumerate(frames) if frame is site), default=-1) + 1 :]
    of_torch = [(_TORCH.search(frame.file), frame) for frame in inner]
    modules = [(match["module"], frame) for match, frame in of_torch if match is not None]
    names = [frame.function.rpartition(".")[2] for module, frame in modules if module == "distributed"]
    if any("dataloader" in frame.file for _, frame in modules) and not names:
        return LOADER
    if INIT in names or any("rendezvous" in frame.file for _, frame in modules):
        return INIT
    public = [name for name in names if not _WRAPPERS.search(name)]
    if public:
        return public[0]
    if any(module.startswith("nn") for module, _ in modules):
        return "DistributedDataParallel"
    if any(module in ("autograd", "_tensor.py") and "backward" in frame.function for module, frame in modules):
        return "backward"
    waits = site is not None and not inner and _WAITS.search(_source(site)) is not None
    if waits:
        return "wait"
    return "torch.distributed" if names else ""


def _source(site: Site) -> str:
    """Return a line of the job, if its file is here."""
    job_file = job_source.read(site.file)
    lines = job_file.text.splitlines() if job_file is not None else []
    return lines[site.line - 1] if 0 < site.line <= len(lines) else ""


def places(among: Sequence[Stance]) -> List[Tuple[Stance, List[int]]]:
    """Return the ranks that are at one place together, the place of most ranks first."""
    alike: Dict[Tuple[object, ...], Tuple[Stance, List[int]]] = {}
    for stance in among:
        line = (stance.site.file, stance.site.line) if stance.site is not None else ()
        dead = stance.last.state if stance.last.state in NOT_RUNNING else ""
        if stance.last.state in GONE:
            dead = stance.last.problem
        alike.setdefault((stance.operation, line, dead), (stance, []))[1].append(stance.rank)
    return sorted(alike.values(), key=lambda place: (-len(place[1]), place[1]))


def said(among: Sequence[Stance], limit: int = 4) -> Text:
    """Say where ranks are, alike ranks in one clause."""
    clauses = [say("{who} {who:is|are} {where}", who=named(ranks), where=stance.where()) for stance, ranks in places(among)]
    return listed(clauses, limit)


def waiting(run: Run) -> List[Stance]:
    """Return the ranks that wait in a call of torch.distributed."""
    return [stance for stance in stances(run) if stance.waits and stance.last.state not in (*NOT_RUNNING, *GONE)]


def others(run: Run) -> List[Stance]:
    """Return the ranks that are elsewhere while others wait, if their stacks are known."""
    return (
        [stance for stance in stances(run) if not stance.waits and stance.known and stance.last.state not in (*NOT_RUNNING, *GONE)]
        if waiting(run)
        else []
    )


def found(rule: Rule, guilty: Sequence[Stance], rest: Sequence[Stance], how: str = "", **more: Any) -> Finding:
    """Return a finding that says who is where, by how many looks, with the lines that show it: the guilty ranks first."""
    first, last = guilty[0].looks[0], guilty[0].looks[-1]
    verdict = say(
        "{guilty:capital}{how}{others}, in {looks} looks within {seconds:.0f} s from outside.",
        guilty=said(guilty),
        how=how,
        others=say("; {others}", others=said(rest)) if rest else "",
        looks=len(guilty[0].looks),
        seconds=last.when - first.when,
    )
    return rule.found(
        ranks=[stance.rank for stance in guilty],
        verdict=verdict,
        evidence=[stance.shown() for stance in [*guilty[:3], *rest[:3]]],
        when=min(stance.looks[0].when for stance in guilty),
        **more,
    )


# What looks leave open.

_ARMED = say("Start the job with DDP_PROBE=1 next time: ledgers name the call, the group and the sizes that stacks do not show.")
_AGAIN = say("If it hangs, look again: {look}. Proof of a normal end needs the probe: DDP_PROBE=1.", look=command("attach"))
_LINE = say("Look at that line: what does it wait for? If it continues on its own, look again: {look}.", look=command("attach"))
_ENDED = say("What it printed tells more: python -m ddp_probe report LOG. The next run says how each rank ended: DDP_PROBE=1.")
_THERE = say(
    "If they are on other hosts, run {look} there as well, and bring the runs together: docs/attach.md has the lines.",
    look=command("attach"),
)


def open_questions(run: Run) -> Iterator[Undecided]:
    """Say why looks do not show more, and what to do next."""
    seen_ranks = stances(run)
    yield from _unread(seen_ranks)
    seen = {stance.rank for stance in seen_ranks}
    missing = sorted(set(range(run.expected or 0)) - seen)
    if missing:
        because = say(
            "{who:capital} {who:is|are} without a process here: on another host, never started, or gone.",
            who=named(missing),
        )
        yield Undecided("not-seen", because, next=_THERE)
    gone = [stance for stance in seen_ranks if stance.last.state in GONE]
    if gone:
        because = say("{gone:capital}; how it ended is not seen from outside.", gone=said(gone))
        yield Undecided("gone", because, next=_ENDED)
    known = [stance for stance in seen_ranks if stance.known and stance not in gone]
    if known:
        yield _what_is_seen(known)
    looks = chain.from_iterable(stance.looks for stance in seen_ranks)
    for beside in dict.fromkeys(chain.from_iterable(look.begin.beside for look in looks)):
        problem, _, what_to_do = beside.partition("; ")
        because = say("{problem:capital}.", problem=quoted(problem))
        yield Undecided("unreadable", because, next=quoted(what_to_do))


def _what_is_seen(known: Sequence[Stance]) -> Undecided:
    moving = [stance for stance in known if not stance.stands]
    apart = known[0].looks[-1].when - known[0].looks[0].when
    if not moving and len(places(known)) == 1:
        if known[0].operation:
            template = (
                "{ranks:capital}, and nothing moves: stacks do not show which of them made a different call before, or passed a different size."
            )
            return Undecided("all-wait", say(template, ranks=said(known)), next=joined([_cards(known), _ARMED]))
        template = "{ranks:capital}, and nothing moves: it is in no call of torch.distributed."
        if len(known) > 1:
            template = "{ranks:capital}, and nothing moves: no rank is in a call of torch.distributed."
        return Undecided("all-wait", say(template, ranks=said(known)), next=_LINE)
    if len(moving) == len(known):
        because = say(
            "All ranks that could be read have moved or computed within {seconds:.0f} s: {ranks}. Looks do not prove that the job is healthy.",
            seconds=apart,
            ranks=said(known),
        )
        return Undecided("at-work", because, next=_AGAIN)
    because = say("{ranks:capital}; looks within {seconds:.0f} s do not show more.", ranks=said(known), seconds=apart)
    return Undecided("looked-at", because, next=_AGAIN)


def _cards(known: Sequence[Stance]) -> str:
    """Return how to ask the cards that the ranks have open: what they wait for may be a kernel on a card."""
    files = {card[len("/dev/") :] for card in chain.from_iterable(stance.last.cards for stance in known)}
    tools = sorted({kind.smi for kind in map(accelerators.by_device_file, files) if kind is not None and kind.smi})
    if not tools:
        return ""
    return say(
        "Ask the cards whether they compute, and the kernel for their errors: {tools}; dmesg -T.",
        tools=listed([quoted(tool) for tool in tools], by="; "),
    )


def _unread(among: Sequence[Stance]) -> Iterator[Undecided]:
    """Yield the ranks without stacks, by the reason."""
    alike: Dict[Tuple[str, str], List[int]] = {}
    for stance in among:
        if not stance.known and stance.last.state not in GONE:
            alike.setdefault((re.sub(r"process \d+ ", "its process ", stance.last.problem), stance.last.allow), []).append(stance.rank)
    for (why, allow), ranks in alike.items():
        then = say("Then look again: {how}", how=quoted(allow)) if allow else _AGAIN
        because = say(
            "The stack of {who} could not be read: {why}.",
            who=named(ranks),
            why=quoted(why) if why else say("py-spy gave none"),
        )
        yield Undecided("no-stacks", because, next=then)
