"""The stacks that the ranks left, merged into one tree."""

from typing import Collection, List, NamedTuple, Optional, Tuple

from ddp_probe.reading import rank_stacks
from ddp_probe.reading.fold_file import real_place
from ddp_probe.reading.model import Run
from ddp_probe.reading.rank_stacks import Branch, Step
from ddp_probe.shared.schema import ThreadStack
from ddp_probe.showing import ranks_table, stack_page
from ddp_probe.showing.language import ENGLISH, Language

_BRANCHES = 12  # Branches of one line.
_DEEP = 200


class StackLine(NamedTuple):
    """A line of the tree, and whether it is the job's own."""

    text: str
    own: bool


class StackBranch(NamedTuple):
    """Ranks, the lines that all of them are in, and the branches where they part."""

    who: str
    size: int
    lines: List[StackLine]
    here: str  # Ranks that are at the last of these lines while others have gone on.
    branches: List["StackBranch"]
    more: str  # Ranks in branches that are left out.


class StackPart(NamedTuple):
    """The tree, and from what the stacks were taken."""

    sources: List[str]
    tree: Optional[StackBranch]


def part(run: Run, say: Language = ENGLISH) -> StackPart:
    """Return the stacks of the main threads."""
    logs = [process.file for process in run.processes if _has_stacks(process.kept.kinds, process.file)]
    stacks = [stacks_of_rank for stacks_of_rank in map(rank_stacks.recorded, logs) if stacks_of_rank is not None]
    mains: List[Tuple[int, ThreadStack]] = []
    for stacks_of_rank in stacks:
        mains += [(stacks_of_rank.rank, thread) for thread in stacks_of_rank.threads if thread.main]
    root = rank_stacks.tree(mains)
    sources = [say.text(source) for source in stack_page.sources(stacks)]
    return StackPart(sources, _branch(root, 0, say) if root.ranks else None)


def _has_stacks(kinds: Collection[str], log: str) -> bool:
    """Return whether a process left stacks, without reading its log again."""
    import os

    return "hang.suspected" in kinds or "stacks" in kinds or "process.look" in kinds or os.path.exists(real_place(rank_stacks.dump_of(log)))


def _branch(branch: Branch, depth: int, say: Language) -> StackBranch:
    whole, lines = branch, [] if branch.step is None else [_line(branch.step, say)]
    while len(branch.branches) == 1 and not branch.ends_here:
        (branch,) = branch.branches
        lines += [_line(branch.step, say)] if branch.step is not None else []
    chosen, rest = _cut(branch.branches, depth)
    here = say.text(ranks_table.who(branch.ends_here)) if branch.branches and branch.ends_here else ""
    more = say.text(ranks_table.who(sorted({rank for inner in rest for rank in inner.ranks}))) if rest else ""
    return StackBranch(
        say.text(ranks_table.who(sorted(whole.ranks))), len(whole.ranks), lines, here, [_branch(inner, depth + 1, say) for inner in chosen], more
    )


def _cut(branches: List[Branch], depth: int) -> Tuple[List[Branch], List[Branch]]:
    most = _BRANCHES if depth < _DEEP else 0
    return branches[:most], branches[most:]


def _line(step: Step, say: Language) -> StackLine:
    return StackLine(say.text(stack_page.step_text(step)), step.own)
