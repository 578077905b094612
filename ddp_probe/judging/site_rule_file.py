"""Reads one file of a site's own rules: a rule by words, as TOML. It is data, of which no part runs."""

import os
import re
import sys
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

from ddp_probe.judging.causes import SITE_CAUSE
from ddp_probe.judging.pattern_cost import CostlyPatternError, refuse_costly
from ddp_probe.judging.printed import by_text, searchable
from ddp_probe.judging.rule import SITE, Printed, Rule, constant
from ddp_probe.judging.rule_problems import problems
from ddp_probe.judging.rules import RETIRED, modules, rule_of
from ddp_probe.reading.load_run import from_text
from ddp_probe.shared.regular_files import open_bytes
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import listed, quoted

ENDING = ".toml"
_LARGEST = 16_384  # Bytes of a file.
_LONGEST = {"title": 200, "verdict": 400, "remedy": 2000}  # Characters of a text.
_LONGEST_PATTERN, _MOST_PATTERNS = 500, 10
_LONGEST_LINE, _MOST_LINES = 4000, 20
_NEEDED = ("title", "remedy", "restart", "match", "must_match", "must_not_match")
_TEXTS = ("title", "verdict", "remedy")
_ALLOWED = (*_NEEDED, "verdict", "beside", "unless", "zh")
_SLUG = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_LINE = re.compile(r"at line (\d+)")
_KEYS = {"pattern": "match", "says": "verdict"}
"""What a field of a rule is called in a file, if not the same."""


class SiteRule(NamedTuple):
    """One rule of a site; as a module of ours, it has its rule as RULE."""

    RULE: Rule
    file: str
    must_match: Tuple[str, ...]
    must_not_match: Tuple[str, ...]
    chinese: Dict[str, str]  # By the English text.


class RefusedFile(NamedTuple):
    """A file that is not a rule, with the line and the reason; line 0 is the file as a whole."""

    file: str
    line: int
    why: Text

    @property
    def place(self) -> str:
        """Return the file and the line, as editors take them."""
        return "%s:%d" % (self.file, self.line) if self.line else self.file


class RefusedRuleError(Exception):
    """The reason why a file is not a rule, and the key that it is about."""

    def __init__(self, why: Text, key: str = "", text: str = "", line: int = 0) -> None:
        super().__init__(why)
        self.why, self.key, self.text, self.line = why, key, text, line


def read(path: str) -> "SiteRule | RefusedFile":
    """Return the rule of a file, or why it is refused."""
    source = ""
    try:
        source = _source(path)
        return _rule(path, _parsed(source))
    except RefusedRuleError as exc:
        return RefusedFile(path, exc.line or _line_of(source, exc.key, exc.text), exc.why)


def _source(path: str) -> str:
    try:
        with open_bytes(path) as file:
            data = file.read(_LARGEST + 1)
    except OSError as exc:
        why = say("It cannot be read: {why}.", why=quoted(exc.strerror or str(exc)))
        raise RefusedRuleError(why) from exc
    if len(data) > _LARGEST:
        raise RefusedRuleError(say("It has more than {most} bytes.", most=_LARGEST))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as exc:
        line = data[: exc.start].count(b"\n") + 1
        raise RefusedRuleError(say("It is not UTF-8."), line=line) from exc


def _parsed(source: str) -> Dict[str, Any]:
    try:
        if sys.version_info >= (3, 11):
            import tomllib
        else:
            import tomli as tomllib
    except ImportError as exc:
        template = "Before Python 3.11, rules need tomli: {install}."
        raise RefusedRuleError(say(template, install=quoted("pip install 'ddp-probe[rules]'"))) from exc
    try:
        return tomllib.loads(source)
    except (ValueError, RecursionError) as exc:
        line = _LINE.search(str(exc))
        why = say("It is not TOML: {error}.", error=quoted(str(exc)[:200]))
        raise RefusedRuleError(why, line=int(line.group(1)) if line is not None else 0) from exc


