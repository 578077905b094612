"""Finds the stacks of each rank in its log or in what faulthandler has written, and merges those of many ranks into one tree."""

import os
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

import ddp_probe
from ddp_probe.reading import fold_file
from ddp_probe.reading.job_line import job_line, own_frames
from ddp_probe.reading.log_lines import decode, seconds
from ddp_probe.shared import schema
from ddp_probe.shared.mask_forms import Expression
from ddp_probe.shared.masks import mask
from ddp_probe.shared.regular_files import open_bytes
from ddp_probe.shared.schema import Site, ThreadStack

_THREAD = Expression(r"^(?:Current thread|Thread) (0x[0-9a-fA-F]+)(?: \[([^\]\n]*)\])? \(most recent call first\):\s*$")
_FRAME = Expression(r'^  File "([^"\n]*)", line (\d{1,9}|\?\?\?) in (.{1,500})$')
_BEGIN = Expression(r"^(?:Timeout \(|Fatal Python error: )")
_NO_ROOM = 1 << 22


# faulthandler's text does not name the threads. It writes the main thread last, because that was created first.
def threads(text: str) -> List[ThreadStack]:
    """Return the threads of the last dump, the main one first."""
    dumps: List[List[ThreadStack]] = [[]]
    for line in text[-_NO_ROOM:].splitlines():
        if _BEGIN.match(line):
            dumps.append([])
        _take(line, dumps[-1])
    thread_stacks = next((dump for dump in reversed(dumps) if any(thread.frames for thread in dump)), [])
    for thread in thread_stacks:
        thread.frames.reverse()
    if thread_stacks:
        thread_stacks[-1].main = True
    return thread_stacks[::-1]


def _take(line: str, dump: List[ThreadStack]) -> None:
    begun = _THREAD.match(line)
    if begun:
        dump.append(ThreadStack(name=mask(begun[2] or begun[1])))
        return
    frame = _FRAME.match(line)
    if frame and dump:
        dump[-1].frames.append(Site(file=mask(frame[1]), line=int(frame[2]) if frame[2].isdigit() else 0, function=mask(frame[3])))


_EVENTS = (b'"event":"hang.suspected"', b'"event":"stacks"', b'"event":"process.look"')
_OVER, _SILENT = b'"event":"hang.over"', b'"event":"launcher.silent"'
_NAME = Expression(r"rank(\d+)\.")
_LARGEST = 1 << 28
_WithThreads = Union[schema.HangSuspected, schema.Stacks, schema.ProcessLook]

ANSWER, HANG, DUMP, LOOK = "an answer to a request", "a suspected hang", "faulthandler", "a look from outside"


class RankStacks(NamedTuple):
    """The stacks of one rank at one time."""

    rank: int
    threads: List[schema.ThreadStack]
    when: float  # Seconds since 1970 by the clock of its host.
    source: str  # ANSWER, HANG, DUMP or LOOK.
    moved_on: bool = False  # The rank has said later that the hang is over.
    values: Sequence[schema.FrameValues] = ()  # Those of the main thread's frames, the outermost first.


def main_frames(threads: Sequence[schema.ThreadStack]) -> List[schema.Site]:
    """Return the stack of the main thread; empty if it is not among them."""
    return next((thread.frames for thread in threads if thread.main), [])


def answer(lines: bytes, file: str, request: int) -> Optional[RankStacks]:
    """Return a rank's answer to a request among the lines that were added to its log."""
    for line in reversed(lines.split(b"\n")[:-1]):
        event = _event(line) if _EVENTS[1] in line else None
        if isinstance(event, schema.Stacks) and event.request == request:
            return _of(event, file, moved_on=False)
    return None


def recorded(log: str) -> Optional[RankStacks]:
    """Return the latest stacks of a rank: in its log, in its launcher's, or in faulthandler's text next to it, which an older probe's timer wrote."""
    stacks = [rank_stacks for rank_stacks in (_logged(log), _seen(log), dumped(log)) if rank_stacks is not None]
    return max(stacks, key=lambda rank_stacks: rank_stacks.when, default=None)


def silent(log: str) -> Optional[schema.LauncherSilent]:
    """Return what the launcher of a rank saw last of it while no Python code ran in it."""
    host, pid = (*os.path.basename(log).split("."), "", "")[1:3]
    data = _bytes(os.path.join(os.path.dirname(log), "launcher.%s.jsonl" % host))
    at = data.rfind(b'"child_pid":%s,' % pid.encode(), data.find(_SILENT)) if _SILENT in data and pid else -1
    while at >= 0:
        event = decode(data[data.rfind(b"\n", 0, at) + 1 : data.find(b"\n", at)]).event
        if isinstance(event, schema.LauncherSilent):
            return event
        at = data.rfind(b'"child_pid":%s,' % pid.encode(), 0, at)
    return None


def _seen(log: str) -> Optional[RankStacks]:
    event = silent(log)
    return RankStacks(rank_of(log), event.threads, seconds(event.ts) or 0.0, LOOK) if event is not None and event.threads else None


def dump_of(log: str) -> str:
    """Return the file beside a log to which faulthandler writes."""
    return log[: -len(".jsonl")] + ".stacks"


def dumped(log: str) -> Optional[RankStacks]:
    """Return the last stacks that faulthandler has written beside a log."""
    path = dump_of(log)
    thread_stacks = threads(_bytes(path).decode("utf-8", "replace"))
    return RankStacks(rank_of(log), thread_stacks, os.stat(fold_file.real_place(path)).st_mtime, DUMP) if thread_stacks else None


