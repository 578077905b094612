"""Prints the stacks of many ranks as one tree: equal stacks are one path, and each branch names the ranks that are in it."""

import os
import re
from collections import Counter
from typing import Dict, Iterator, List, Sequence, Set, Tuple

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
from ddp_probe.wording.text import Text, about
from ddp_probe.wording.text import say as text_of
from ddp_probe.wording.words import clock, counted, named, quoted

_BRANCHES = 12  # Most branches of one line; the rest is in --raw.
_INSTALLED = re.compile(r"^.*[/\\](?:site|dist)-packages[/\\]")
_NUMBER = re.compile(r"\d+")


def lines(collected: Collected, width: int, *, all_threads: bool, say: Language = ENGLISH) -> Iterator[StyledLine]:
    """Yield the page: where the stacks are from, the tree of the main threads, those of other threads, who is missing."""
    yield from _sources(collected.stacks, width, say)
    yield from _tree("", rank_stacks.tree(_main(collected.stacks)), say)
    yield from _values(collected.stacks, width, say)
    if all_threads:
        for name, members in _others(collected.stacks).items():
            yield StyledLine("")
            title = text_of("thread {name}, ", name=name or text_of("without a name"))
            yield from _tree(say.text(title), rank_stacks.tree(members), say)
    yield from _silent(collected.silent, width, say)


def raw(collected: Collected, width: int, say: Language = ENGLISH) -> Iterator[StyledLine]:
    """Yield every frame of every thread of every rank."""
    for stacks in collected.stacks:
        template = "rank {rank}, from {source} at {when}"
        title = text_of(template, rank=stacks.rank, source=text_of(stacks.source), when=clock(stacks.when))
        yield StyledLine(say.text(title), STRONG)
        for thread in stacks.threads:
            form = say("  thread %s (main)") if thread.main else say("  thread %s")
            yield StyledLine(safe.line(form % (thread.name or say("without a name"))))
            for frame in thread.frames:
                place = safe.line("%s:%d" % (frame.file, frame.line))
                yield linked(StyledLine(safe.line(say("    %s in %s") % (place, frame.function))), place, frame.file)
    yield from _silent(collected.silent, width, say)


def _main(collected: Sequence[RankStacks]) -> Iterator[Tuple[int, ThreadStack]]:
    for stacks in collected:
        yield from ((stacks.rank, thread) for thread in stacks.threads if thread.main)


def _others(collected: Sequence[RankStacks]) -> Dict[str, List[Tuple[int, ThreadStack]]]:
    """Return the other threads by name; numbers in a name count threads, and differ from rank to rank."""
    by_name: Dict[str, List[Tuple[int, ThreadStack]]] = {}
    for stacks in collected:
        for thread in stacks.threads:
            if not thread.main:
                by_name.setdefault(_NUMBER.sub("N", thread.name), []).append((stacks.rank, thread))
    return dict(sorted(by_name.items(), key=lambda pair: pair[0] or "without a name"))


def _sources(stacks: Sequence[RankStacks], width: int, say: Language) -> Iterator[StyledLine]:
    for text in sources(stacks):
        for line in wrap(say.text(text), width, "", "  "):
            yield StyledLine(line, QUIET)


def sources(stacks: Sequence[RankStacks]) -> Iterator[Text]:
    """Yield a sentence if stacks are from earlier, not answers."""
    for source in (HANG, DUMP, LOOK):
        earlier = [rank_stacks for rank_stacks in stacks if rank_stacks.source == source]
        if earlier:
            yield text_of(
                "{who}: stacks of {source}, at {when}{moved}",
                who=ranks_table.who([rank_stacks.rank for rank_stacks in earlier]),
                source=text_of(source),
                when=clock(max(rank_stacks.when for rank_stacks in earlier)),
                moved=_moved_on(earlier),
            )


def _moved_on(stacks: Sequence[RankStacks]) -> str:
    moved = [rank_stacks.rank for rank_stacks in stacks if rank_stacks.moved_on]
    if not moved:
        return ""
    if len(stacks) == 1:
        return text_of("; it has moved on since")
    if len(moved) == len(stacks):
        return text_of("; all have moved on since")
    return text_of("; {who} moved on since", who=ranks_table.who(moved))


def _tree(title: str, root: Branch, say: Language) -> Iterator[StyledLine]:
    if root.ranks:
        yield from _branch(root, "", say, title)


