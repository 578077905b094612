"""Prints docs/rules.md and docs/rules.zh-CN.md from ddp_probe/judging/rules."""

from typing import Dict, Iterator, Tuple

from ddp_probe.judging.rule import Rule
from ddp_probe.judging.rules import modules, rule_of
from ddp_probe.showing.language import CHINESE, ENGLISH, Language
from ddp_probe.showing.rule_page import RESTARTS
from docs_parts.markdown import NOTE, anchor, prose

_HEAD: Dict[str, Tuple[str, ...]] = {
    "en": (
        "# Rules",
        "",
        "[中文](rules.zh-CN.md)",
        "",
        "One file each under `ddp_probe/judging/rules/`, with the examples that test it in `tests/rules/`.",
        "`python -m ddp_probe explain DDP101` prints a page with its examples. An id and a slug never change; a cause may have several rules.",
    ),
    "zh": (
        "# 规则",
        "",
        "[English](rules.md)",
        "",
        "每条规则是 `ddp_probe/judging/rules/` 下的一个文件，`tests/rules/` 里的示例就是它的测试。",
        "`python -m ddp_probe explain DDP101` 打印一条规则及其示例。编号和名称永远不变；一个原因可以有多条规则。",
    ),
}
_NAMES = {
    "cause": "原因",
    "severity": "级别",
    "symptom": "现象",
    "evidence": "判定依据",
    "what to change": "如何修改",
    "does a restart help": "重启是否有用",
    "needs": "所需事件",
    "is superseded by": "优先级低于",
}


def rules_page() -> str:
    """Return docs/rules.md."""
    return _page(ENGLISH)


def rules_page_in_chinese() -> str:
    """Return docs/rules.zh-CN.md."""
    return _page(CHINESE)


def _page(say: Language) -> str:
    rules, colon = [rule_of(module) for module in modules()], say(": ")
    titles = [(rule, prose(say.of(rule, "title"))) for rule in rules]
    lines = [
        NOTE % "ddp_probe/judging/rules",
        *_HEAD[say.name],
        "",
        *("- [%s %s](#%s)%s%s" % (rule.id, rule.slug, anchor("%s-%s" % (rule.id, rule.slug)), colon, title) for rule, title in titles),
    ]
    for rule, title in titles:
        lines += ["", "## %s %s" % (rule.id, rule.slug), "", title, "", "| | |", "|---|---|"]
        named = ((_NAMES[name] if say is CHINESE else name, text) for name, text in described(rule, say))
        lines += ["| %s | %s |" % (name, prose(" ".join(text.split()))) for name, text in named if text]
    return "\n".join(lines) + "\n"


def described(rule: Rule, say: Language) -> Iterator[Tuple[str, str]]:
    """Yield what a rule's page says, by name."""
    yield "cause", "`%s`" % rule.cause
    yield "severity", rule.severity
    yield "symptom", say.of(rule, "symptom")
    yield "evidence", say.of(rule, "evidence")
    yield "what to change", say.of(rule, "remedy")
    yield "does a restart help", say(RESTARTS[rule.restart])
    yield "needs", ", ".join("`%s`" % name for name in rule.needs)
    yield "is superseded by", ", ".join("`%s`" % name for name in rule.yields_to)
