"""Prints the stacks of many ranks as one tree: equal stacks are one path, and each branch names the ranks that are in it."""

import os
import re
from collections import Counter
from typing import Dict, Iterator, List, Sequence, Tuple

from ddp_probe.reading import rank_stacks
from ddp_probe.reading.rank_stacks import DUMP, HANG, LOOK, Branch, RankStacks, Step
from ddp_probe.shared.own_code import foreign, package
from ddp_probe.shared.schema import Site, ThreadStack
from ddp_probe.showing import inventory, ranks_table, safe
from ddp_probe.showing.language import ENGLISH, Language
from ddp_probe.showing.layout import StyledLine, wrap
from ddp_probe.showing.paint import QUIET, STRONG, WARN
from ddp_probe.showing.paths import linked
from ddp_probe.showing.watch.ask import Collected, Silence
from ddp_probe.standing import condition_values
from ddp_probe.wording.text import about
from ddp_probe.wording.words import clock, counted, named

_BRANCHES = 12  # Most branches of one line; the rest is in --raw.
_INSTALLED = re.compile(r"^.*[/\\](?:site|dist)-packages[/\\]")
_NUMBER = re.compile(r"\d+")


def lines(collected: Collected, width: int, *, all_threads: bool, say: Language = ENGLISH) -> Iterator[StyledLine]:
    """Yield the page: where the stacks are from, the tree of the main threads, those of other threads, who is missing."""
    yield from _sources(collected.stacks, width)
    yield from _tree("", rank_stacks.tree(_main(collected.stacks)))
    yield from _values(collected.stacks, width)
    if all_threads:
        for name, members in _others(collected.stacks).items():
            yield StyledLine("")
            yield from _tree("thread %s, " % name, rank_stacks.tree(members))
    yield from _silent(collected.silent, width, say)


def raw(collected: Collected, width: int, say: Language = ENGLISH) -> Iterator[StyledLine]:
    """Yield every frame of every thread of every rank."""
    for stacks in collected.stacks:
        yield StyledLine("rank %d, from %s at %s" % (stacks.rank, stacks.source, clock(stacks.when)), STRONG)
        for thread in stacks.threads:
            yield StyledLine(safe.line("  thread %s%s" % (thread.name or "without a name", " (main)" if thread.main else "")))
            for frame in thread.frames:
                place = safe.line("%s:%d" % (frame.file, frame.line))
                yield linked(StyledLine(safe.line("    %s in %s" % (place, frame.function))), place, frame.file)
    yield from _silent(collected.silent, width, say)


def _main(collected: Sequence[RankStacks]) -> Iterator[Tuple[int, ThreadStack]]:
    for stacks in collected:
        yield from ((stacks.rank, thread) for thread in stacks.threads if thread.main)


def _others(collected: Sequence[RankStacks]) -> Dict[str, List[Tuple[int, ThreadStack]]]:
    """Return the other threads by name; numbers in a name count threads, and differ from rank to rank."""
    named: Dict[str, List[Tuple[int, ThreadStack]]] = {}
    for stacks in collected:
        for thread in stacks.threads:
            if not thread.main:
                named.setdefault(_NUMBER.sub("N", thread.name) or "without a name", []).append((stacks.rank, thread))
    return dict(sorted(named.items()))


def _sources(stacks: Sequence[RankStacks], width: int) -> Iterator[StyledLine]:
    for text in sources(stacks):
        for line in wrap(text, width, "", "  "):
            yield StyledLine(line, QUIET)


def sources(stacks: Sequence[RankStacks]) -> Iterator[str]:
    """Yield a sentence if stacks are from earlier, not answers."""
    for source in (HANG, DUMP, LOOK):
        those = [each for each in stacks if each.source == source]
        if those:
            latest = max(each.when for each in those)
            moved = [each.rank for each in those if each.moved_on]
            text = "%s: stacks of %s, at %s" % (ranks_table.who([each.rank for each in those]), source, clock(latest))
            text += (
                "; %s moved on since" % ("it has" if len(those) == 1 else "all have" if len(moved) == len(those) else ranks_table.who(moved))
                if moved
                else ""
            )
            yield text


