"""Says what the files of a language lack: labels of the pages, texts of rules and checks, and templates of what a run is told with."""

import ast
import json
import os
import re
from pathlib import Path
from typing import Any, Dict, Iterator, List, Set, Tuple

import ddp_probe
from ddp_probe.activation.installer import activator_files
from ddp_probe.cli import _commands, _help_texts, _parse
from ddp_probe.doctor import check, checks
from ddp_probe.judging import rule, rules
from ddp_probe.shared.errors import ProbeError, UsageError
from ddp_probe.showing import brief_form, catalogue, language, rank_state, ranks_table, rule_page
from ddp_probe.showing.html.page_words import WORDS

_PACKAGE = Path(ddp_probe.__file__).parent
_KINDS_OF_ERROR = {
    "ProbeError",
    "UnusableError",
    "UsageError",
    "NoRunError",
    "NotGatheredError",
    "InvalidFoldError",
    "_HostileError",
}
_OTHERS = {"starting", ", "}
_ENDS = {rank_state.ENDED, rank_state.RUNNING, rank_state.NO_END, rank_state.NO_FILE, "failed", "killed", "stopped", "exit"}
_PLACE = re.compile(r"\{\w*[^{}]*\}|%[\d.]*[a-z]")
_TEMPLATE = re.compile(r"\{[a-z_]+(?::[^{}]*)?\}.*[a-z]{2} |[a-z]{2} .*\{[a-z_]+(?::[^{}]*)?\}")
_PATTERN = re.compile(r"\\|\(\?|\{\d|%[sdr]")  # Of a regular expression, or of another form.
_PAGES = ("showing", "cli", "moving", "attaching")
_RUNS = ("judging", "standing", "reading", "doctor", "checkpoints", "wording", "activation/installer")
"""The rooms that ask for labels, and those that make texts of a run, a host, a file, an installation."""
_ERRORS = ("api.py",)
"""What says nothing but errors."""


def texts() -> Iterator[Tuple[Any, str]]:
    """Yield each rule and each check with the name of each of its texts."""
    for module in rules.modules():
        yield from ((module.RULE, field) for field in rule.TEXTS)
    for module in checks.modules():
        yield from ((module.CHECK, field) for field in check.TEXTS)


def messages() -> Dict[str, str]:
    """Return every English text that a language can have, with the name of the place where it is."""
    found = {str(getattr(page, field)): "%s.%s" % (page.id, field) for page, field in texts()}
    for label in sorted(labels()):
        found.setdefault(label, "a page")
    for template, file in templates():
        found.setdefault(template, file)
    for text, file in errors():
        found.setdefault(text, file)
    return found


def errors() -> Iterator[Tuple[str, str]]:
    """Yield the finished texts of errors, and the forms in which errors are printed."""
    yield from ((form, "shared/errors.py") for form in (ProbeError.form, UsageError.form))
    for path in _files((*_ERRORS, *_PAGES, *_RUNS)):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
            if name in _KINDS_OF_ERROR:
                for text in _whole_arguments(node):
                    yield text, path.relative_to(_PACKAGE).as_posix()


def _whole_arguments(call: ast.Call) -> Iterator[str]:
    for part in (*call.args, *(keyword.value for keyword in call.keywords)):
        for text in _constants(part) if isinstance(part, (ast.Constant, ast.IfExp)) else []:
            if text:
                yield text


def labels() -> Set[str]:
    """Return the English labels of all pages."""
    return {text for text, _ in _said(_PAGES)} | _tables() | set(_help())


def _of_the_activator() -> Iterator[str]:
    """Yield what the installed activator says when it is removed."""
    activator = activator_files.activator()
    yield from (activator._GONE, activator._LEFT, activator._KEPT, activator.CHANGED)


def _help() -> Iterator[str]:
    """Yield the texts of the page of all commands, and of each command's page."""
    yield from (text for text in _commands.PAGE.split("\n\n") if text != "%(about)s")
    yield " ".join(_commands.described(ddp_probe)[0].split())
    yield from _help_texts.HEADINGS
    for module in _commands.modules():
        yield module.COMMAND.summary
        yield from _help_texts.texts(_parse.parser(module))


