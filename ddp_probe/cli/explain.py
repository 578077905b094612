"""Print the page of a rule, or of a check of doctor; without a name, list all.

With a PATH, which is a run, a file of one or an archive of 'bundle', the page
begins with what the rule found there and the change: as a diff of the job's
own source for patch -p1, if the source is available, and as shell lines, such
as variables to set and the command to start the job.
"""

import argparse
import sys
from typing import Any, Iterable, List

from ddp_probe.cli._commands import PAGES, RUNS, Command
from ddp_probe.shared.errors import UsageError

COMMAND = Command(
    "explain", order=110, summary="Print the page of a rule or a check, or list all.", paints=True, offers={"name": PAGES, "paths": RUNS}
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("name", nargs="?", metavar="NAME", help="an id or a name, such as DDP104, submodule-left-behind or DOC301")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="a run to apply the rule to")


def run(args: argparse.Namespace) -> int:
    """Print the page, or the list."""
    from ddp_probe.judging import examples
    from ddp_probe.judging.rules import RETIRED, modules, rule_of
    from ddp_probe.showing import language, paint, rule_page

    say = language.chosen(sys.stdout)
    width = min(paint.width(), 110)
    if args.name is None:
        _print([*rule_page.listing([rule_of(module) for module in modules()], width, say), *_checks(width, say)])
        return 0
    wanted = args.name.strip().lower().replace("_", "-")
    for module in modules():
        rule = rule_of(module)
        if wanted in (rule.id.lower(), rule.slug):
            own = _own(module, args.paths, width, say) if args.paths else []
            _print([*own, *rule_page.page(rule, examples.of(rule.slug), width, say)])
            return 0
    if _is_check(wanted, width, say):
        return 0
    for number, slug in RETIRED.items():
        if wanted in (number.lower(), slug):
            print("%s %s is retired: no rule has this name now." % (number, slug))
            return 0
    raise _unknown(args.name, [name for module in modules() for name in (rule_of(module).slug, rule_of(module).id)])


def _checks(width: int, say: Any) -> Iterable[Any]:
    """Return the list of doctor's checks."""
    from ddp_probe.judging.doctor.checks import modules
    from ddp_probe.showing import doctor_page

    return doctor_page.listing([module.CHECK for module in modules()], width, say)


def _is_check(wanted: str, width: int, say: Any) -> bool:
    """Print the page of a check, if one has this id or name."""
    from ddp_probe.judging.doctor.checks import modules
    from ddp_probe.showing import doctor_page

    for module in modules():
        if wanted in (module.CHECK.id.lower(), module.CHECK.slug):
            _print(doctor_page.page(module.CHECK, width, say))
            return True
    return False


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

    close = difflib.get_close_matches(name.lower(), [known.lower() for known in names], n=3, cutoff=0.5)
    meant = [known for word in close for known in names if known.lower() == word]
    return UsageError(
        "There is no rule %s." % safe.line(repr(name), 100),
        "Did you mean %s?" % " or ".join(meant) if meant else "'python -m ddp_probe explain' lists all rules.",
    )
