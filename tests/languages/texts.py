"""What two texts of one page must have in common: names, numbers and what they quote; and what Chinese text has to look like."""

import re
from typing import Iterable, Iterator, List, Set

CHINESE = re.compile("[\u3400-\u9fff]")
_HAN, _FULL = "\u3400-\u9fff", "，。：；、！？（）《》"
_QUOTED = re.compile(r"(?<![A-Za-z0-9_)}'])'([^'].*?)'(?![A-Za-z0-9_])|\"(.+?)\"|`([^`]+)`")
_NAMES = (
    r"[A-Za-z_][A-Za-z0-9_]*(?:[._]+[A-Za-z0-9_]+)+",  # torch.load, local_rank, DDP_PROBE_FIX
    r"[A-Za-z0-9]*[a-z][A-Z][A-Za-z0-9]*",  # OutOfMemoryError
    r"\b[A-Z][A-Z0-9]{2,}\b",  # NCCL
    r"(?<![\w-])--?[a-z][a-z_-]*",  # --nproc_per_node, -c
    r"\d+(?:\.\d+)*",
)
_WRONG = (
    ("an ASCII mark beside a Chinese character", r"[%s]\s*[,;:?!]|[,;?!]\s*[%s]|[%s]\.(?!\.)" % (_HAN, _HAN, _HAN)),
    ("ASCII brackets around Chinese text", r"[%s] ?\([%s]|[%s]\)[%s]" % (_HAN, _HAN, _HAN, _HAN)),
    ("no space between a Chinese character and a Latin one", r"[%s][A-Za-z0-9]|[A-Za-z0-9][%s]" % (_HAN, _HAN)),
    ("a space between two Chinese characters", r"[%s] +[%s]" % (_HAN, _HAN)),
    ("a space beside a Chinese mark", r" [%s]|[%s] " % (_FULL, _FULL)),
)


def names(text: str, slugs: Iterable[str]) -> Set[str]:
    """Return the names of APIs, variables, options and rules in a text, its numbers, and what it quotes."""
    flat = " ".join(text.split())
    found = {name for pattern in _NAMES for name in re.findall(pattern, flat)}
    found |= {"'%s'" % next(filter(None, groups)) for groups in _QUOTED.findall(flat)}
    return found | {slug for slug in slugs if re.search(r"(?<![\w-])%s(?![\w-])" % re.escape(slug), flat)}


def wrong(text: str) -> Iterator[str]:
    """Yield what a Chinese text does not do as the others do; what it quotes does not count."""
    plain = _QUOTED.sub("“”", text)
    for what, pattern in _WRONG:
        found = re.search(pattern, plain)
        if found is not None:
            yield "%s: %r" % (what, plain[max(0, found.start() - 10) : found.end() + 10])


def mistakes(english: str, chinese: str, slugs: List[str]) -> List[str]:
    """Return what is wrong with the Chinese text of an English one."""
    if not chinese.strip():
        return ["it is missing"]
    if not CHINESE.search(chinese):
        return ["it has no Chinese character"]
    one, other = names(english, slugs), names(chinese, slugs)
    lost, added = sorted(one - other), sorted(other - one)
    return [*wrong(chinese), *(["it lacks %s" % ", ".join(lost)] if lost else []), *(["it adds %s" % ", ".join(added)] if added else [])]
