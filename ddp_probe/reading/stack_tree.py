"""Merges the stacks of many ranks into one tree: a branch is a line of code with the ranks that are in it, so that equal stacks are one path.

LLNL's STAT is the model: ranks that stand at the same lines are one class, however many they are.
"""

from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple

import ddp_probe
from ddp_probe.reading.job_line import job_line, own_frames
from ddp_probe.shared.schema import Site, ThreadStack

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
        """Return the branches, the one with most ranks first; the order depends on what they are alone."""
        return sorted(self._next.values(), key=lambda each: (-len(each.ranks), min(each.ranks), each.step.frames if each.step else ()))

    @property
    def ends_here(self) -> List[int]:
        """Return the ranks that are at this line itself while others have gone on from it."""
        return sorted(self.ranks.difference(*(each.ranks for each in self._next.values())))


def tree(stacks: Iterable[Tuple[int, ThreadStack]]) -> Branch:
    """Return the tree of these stacks, each with its rank."""
    root = Branch()
    for rank, thread in stacks:
        root.add(rank, steps(thread.frames))
    return root


def steps(frames: Sequence[Site]) -> List[Step]:
    """Return a stack, outermost first, with library lines in a row folded into one step."""
    job = job_line(frames)
    own = {id(frame) for frame in own_frames(frames)}
    found: List[Step] = []
    run: List[Site] = []
    for frame in (frame for frame in frames if not frame.file.startswith(_OURS)):
        if frame is not job and id(frame) not in own:
            run.append(frame)
            continue
        found += [_folded(run)] if run and found else []  # What starts the program leads every stack and tells nothing.
        run = []
        found.append(Step(frame, own=True, folded=0, frames=(_key(frame),)))
    return [*found, _folded(run)] if run else found


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
