"""Print the page of a rule, or of a check of doctor; without a name, their groups.

NAME is an id or a name (DDP104, submodule-left-behind, DOC301), the beginning
of an id (DDP6: its rules are listed), or words ("out of memory", hang, 显存):
the rules and checks whose name, title, symptom or cause has all of them are
listed. --all lists every one.

With a PATH, which is a run, a file of one or an archive of 'bundle', the page
begins with what the rule found there and the change: as a diff of the job's
own source for patch -p1, if the source is available, and as shell lines, such
as variables to set and the command to start the job.
"""

import argparse
import re
import sys
from typing import Any, Iterable, Iterator, List, Sequence

from ddp_probe.cli._commands import PAGES, RUNS, Command
from ddp_probe.shared.errors import UsageError

COMMAND = Command(
    "explain", order=110, summary="Print the page of a rule or a check, or find one by words.", paints=True, offers={"name": PAGES, "paths": RUNS}
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("name", nargs="?", metavar="NAME", help="an id, a name, the beginning of an id, or words")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="a run to apply the rule to")
    parser.add_argument("--all", action="store_true", help="list all rules and checks")


def run(args: argparse.Namespace) -> int:
    """Print the page, or a list."""
    from ddp_probe.judging import examples
    from ddp_probe.judging.doctor import checks
    from ddp_probe.judging.rules import RETIRED, modules, rule_of
    from ddp_probe.showing import doctor_page, language, paint, rule_page

    say = language.chosen(sys.stdout)
    width = min(paint.width(), 110)
    rules, asked = [rule_of(module) for module in modules()], [module.CHECK for module in checks.modules()]
    if args.name is None or args.all:
        _print([*rule_page.listing(rules, width, say), *doctor_page.listing(asked, width, say)] if args.all else _groups(rules, asked, say))
        return 0
    wanted = args.name.strip().lower().replace("_", "-")
    for module, rule in zip(modules(), rules):
        if wanted in (rule.id.lower(), rule.slug):
            own = _own(module, args.paths, width, say) if args.paths else []
            _print([*own, *rule_page.page(rule, examples.of(rule.slug), width, say)])
            return 0
    for check in asked:
        if wanted in (check.id.lower(), check.slug):
            _print(doctor_page.page(check, width, say))
            return 0
    for number, slug in RETIRED.items():
        if wanted in (number.lower(), slug):
            print("%s %s is retired: no rule has this name now." % (number, slug))
            return 0
    found = [_found(args.name, pages) for pages in (rules, asked)]
    if not any(found):
        raise _unknown(args.name, [name for rule in rules for name in (rule.slug, rule.id)])
    _print([*rule_page.listing(found[0], width, say), *doctor_page.listing(found[1], width, say)])
    return 0


def _groups(rules: Sequence[Any], checks: Sequence[Any], say: Any) -> Iterable[Any]:
    from ddp_probe.judging.doctor.checks import HUNDREDS
    from ddp_probe.showing import rule_page

    yield from rule_page.hundreds(rules, rule_page.HUNDREDS, say)
    yield from rule_page.hundreds(checks, HUNDREDS, say)
    yield from rule_page.ways(say)


def _found(name: str, pages: Sequence[Any]) -> List[Any]:
    """Return the rules or checks of a group, or those with all of these words in a text of theirs, in either language."""
    from ddp_probe.showing.language import CHINESE

    group = re.fullmatch(r"(ddp|doc)(\d{1,2})x{0,2}", name.strip().lower())
    if group is not None:
        return [page for page in pages if page.id.lower().startswith(group[1] + group[2])]
    words = [re.compile("(?<![a-z])" + re.escape(word)) for word in name.lower().split()]
    texts = {page.id: " ".join(_texts(page, CHINESE)).lower() for page in pages}
    return [page for page in pages if words and all(word.search(texts[page.id]) for word in words)]


def _texts(page: Any, other: Any) -> Iterator[str]:
    yield from (page.slug.replace("-", " "), getattr(page, "cause", "").replace("_", " "))
    for field in ("title", "symptom"):
        if hasattr(page, field):
            yield from (str(getattr(page, field)), other.of(page, field))


def _own(module: Any, paths: List[str], width: int, say: Any) -> Iterable[Any]:
    """Yield what the rule found in a run, and the change in the job's own source."""
    from ddp_probe.judging.judge import judge
    from ddp_probe.judging.rules import rule_of
    from ddp_probe.reading import bundled
    from ddp_probe.reading.load_run import load
    from ddp_probe.showing import found, safe
    from ddp_probe.showing.layout import GLUE, StyledLine
    from ddp_probe.showing.paths import Paths

    with bundled.opened(paths) as inside:
        diagnosis = judge(load(inside), [module])
        names = Paths(diagnosis.run, GLUE)
        rule = rule_of(module)
        yield StyledLine(say("%s in %s") % ("%s %s" % (rule.id, rule.slug), safe.line(diagnosis.run.name) or say("this log")), "strong")
        if not diagnosis.findings:
            yield StyledLine(say("The rule finds nothing in it."))
        for finding in diagnosis.findings:
            yield from names.places.linked(found.cause(finding, diagnosis, width, names, 3, say))
    yield StyledLine("")


def _print(lines: Iterable[Any]) -> None:
    from ddp_probe.showing import paint

    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    paint.write(lines)


def _unknown(name: str, names: "list[str]") -> UsageError:
    import difflib

    from ddp_probe.showing import safe

    said = "There is no rule or check %s, and none with these words." % safe.line(repr(name), 100)
    if re.fullmatch(r"(?i)(?:ddp|doc)\d+", name.strip()):  # A number that is close stands for something else.
        return UsageError(said, "'python -m ddp_probe explain' lists the groups.")
    close = difflib.get_close_matches(name.lower(), [known.lower() for known in names], n=3, cutoff=0.5)
    meant = [known for word in close for known in names if known.lower() == word]
    return UsageError(said, "Did you mean %s?" % " or ".join(meant) if meant else "'python -m ddp_probe explain' lists the groups.")