def _rule(path: str, fields: Dict[str, Any]) -> SiteRule:
    slug = os.path.basename(path)[: -len(ENDING)]
    if not _SLUG.fullmatch(slug) or len(slug) > 60:
        template = "The file has to be named after its rule: lower-case words with hyphens, such as {name}."
        raise RefusedRuleError(say(template, name="scratch-is-stale" + ENDING))
    if slug in RETIRED.values() or any(rule_of(module).slug == slug for module in modules()):
        raise RefusedRuleError(say("A rule of ddp_probe has the name {slug}.", slug=slug))
    _check_keys(fields, _ALLOWED)
    for key in _NEEDED:
        if key not in fields:
            raise RefusedRuleError(say("It has no {key}.", key=key))
    texts = {key: _text(fields, key) for key in (*_TEXTS, "restart") if key in fields}
    patterns = _strings(fields, "match", _MOST_PATTERNS, _LONGEST_PATTERN)
    beside, unless = _condition(fields, "beside"), _condition(fields, "unless")
    says = texts.get("verdict", "")
    printed = tuple(Printed(pattern, beside=beside, unless=unless, says=says) for pattern in patterns)
    site_rule = SiteRule(
        _page(slug, texts, printed, fields),
        path,
        tuple(_strings(fields, "must_match", _MOST_LINES, _LONGEST_LINE)),
        tuple(_strings(fields, "must_not_match", _MOST_LINES, _LONGEST_LINE)),
        _chinese(fields, texts),
    )
    _check(site_rule)
    return site_rule


def _page(slug: str, texts: Dict[str, str], printed: Tuple[Printed, ...], fields: Dict[str, Any]) -> Rule:
    return Rule(
        id=SITE,
        slug=slug,
        cause=SITE_CAUSE,
        title=texts["title"],
        symptom=_strings(fields, "must_match", _MOST_LINES, _LONGEST_LINE)[0],
        evidence="\n".join(text.pattern for text in printed),
        remedy=texts["remedy"],
        restart=texts["restart"],
        printed=printed,
    )


def _check_keys(fields: Dict[str, Any], allowed: Tuple[str, ...]) -> None:
    for key in fields:
        if key not in allowed:
            template = "{key} is not a key of a rule: {keys}."
            why = say(template, key=quoted(key[:60]), keys=listed(allowed))
            raise RefusedRuleError(why, key)


def _text(fields: Dict[str, Any], key: str) -> str:
    text = fields[key]
    if not isinstance(text, str) or not text.strip():
        raise RefusedRuleError(say("{key} needs a text.", key=key), key)
    if len(text) > _LONGEST.get(key, 20):
        most = _LONGEST.get(key, 20)
        raise RefusedRuleError(say("{key} has more than {most} characters.", key=key, most=most), key)
    if not text.replace("\n", "").isprintable():
        raise RefusedRuleError(say("{key} has characters that control a terminal.", key=key), key)
    return text.strip()


def _strings(fields: Dict[str, Any], key: str, most: int, longest: int) -> List[str]:
    given = fields[key]
    strings = given if isinstance(given, list) else [given]
    if not strings or not all(isinstance(item, str) and item.strip() for item in strings):
        raise RefusedRuleError(say("{key} needs a text, or a list of some.", key=key), key)
    if len(strings) > most:
        raise RefusedRuleError(say("{key} has more than {most} texts.", key=key, most=most), key)
    for item in strings:
        if len(item) > longest:
            why = say("A text of {key} has more than {most} characters.", key=key, most=longest)
            raise RefusedRuleError(why, key, item)
    return strings


def _condition(fields: Dict[str, Any], key: str) -> str:
    return _strings(fields, key, 1, _LONGEST_PATTERN)[0] if key in fields else ""