def templates() -> Iterator[Tuple[str, str]]:
    """Yield the templates of what runs are told with, each with its file: of say(), of tables, and of a rule's Printed."""
    yield from _said(_RUNS)
    for path in _files((*_RUNS, "cli", "moving", "attaching")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        parts = {id(part) for node in ast.walk(tree) for part in _not_whole(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts and _is_template(node.value):
                yield node.value, path.relative_to(_PACKAGE).as_posix()
    for module in rules.modules():
        for printed in module.RULE.printed:
            yield from ((text, "%s, printed" % module.RULE.slug) for text in (printed.says, printed.next) if text)


def _said(rooms: Tuple[str, ...]) -> Iterator[Tuple[str, str]]:
    """Yield the texts that the files of these rooms give to say(), and the numbers with nouns that they count."""
    for path in _files(rooms):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and node.args:
                yield from ((text, path.relative_to(_PACKAGE).as_posix()) for text in _texts_of(node))


def _files(rooms: Tuple[str, ...]) -> List[Path]:
    files: List[Path] = []
    for room in rooms:
        files += [_PACKAGE / room] if room.endswith(".py") else sorted((_PACKAGE / room).rglob("*.py"))
    return files


def _texts_of(call: ast.Call) -> List[str]:
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    of = getattr(getattr(call.func, "value", None), "id", "")
    if name in ("say", "text_of", "translate") and not isinstance(call.args[0], ast.Subscript):
        return _constants(call.args[0])
    if name == "counted" and of == "say":
        return ["%d " + word for word in _constants(call.args[1])]
    if name == "counted" and not of and len(call.args) > 1:
        nouns = [text for part in call.args[1:] for text in _constants(part)]
        return ["{it} " + noun for noun in (nouns if len(nouns) > 1 else [*nouns, *(noun + "s" for noun in nouns)])]
    return []


def _not_whole(node: ast.AST) -> List[ast.expr]:
    """Return the constants of a node that are a docstring, or a piece of a text."""
    if isinstance(node, ast.Expr):
        return [node.value]
    return [node.left, node.right] if isinstance(node, ast.BinOp) else []


def _is_template(text: str) -> bool:
    return bool(_TEMPLATE.search(text)) and not _PATTERN.search(text)


def _constants(part: ast.AST) -> List[str]:
    return [node.value for node in ast.walk(part) if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def constants() -> Set[str]:
    """Return every text in the code: a label or a template can stand in a table, and be asked for by a name."""
    texts: Set[str] = set()
    for path in _files((*_PAGES, *_RUNS, *_ERRORS, "shared/settings.py")):
        texts.update(_constants(ast.parse(path.read_text(encoding="utf-8"))))
    return texts


def _tables() -> Set[str]:
    """Return the words that pages ask for by what they show: headings, phases, ends, results."""
    phases = {word for pair in rank_state.PHASES.values() for word in pair if word}
    results = {check.OK, check.WARN, check.FAIL, check.SKIPPED, check.UNKNOWN}
    degrees = {rule.HIGH, rule.MEDIUM, rule.LOW, rule.WARNING}
    return {
        *rule_page.HUNDREDS.values(),
        *rule_page.RESTARTS.values(),
        *checks.HUNDREDS.values(),
        *phases,
        *_ENDS,
        *results,
        *degrees,
        *(word for key, word in WORDS.items() if key != "lang"),
        ranks_table.NOTE,
        brief_form.GOOD_ORDER,
        *_OTHERS,
        *_of_the_activator(),
    }


def lacking(say: language.Language) -> Dict[str, str]:
    """Return the texts that a language has no translation of, each with its place."""
    known = say.translations
    return {text: place for text, place in messages().items() if text not in known and _has_words(text)}


def _has_words(text: str) -> bool:
    """Tell whether there is something to translate: a text of marks and places has nothing, nor has a name such as device_ids."""
    return bool(re.search("[a-z]", _PLACE.sub("", text))) and not re.fullmatch(r"[a-z]+(?:_[a-z]+)+", text)


def told(say: language.Language) -> List[str]:
    """Return the same for a person, as entries to be filled in; nothing if nothing is lacking."""
    missing = lacking(say)
    folder = os.path.relpath(os.path.join(catalogue.FOLDER, say.name), str(_PACKAGE.parent))
    lines = ["%s lacks %d texts. Fill in these entries in its files:" % (folder, len(missing))] if missing else []
    for text, place in missing.items():
        lines += ["", "#. %s" % place, "msgid %s" % json.dumps(text, ensure_ascii=False), 'msgstr ""']
    return lines