def _tree(title: str, root: Branch) -> Iterator[StyledLine]:
    if root.ranks:
        yield from _branch(root, "", title)


def _branch(branch: Branch, indent: str, title: str = "") -> Iterator[StyledLine]:
    """Yield the ranks, the lines that all of them are in, and the branches where they part."""
    count = len(branch.ranks)
    yield StyledLine("%s%s%s%s" % (indent, safe.line(title), ranks_table.who(sorted(branch.ranks)), " (%d)" % count if count > 2 else ""), STRONG)
    indent += "  "
    if branch.step is not None:
        yield _step(branch.step, indent)
    while len(branch.branches) == 1 and not branch.ends_here:
        (branch,) = branch.branches
        if branch.step is not None:
            yield _step(branch.step, indent)
    if branch.branches and branch.ends_here:
        yield StyledLine("%s%s: at this line" % (indent, ranks_table.who(branch.ends_here)), STRONG)
    for each in branch.branches[:_BRANCHES]:
        yield from _branch(each, indent)
    rest = branch.branches[_BRANCHES:]
    if rest:
        those = sorted({rank for each in rest for rank in each.ranks})
        yield StyledLine("%s%s in %s more; --raw has them" % (indent, ranks_table.who(those), counted(len(rest), "branch", "branches")), QUIET)


def _step(step: Step, indent: str) -> StyledLine:
    if step.own:
        return linked(StyledLine(safe.line(indent + step_text(step)), STRONG), safe.line(_place(step.site)), step.site.file)
    return StyledLine(safe.line(indent + step_text(step)))


def step_text(step: Step) -> str:
    """Return a step; of library lines the innermost, and before it that of an installed library if it waits in the standard library."""
    if step.own:
        return _line(step.site)
    installed = next((Site(*frame) for frame in reversed(step.frames) if package(frame[0])), step.site)
    text = _line(step.site) if installed == step.site else "%s ... %s" % (_line(installed), _line(step.site))
    return text + (" (%d library lines)" % step.folded if step.folded > 1 else "")


def _line(site: Site) -> str:
    return "%s %s" % (_place(site), site.function)


def _place(site: Site) -> str:
    installed = _INSTALLED.sub("", site.file)
    file = installed if installed != site.file else inventory.near(site.file)
    if os.path.isabs(file) and foreign(site.file):
        file = os.path.basename(file)
    return "%s:%d" % (file, site.line)


def _values(stacks: Sequence[RankStacks], width: int) -> Iterator[StyledLine]:
    """Yield the values by which ranks differ in the innermost function of the job that all of them are in."""
    frames = {each.rank: each.values for each in stacks if each.values and not each.moved_on}
    place, values = condition_values.in_shared_function(frames)
    if place is None:
        return
    yield StyledLine(safe.line("values in %s at %s" % (place.function, _place(place))), STRONG)
    for text in condition_values.clauses(values):
        for line in wrap(text, width, "  ", "    "):
            yield StyledLine(safe.line(line))


def _silent(silent: Dict[int, Silence], width: int, say: Language) -> Iterator[StyledLine]:
    """Yield who gave no stacks now, why, and what to do next; the number of a process is shown for a single rank alone."""
    alike: Dict[Tuple[str, str], List[int]] = {}
    counts = Counter(each.why for each in silent.values())
    for rank, each in sorted(silent.items()):
        shown = (each.why, about(each.what_to_do, pid="PID")) if counts[each.why] > 1 else (each.whole(), each.what_to_do)
        alike.setdefault(shown, []).append(rank)
    for (why, what_to_do), those in alike.items():
        text = "%s %s%s" % (say.text(ranks_table.who(those)), say.text(about(why, they=named(those))), say("."))
        for line in wrap(text, width, "", "  "):
            yield StyledLine(line, WARN)
        for line in wrap(say("next: %s") % say.text(what_to_do), width, "  ", "    "):
            yield StyledLine(line)