def _branch(branch: Branch, indent: str, say: Language, title: str = "") -> Iterator[StyledLine]:
    """Yield the ranks, the lines that all of them are in, and the branches where they part."""
    count = len(branch.ranks)
    who = say.text(ranks_table.who(sorted(branch.ranks)))
    number = " (%d)" % count if count > 2 else ""
    yield StyledLine("%s%s%s%s" % (indent, safe.line(title), who, number), STRONG)
    indent += "  "
    if branch.step is not None:
        yield _step(branch.step, indent, say)
    while len(branch.branches) == 1 and not branch.ends_here:
        (branch,) = branch.branches
        if branch.step is not None:
            yield _step(branch.step, indent, say)
    if branch.branches and branch.ends_here:
        here = text_of("{who}: at this line", who=ranks_table.who(branch.ends_here))
        yield StyledLine(indent + say.text(here), STRONG)
    for inner in branch.branches[:_BRANCHES]:
        yield from _branch(inner, indent, say)
    rest = branch.branches[_BRANCHES:]
    if rest:
        ranks: Set[int] = set()
        for inner in rest:
            ranks.update(inner.ranks)
        more = counted(len(rest), "branch", "branches")
        text = text_of("{who} in {branches} more; --raw has them", who=ranks_table.who(sorted(ranks)), branches=more)
        yield StyledLine(indent + say.text(text), QUIET)


def _step(step: Step, indent: str, say: Language) -> StyledLine:
    text = safe.line(indent + say.text(step_text(step)))
    if step.own:
        return linked(StyledLine(text, STRONG), safe.line(_place(step.site)), step.site.file)
    return StyledLine(text)


def step_text(step: Step) -> Text:
    """Return a step; of library lines the innermost, and before it that of an installed library if it waits in the standard library."""
    if step.own:
        return quoted(_line(step.site))
    installed = next((Site(*frame) for frame in reversed(step.frames) if package(frame[0])), step.site)
    text = _line(step.site) if installed == step.site else "%s ... %s" % (_line(installed), _line(step.site))
    if step.folded > 1:
        return text_of("{lines} ({count} library lines)", lines=quoted(text), count=step.folded)
    return quoted(text)


def _line(site: Site) -> str:
    return "%s %s" % (_place(site), site.function)


def _place(site: Site) -> str:
    installed = _INSTALLED.sub("", site.file)
    file = installed if installed != site.file else inventory.near(site.file)
    if os.path.isabs(file) and foreign(site.file):
        file = os.path.basename(file)
    return "%s:%d" % (file, site.line)


def _values(stacks: Sequence[RankStacks], width: int, say: Language) -> Iterator[StyledLine]:
    """Yield the values by which ranks differ in the innermost function of the job that all of them are in."""
    still = [rank_stacks for rank_stacks in stacks if rank_stacks.values and not rank_stacks.moved_on]
    frames = {rank_stacks.rank: rank_stacks.values for rank_stacks in still}
    place, values = condition_values.in_shared_function(frames)
    if place is None:
        return
    title = text_of("values in {function} at {place}", function=place.function, place=_place(place))
    yield StyledLine(safe.line(say.text(title)), STRONG)
    for text in condition_values.clauses(values):
        for line in wrap(say.text(text), width, "  ", "    "):
            yield StyledLine(safe.line(line))


def _silent(silent: Dict[int, Silence], width: int, say: Language) -> Iterator[StyledLine]:
    """Yield who gave no stacks now, why, and what to do next; the number of a process is shown for a single rank alone."""
    alike: Dict[Tuple[str, str], List[int]] = {}
    counts = Counter(silence.why for silence in silent.values())
    for rank, silence in sorted(silent.items()):
        shown: Tuple[str, str] = silence.whole(), silence.what_to_do
        if counts[silence.why] > 1:
            shown = silence.why, about(silence.what_to_do, pid="PID")
        alike.setdefault(shown, []).append(rank)
    for (why, what_to_do), those in alike.items():
        text = "%s %s%s" % (say.text(ranks_table.who(those)), say.text(about(why, they=named(those))), say("."))
        for line in wrap(text, width, "", "  "):
            yield StyledLine(line, WARN)
        for line in wrap(say("next: %s") % say.text(what_to_do), width, "  ", "    "):
            yield StyledLine(line)
