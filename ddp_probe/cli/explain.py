"""Print the page of a rule, or of a check of doctor; without a name, their groups.

NAME is an id or a name (DDP104, submodule-left-behind, DOC301), the beginning
of an id (DDP6: its rules are listed), or words ("out of memory", hang, 显存):
the rules and checks whose name, title, symptom or cause has all of them are
listed. --all lists every one.

With a PATH, which is a run, a file of one or an archive of 'bundle', the page
begins with what the rule found there and the change: as a diff of the job's
own source for patch -p1, if the source is available, and as shell lines, such
as variables to set and the command to start the job. If the source has changed
since the run began, the page says so and has no diff.

--diff prints the diff alone; without a PATH, that of the newest run:

  python -m ddp_probe explain DDP102 --diff | git apply
"""

import argparse
import re
import sys
from typing import Any, Iterable, Iterator, List, Sequence

import ddp_probe
from ddp_probe.cli._commands import PAGES, RUNS, Command
from ddp_probe.shared.errors import UsageError
from ddp_probe.wording.text import say
from ddp_probe.wording.words import listed

# What people type for what the texts call otherwise, each group in both languages, by how the words begin.
_SAME = (
    ("hang", "hung", "stuck", "deadlock", "freez", "frozen", "stall", "卡住", "卡死", "死锁", "挂起", "挂住", "停住"),
    ("oom", "out of memory", "显存不足", "显存不够", "内存不足", "爆显存"),
    ("gpu", "card", "卡号", "显卡"),
    ("slow", "straggl", "慢"),
    ("crash", "killed", "signal", "崩溃", "被杀", "信号"),
    ("timeout", "timed out", "超时"),
    ("port", "端口"),
    ("version", "版本"),
)

COMMAND = Command(
    "explain", order=110, summary="Print the page of a rule or a check, or find one by words.", paints=True, offers={"name": PAGES, "paths": RUNS}
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("name", nargs="?", metavar="NAME", help="an id, a name, the beginning of an id, or words")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="a run to apply the rule to")
    parser.add_argument("--diff", action="store_true", help="print the diff alone, for git apply or patch -p1")
    parser.add_argument("--all", action="store_true", help="list all rules and checks")


def run(args: argparse.Namespace) -> int:
    """Print the page, or a list."""
    from ddp_probe.judging import rules
    from ddp_probe.showing import language, paint

    say = language.chosen(sys.stdout)
    width = min(paint.width(), 110)
    wanted = (args.name or "").strip().lower().replace("_", "-")
    module = None
    if wanted and not args.all:
        module = rules.named(wanted) or _of_site(wanted)
    if module is not None and args.diff:
        return _diff(module, args.paths)
    _print(_pages(args, wanted, width, say) if module is None else _page(module, args.paths, width, say))
    return 0


def _of_site(slug: str) -> Any:
    """Return a rule of the site; the page of one of ours loads none."""
    from ddp_probe.judging import site_rules

    return site_rules.named(slug)


def _page(module: Any, paths: List[str], width: int, say: Any) -> Iterator[Any]:
    """Yield the page of a rule; no other rule is imported."""
    from ddp_probe.judging import examples
    from ddp_probe.judging.rule import SITE
    from ddp_probe.showing import rule_page

    yield from _in_run(module, paths, width, say) if paths else ()
    shown = examples.of(module.RULE.slug)
    if module.RULE.id == SITE:
        shown = examples.of_lines(module.must_match, module.must_not_match)
    yield from rule_page.page(module.RULE, shown, width, say)


def _pages(args: argparse.Namespace, wanted: str, width: int, say: Any) -> Iterable[Any]:
    """Return the page of a check, or a list of rules and checks."""
    from ddp_probe.doctor import checks
    from ddp_probe.judging.rules import RETIRED, modules, rule_of
    from ddp_probe.showing import doctor_page, rule_page
    from ddp_probe.showing.layout import StyledLine

    rules, asked = [rule_of(module) for module in modules()], [module.CHECK for module in checks.modules()]
    if args.all:
        return [*rule_page.listing(rules, width, say), *doctor_page.listing(asked, width, say)]
    if args.name is None:
        return _groups(rules, asked, say)
    for check in asked:
        if wanted in (check.id.lower(), check.slug):
            return doctor_page.page(check, width, say)
    for number, slug in RETIRED.items():
        if wanted in (number.lower(), slug):
            return [StyledLine(say("%s %s is retired: no rule has this name now.") % (number, slug))]
    matching = [_matching(args.name, pages) for pages in (rules, asked)]
    if not any(matching):
        raise _unknown(args.name, [name for rule in rules for name in (rule.slug, rule.id)])
    return [*rule_page.listing(matching[0], width, say), *doctor_page.listing(matching[1], width, say)]


def _groups(rules: Sequence[Any], checks: Sequence[Any], say: Any) -> Iterable[Any]:
    from ddp_probe.doctor.checks import HUNDREDS
    from ddp_probe.showing import rule_page

    yield from rule_page.hundreds(rules, rule_page.HUNDREDS, say)
    yield from rule_page.hundreds(checks, HUNDREDS, say)
    yield from rule_page.ways(say)


def _matching(name: str, pages: Sequence[Any]) -> List[Any]:
    """Return the rules or checks of a group, or those with all of these words in a text of theirs, in either language."""
    from ddp_probe.showing.language import CHINESE

    group = re.fullmatch(r"(ddp|doc)(\d{1,2})x{0,2}", name.strip().lower())
    if group is not None:
        return [page for page in pages if page.id.lower().startswith(group[1] + group[2])]
    words = [_word(word) for word in name.lower().split()]
    texts = {page.id: " ".join(_texts(page, CHINESE)).lower() for page in pages}
    return [page for page in pages if words and all(word.search(texts[page.id]) for word in words)]


