"""Says what the file of a language lacks: labels of the pages, and texts of rules and checks that are missing or translate another English text."""

import ast
import json
import os
from pathlib import Path
from typing import Any, Iterator, List, Set, Tuple

import ddp_probe
from ddp_probe.judging import rule, rules
from ddp_probe.judging.doctor import check, checks
from ddp_probe.showing import brief_form, language, rank_state, ranks_table, rule_page

_PACKAGE = Path(ddp_probe.__file__).parent
_OTHERS = {"starting", "a process", " and %d more groups"}
_ENDS = {rank_state.ENDED, rank_state.RUNNING, rank_state.NO_END, rank_state.NO_FILE, "failed", "killed", "stopped", "exit"}


def texts() -> Iterator[Tuple[Any, str]]:
    """Yield each rule and each check with the name of each of its texts."""
    for module in rules.modules():
        yield from ((module.RULE, field) for field in rule.TEXTS)
    for module in checks.modules():
        yield from ((module.CHECK, field) for field in check.TEXTS)


def labels() -> Set[str]:
    """Return the English labels of all pages."""
    return _asked() | _tables()


def _asked() -> Set[str]:
    """Return the words that pages ask for by name: say("…"), and say.counted(number, "…")."""
    words: Set[str] = set()
    for call in _calls():
        parts = [call.args[0]] if isinstance(call.func, ast.Name) and call.func.id == "say" else []
        counted = isinstance(call.func, ast.Attribute) and call.func.attr == "counted" and getattr(call.func.value, "id", "") == "say"
        parts += [call.args[1]] if counted else []
        for part in parts:
            found = [node.value for node in ast.walk(part) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
            words.update("%d " + word if counted else word for word in found)
    return words


def _calls() -> Iterator[ast.Call]:
    for path in sorted([*(_PACKAGE / "showing").glob("*.py"), *(_PACKAGE / "cli").glob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                yield node


def _tables() -> Set[str]:
    """Return the words that pages ask for by what they show: headings, phases, ends, results."""
    phases = {word for pair in rank_state._PHASES.values() for word in pair if word}
    results = {check.OK, check.WARN, check.FAIL, check.SKIPPED, check.UNKNOWN}
    degrees = {rule.HIGH, rule.MEDIUM, rule.LOW, rule.WARNING}
    return {
        *rule_page.HUNDREDS.values(),
        *checks.HUNDREDS.values(),
        *phases,
        *_ENDS,
        *results,
        *degrees,
        ranks_table.NOTE,
        brief_form.GOOD_ORDER,
        *_OTHERS,
    }


def lacking(say: language.Language) -> List[str]:
    """Return what has to be written in the file of a language: for each text, the English one as a comment and the line to fill in."""
    known = say.translations
    lines = ["%s: %s" % (json.dumps(label), json.dumps("")) for label in sorted(labels()) if not known.labels.get(label)]
    for each, field in texts():
        english, key = str(getattr(each, field)), language.key(each, field)
        was = known.texts.get(key, language.Translated("", ""))
        if not was.text or was.digest != language.digest(english):
            lines += ["# %s" % english, ("%s %s %s" % (key, language.digest(english), was.text)).rstrip()]
    return lines


def told(say: language.Language) -> List[str]:
    """Return the same for a person, below a sentence that names the file; nothing if nothing is lacking."""
    lines = lacking(say)
    number = sum(not line.startswith("#") for line in lines)
    path = os.path.relpath(language.path(say.name), str(_PACKAGE.parent))
    about = "%s lacks %d texts, or translates English ones that have changed since. Fill in these lines there, and remove the old ones:"
    return [about % (path, number), *lines] if lines else []
