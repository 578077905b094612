"""Prints docs/rules.md from ddp_probe/diagnose/rules."""

from typing import Iterator, Tuple

from ddp_probe.diagnose.rule import Rule
from ddp_probe.diagnose.rules import modules, rule_of
from docs_parts.markdown import NOTE, anchor, prose


def rules_page() -> str:
    """Return docs/rules.md."""
    rules = [rule_of(module) for module in modules()]
    lines = [
        NOTE % "ddp_probe/diagnose/rules",
        "# Rules",
        "",
        "One file each under `ddp_probe/diagnose/rules/`, with the examples that test it. Those in its folder `by_words/` hold texts and examples",
        "only. `python -m ddp_probe explain DDP101` prints a page with its examples. An id and a slug never change; a cause may have several rules.",
        "",
        *("- [%s %s](#%s): %s" % (rule.id, rule.slug, anchor("%s-%s" % (rule.id, rule.slug)), prose(rule.title)) for rule in rules),
    ]
    for rule in rules:
        lines += ["", "## %s %s" % (rule.id, rule.slug), "", prose(rule.title), "", "| | |", "|---|---|"]
        lines += ["| %s | %s |" % (name, prose(" ".join(text.split()))) for name, text in described(rule) if text]
    return "\n".join(lines) + "\n"


def described(rule: Rule) -> Iterator[Tuple[str, str]]:
    """Yield what a rule's page says, by name."""
    yield "cause", "`%s`" % rule.cause
    yield "severity", rule.severity
    yield "symptom", rule.symptom
    yield "evidence", rule.evidence
    yield "what to change", rule.remedy
    yield "needs", ", ".join("`%s`" % name for name in rule.needs)
    yield "gives way to", ", ".join("`%s`" % name for name in rule.yields_to)