def _chinese(fields: Dict[str, Any], english: Dict[str, str]) -> Dict[str, str]:
    table = fields.get("zh", {})
    if not isinstance(table, dict):
        raise RefusedRuleError(say("{key} is a table of texts.", key="zh"), "zh")
    _check_keys(table, _TEXTS)
    chinese: Dict[str, str] = {}
    for key in table:
        text = _text(table, key)
        if key == "verdict":
            chinese[english.get(key, "")] = text
        else:
            chinese[english[key]] = text
            chinese[constant(english[key]).template] = constant(text).template
    return chinese


def _check(site_rule: SiteRule) -> None:
    """Hold a rule to what all rules are held to, to the cost of its patterns, and to its own lines."""
    for problem in problems(site_rule.RULE):
        raise RefusedRuleError(problem.why, _KEYS.get(problem.field, problem.field), problem.text)
    verdict = site_rule.chinese.get(site_rule.RULE.printed[0].says, "")
    for problem in problems(_with_verdict(site_rule.RULE, verdict)):
        raise RefusedRuleError(problem.why, "zh", problem.text)
    for printed in site_rule.RULE.printed:
        _check_places(site_rule, printed.pattern)
        _check_cost("match", printed.pattern)
        _check_cost("beside", printed.beside)
        _check_cost("unless", printed.unless)
    for lines in site_rule.must_match:
        _check_match(site_rule.RULE, lines)
    for lines in site_rule.must_not_match:
        if is_answered(site_rule.RULE, lines):
            why = say("The rule matches this line, which it must not match.")
            raise RefusedRuleError(why, "must_not_match", lines)


def _with_verdict(rule: Rule, verdict: str) -> Rule:
    return rule._replace(printed=tuple(printed._replace(says=verdict) for printed in rule.printed))


def _check_places(site_rule: SiteRule, pattern: str) -> None:
    """Refuse a place such as {host} in a text that is shown as it is written."""
    rule = site_rule.RULE
    for group in re.compile(pattern).groupindex:
        for key, text in (("title", rule.title), ("remedy", rule.remedy)):
            place = "{%s}" % group
            if place in text or place in site_rule.chinese.get(text, ""):
                template = "{key} has the place {place}, which only verdict can have."
                raise RefusedRuleError(say(template, key=key, place=quoted(place)), key)


def _check_cost(key: str, pattern: str) -> None:
    try:
        refuse_costly(pattern)
    except CostlyPatternError as exc:
        why = say("The search for this pattern may take too long: {why}.", why=exc.why)
        raise RefusedRuleError(why, key, pattern) from exc


def _check_match(rule: Rule, lines: str) -> None:
    if is_answered(rule, lines):
        return
    why = say("The rule does not match this line, which it must match.")
    if any(searchable(printed.pattern).search(lines) for printed in rule.printed):
        template = "The pattern matches this line, but a report passes over it: {why}."
        why = say(template, why=say("nothing in it says that something failed, or another key excludes it"))
    raise RefusedRuleError(why, "must_match", lines)


def is_answered(rule: Rule, lines: str) -> bool:
    """Tell whether a rule has an answer to a log of these lines."""
    return any(True for _ in by_text(rule, from_text(lines), plain=True))


def _line_of(source: str, key: str, text: str) -> int:
    """Return the line that a refusal is about: that of the text, else that of the key; 0 for neither."""
    lines = source.splitlines()
    begin = next(_lines_of_key(lines, key), 0)
    first = text.strip().splitlines()[0] if text.strip() else ""
    for number, line in enumerate(lines[begin - 1 :] if begin else (), begin):
        if first and first in line:
            return number
    return begin


def _lines_of_key(lines: List[str], key: str) -> Iterator[int]:
    pattern = re.compile(r"""\s*\[?\s*["']?%s["']?\s*[\]=.]""" % re.escape(key))
    for number, line in enumerate(lines, 1):
        if key and pattern.match(line):
            yield number
