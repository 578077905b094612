"""Prints docs/messages.md: the messages that the rules quote in their symptoms, each with the rules that know it."""

import re
from typing import Dict, Iterator, List

from ddp_probe.judging.rule import Rule
from ddp_probe.judging.rules import modules, rule_of
from docs_parts.markdown import NOTE, anchor

_OPENS = re.compile(r"(?:^|(?<=[\s(]))['\"]")
_SHORTEST = 8  # Characters: 'cuda:0' is a name, not a message.


def messages_page() -> str:
    """Return docs/messages.md."""
    found: Dict[str, List[Rule]] = {}
    for rule in map(rule_of, modules()):
        for quoted in _quoted(rule.symptom):
            found.setdefault(quoted, []).append(rule)
    lines = [
        NOTE % "the symptoms in ddp_probe/judging/rules",
        "# From a message to its rule",
        "",
        "Search this page for a piece of your message without its numbers and paths; `…` stands for what differs. Several rules may know one",
        "message: what else is in the log or the run decides. `python -m ddp_probe report err.log` looks for you, and a run with `DDP_PROBE=1`",
        "knows more. Messages of the probe itself are in [troubleshooting.md](troubleshooting.md).",
        "",
        "| message | rules |",
        "|---|---|",
        *("| `%s` | %s |" % (text.replace("|", "\\|"), "<br>".join(map(_named, found[text]))) for text in sorted(found, key=str.lower)),
    ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> Iterator[str]:
    """Yield what a text quotes: from a mark to the next such mark outside of brackets, as a message may quote something itself."""
    end = 0
    for opening in _OPENS.finditer(text):
        closings = [place for place, mark in enumerate(text) if mark == opening[0] and place >= opening.end() > end]
        for place in closings:
            inner = text[opening.end() : place]
            if all(inner.count(one) == inner.count(other) for one, other in ("()", "{}")) and re.match(r"[^\w'\"]|$", text[place + 1 :]):
                end = place
                if len(inner) > _SHORTEST and not inner.startswith("if "):
                    yield inner
                break


def _named(rule: Rule) -> str:
    return "[%s](rules.md#%s) %s" % (rule.id, anchor("%s-%s" % (rule.id, rule.slug)), rule.slug)