def rank_of(file: str) -> int:
    """Return the rank in a file's name, or -1."""
    match = _NAME.match(os.path.basename(file))
    return int(match[1]) if match else -1


def _logged(log: str) -> Optional[RankStacks]:
    data = _bytes(log)
    for at in _backwards(data):
        end = data.find(b"\n", at)
        event = _event(data[data.rfind(b"\n", 0, at) + 1 : end]) if end >= 0 else None  # The last line may be torn.
        if event is not None and event.threads:
            return _of(event, log, moved_on=data.rfind(_OVER) > at)
    return None


def _backwards(data: bytes) -> Iterator[int]:
    """Yield where events with stacks are, the latest first."""
    end = len(data)
    while True:
        end = max(data.rfind(mark, 0, end) for mark in _EVENTS)
        if end < 0:
            return
        yield end


def _event(line: bytes) -> Optional[_WithThreads]:
    event = decode(line).event
    return event if isinstance(event, (schema.HangSuspected, schema.Stacks, schema.ProcessLook)) else None


def _of(event: _WithThreads, file: str, *, moved_on: bool) -> RankStacks:
    rank = event.rank if event.rank is not None else rank_of(file)
    when = seconds(event.ts) or 0.0
    if isinstance(event, schema.ProcessLook):
        return RankStacks(rank, event.threads, when, LOOK, False, ())
    source = ANSWER if isinstance(event, schema.Stacks) else HANG
    return RankStacks(rank, event.threads, when, source, moved_on and source == HANG, event.values)


def _bytes(path: str) -> bytes:
    try:
        with open_bytes(fold_file.real_place(path)) as stream:
            return stream.read(_LARGEST)
    except OSError:
        return b""


# Merges the stacks of many ranks into one tree: a branch is a line of code with the ranks that are in it, so that equal stacks are one path.
#
# LLNL's STAT is the model: ranks that stand at the same lines are one class, however many they are.

_OURS = ddp_probe.__path__[0] + "/"
_Frame = Tuple[str, int, str]


class Step(NamedTuple):
    """One line of the tree: a line of the job, or library lines in a row, of which the innermost is shown."""

    site: Site
    own: bool  # It is a line of the job.
    folded: int  # How many library lines stand behind it, itself included; 0 for a line of the job.
    frames: Tuple[_Frame, ...]  # All of them: two steps are equal if these are.


class Branch:
    """A step with the ranks that are in it and what they call from there."""

    def __init__(self, step: Optional[Step] = None) -> None:
        self.step = step
        self.ranks: Set[int] = set()
        self._next: Dict[Tuple[_Frame, ...], Branch] = {}

    def add(self, rank: int, steps: Sequence[Step]) -> None:
        """Add the stack of one rank."""
        branch = self
        branch.ranks.add(rank)
        for step in steps:
            branch = branch._next.setdefault(step.frames, Branch(step))
            branch.ranks.add(rank)

    @property
    def branches(self) -> List["Branch"]:
        """Return the branches, the one with most ranks first; the order depends only on their content."""
        return sorted(self._next.values(), key=Branch._order)

    def _order(self) -> Tuple[int, int, Any]:
        return -len(self.ranks), min(self.ranks), self.step.frames if self.step else ()

    @property
    def ends_here(self) -> List[int]:
        """Return the ranks that are at this line itself while others have gone on from it."""
        return sorted(self.ranks.difference(*(branch.ranks for branch in self._next.values())))


def tree(stacks: Iterable[Tuple[int, ThreadStack]]) -> Branch:
    """Return the tree of these stacks, each with its rank."""
    root = Branch()
    for rank, thread in stacks:
        root.add(rank, steps(thread.frames))
    return root


def steps(frames: Sequence[Site]) -> List[Step]:
    """Return a stack, outermost first, with library lines in a row folded into one step."""
    job = job_line(frames)
    of_job = {id(frame) for frame in own_frames(frames)}
    folded: List[Step] = []
    run: List[Site] = []
    for frame in (frame for frame in frames if not frame.file.startswith(_OURS)):
        if frame is not job and id(frame) not in of_job:
            run.append(frame)
            continue
        folded += [_folded(run)] if run and folded else []  # The start of the program leads every stack and says nothing.
        run = []
        folded.append(Step(frame, own=True, folded=0, frames=(_key(frame),)))
    return [*folded, _folded(run)] if run else folded


def _folded(run: Sequence[Site]) -> Step:
    return Step(run[-1], own=False, folded=len(run), frames=tuple(_key(frame) for frame in run))


def _key(frame: Site) -> _Frame:
    return frame.file, frame.line, frame.function


def folded(stacks: Iterable[ThreadStack]) -> List[str]:
    """Return lines for a flame graph: every frame of a stack, outermost first, and in how many ranks or threads it is."""
    counts: Dict[str, int] = {}
    for thread in stacks:
        line = ";".join(_word(frame) for frame in thread.frames if not frame.file.startswith(_OURS)) or "(no Python frame)"
        counts[line] = counts.get(line, 0) + 1
    return ["%s %d" % pair for pair in sorted(counts.items())]


def _word(frame: Site) -> str:
    """Return a frame without what separates frames and lines in such a file."""
    text = "%s (%s:%d)" % (frame.function or "?", frame.file, frame.line)
    return "".join(" " if char in "\r\n\t" else char for char in text.replace(";", ","))
