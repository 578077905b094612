"""How the sentences of doctor name ranks and counts; the layers of the package keep it apart from diagnose/words.py."""

from typing import List, Sequence

_GROUPS = 12


def named(ranks: Sequence[int]) -> str:
    """Return ranks as a sentence begins with them: Rank 3; Ranks 0-2, 5."""
    return ("Rank %s" if len(ranks) == 1 else "Ranks %s") % spans(ranks)


def spans(ranks: Sequence[int]) -> str:
    """Return ranks with neighbours folded: 0-2, 5."""
    groups: List[List[int]] = []
    for rank in sorted(set(ranks)):
        if groups and rank == groups[-1][-1] + 1:
            groups[-1].append(rank)
        else:
            groups.append([rank])
    shown = ["%d" % group[0] if len(group) == 1 else "%d-%d" % (group[0], group[-1]) for group in groups[:_GROUPS]]
    return ", ".join(shown) + (" and %d more groups" % (len(groups) - _GROUPS) if len(groups) > _GROUPS else "")


def counted(count: int, one: str) -> str:
    """Return a number with its noun: 1 card, 2 cards."""
    return "%d %s%s" % (count, one, "" if count == 1 else "s")