def _word(word: str) -> "re.Pattern[str]":
    """Return a pattern that finds a word, or one with the same meaning, at the beginning of a word."""
    same = next((group for group in _SAME if any(word.startswith(alias) for alias in group)), (word,))
    return re.compile("(?<![a-z])(?:%s)" % "|".join(map(re.escape, dict.fromkeys((word, *same)))))


def _texts(page: Any, other: Any) -> Iterator[str]:
    yield from (page.slug.replace("-", " "), getattr(page, "cause", "").replace("_", " "))
    for field in ("title", "symptom"):
        if hasattr(page, field):
            yield from (str(getattr(page, field)), other.of(page, field))


def _in_run(module: Any, paths: List[str], width: int, say: Any) -> Iterable[Any]:
    """Yield what the rule found in a run, and the change in the job's source."""
    from ddp_probe.judging.rules import rule_of
    from ddp_probe.reading import bundled
    from ddp_probe.showing import found, safe
    from ddp_probe.showing.layout import GLUE, StyledLine
    from ddp_probe.showing.paths import Paths

    with bundled.opened(paths) as inside:
        rule = rule_of(module)
        diagnosis = ddp_probe.diagnose(ddp_probe.read(*inside), rules=[rule.id])
        names = Paths(diagnosis.run, GLUE)
        yield StyledLine(say("%s in %s") % ("%s %s" % (rule.id, rule.slug), safe.line(diagnosis.run.name) or say("this log")), "strong")
        if not diagnosis.findings:
            yield StyledLine(say("The rule finds nothing in it."))
        for finding in diagnosis.findings:
            yield from names.places.linked(found.cause(finding, diagnosis, width, names, 3, say))
    yield StyledLine("")


def _diff(module: Any, paths: List[str]) -> int:
    """Print the change that a rule names in a run, as it is in the files, or say why there is none."""
    from ddp_probe.judging.rules import rule_of
    from ddp_probe.reading import bundled
    from ddp_probe.shared.errors import UnusableError
    from ddp_probe.showing import own_change, source

    with bundled.opened(paths) as inside:
        diagnosis = ddp_probe.diagnose(ddp_probe.read(*inside), rules=[rule_of(module).id])
        changes = list(dict.fromkeys("\n".join(lines) for lines in map(own_change.diff, diagnosis.findings) if lines))
        newer = source.newer([file for finding in diagnosis.findings for file in own_change.files(finding)], diagnosis.run)
        if newer or not changes:
            why = say("Its change is not in a file that is available here.")
            if newer:
                why = say("{path} changed at {when}, after the run began.", path=newer[0], when=newer[1])
            elif not diagnosis.findings:
                why = say("The rule finds nothing in {run}.", run=diagnosis.run.name)
            what_to_do = "The page says what to change: the same command without --diff."
            raise UnusableError(what="No diff can be made.", why=why, what_to_do=what_to_do)
    _print_as_it_is("\n".join(changes) + "\n")
    return 0


_WHITE = ("\t", "\n", "\r\n", "\f")
_PARTS = re.compile("(\r\n|[\t\n\f])")


def _print_as_it_is(text: str) -> None:
    """Print lines of a file: a pipe gets their bytes, and a terminal no escape sequence. A pipe may lead to a terminal, or to the log of CI."""
    from ddp_probe.shared.errors import UnusableError
    from ddp_probe.showing import safe

    shown = "".join(part if part in _WHITE else safe.visible(part) for part in _PARTS.split(text))
    if sys.stdout.isatty():
        print(shown, end="")
    elif shown == text:
        sys.stdout.buffer.write(text.encode("utf-8"))
    else:
        raise UnusableError(
            what="No diff can be made.",
            why=say(
                "The lines hold characters that would control a terminal: {line}",
                line=safe.line(next(_harmed(text, shown)), 200),
            ),
            what_to_do="Write them as escapes in the file (\\x1b, \\u202e). The page says what to change: the same command without --diff.",
        )


def _harmed(text: str, shown: str) -> Iterator[str]:
    """Yield the lines that differ once they are made visible."""
    return (line for line, other in zip(text.split("\n"), shown.split("\n")) if line != other)


def _print(lines: Iterable[Any]) -> None:
    from ddp_probe.showing import paint

    paint.write(lines)


def _unknown(name: str, names: "list[str]") -> UsageError:
    import difflib

    from ddp_probe.showing import safe

    what_happened = say("No rule or check matches {name}.", name=safe.line(repr(name), 100))
    number = re.fullmatch(r"(?i)((?:ddp|doc)\d)\d+", name.strip())
    if number:  # An id that differs in a digit is another rule: suggest its group.
        from ddp_probe.doctor import checks
        from ddp_probe.showing import rule_page

        about = {**rule_page.HUNDREDS, **checks.HUNDREDS}.get(number[1].upper())
        if about:
            template = "'python -m ddp_probe explain {letters}' lists what is about {about}."
            return UsageError(what_happened, say(template, letters=number[1].upper(), about=say(about)))
        return UsageError(what_happened, say("'python -m ddp_probe explain' lists the groups."))
    close = difflib.get_close_matches(name.lower(), [other.lower() for other in names], n=3, cutoff=0.5)
    meant = [other for word in close for other in names if other.lower() == word]
    groups = say("'python -m ddp_probe explain' lists the groups.")
    if meant:
        return UsageError(what_happened, say("Did you mean {name}?", name=listed(meant, by=" or ")))
    return UsageError(what_happened, groups)
