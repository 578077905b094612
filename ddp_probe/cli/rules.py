"""Check the site's own rules, or draft one from a log.

PATH is a folder of rules, or the file of one. The default is the folder of
DDP_PROBE_RULES, and those of packages with an entry point in ddp_probe.rules.
Each file is a rule in TOML; docs/site-rules.md describes it. A rule is held to
its own lines: one that must match, and one that must not.

--draft LOG prints the beginning of a rule for what failed first in the plain
log of a job, with its words as the pattern:

  python -m ddp_probe rules --draft err.log > scratch-is-stale.toml

exit codes: 0 each file is a rule, 1 a file is refused, 2 there is no file, or
nothing to draft from
"""

import argparse
import sys
from typing import List

import ddp_probe
from ddp_probe.cli._commands import FILES, Command
from ddp_probe.shared.errors import UnusableError
from ddp_probe.wording.text import say
from ddp_probe.wording.words import command, quoted

COMMAND = Command(
    "rules",
    order=115,
    summary="Check the site's own rules, or draft one from a log.",
    offers={"paths": FILES, "draft": FILES},
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("paths", nargs="*", metavar="PATH", help="folders of rules, or files of one each")
    about = "print the draft of a rule for what failed in this plain log"
    parser.add_argument("--draft", metavar="LOG", help=about)


def run(args: argparse.Namespace) -> int:
    """Check, or draft."""
    return _draft(args.draft) if args.draft else _check(args.paths)


def _check(paths: List[str]) -> int:
    from ddp_probe.judging import site_rule_yields, site_rules
    from ddp_probe.showing import language, safe

    words = language.chosen(sys.stdout)
    answer = site_rules.of(paths) if paths else site_rules.loaded()
    if not answer.rules and not answer.refused:
        what_to_do = "Name a folder or a file, or draft a rule: {draft}."
        raise UnusableError(
            what=say("There are no rules of this site."),
            why=say("DDP_PROBE_RULES names no folder with .toml files, and no package brings some."),
            what_to_do=say(what_to_do, draft=command("rules", "--draft", "err.log")),
        )
    for rule in answer.rules:
        print(safe.line("ok  %s  %s" % (rule.RULE.slug, rule.file)))
        for name in site_rule_yields.yields_to(rule):
            template = "    {id} answers its line already: this rule yields."
            print(words.text(say(template, id=name)))
    for refused in answer.refused:
        place = quoted(safe.line(refused.place))
        print(words.text(say("refused  {place}: {why}", place=place, why=refused.why)))
    return 1 if answer.refused else 0


def _draft(log: str) -> int:
    from ddp_probe.judging import site_rule_draft

    diagnosis = ddp_probe.diagnose(ddp_probe.read(log))
    failure = site_rule_draft.unanswered(diagnosis)
    if failure is None:
        why = say("It holds no failure.")
        if diagnosis.findings:
            first = diagnosis.findings[0]
            why = say("{id} {slug} names its cause.", id=first.id, slug=first.slug)
        elif diagnosis.run.processes:
            why = say("It is a run with the probe, and not a plain log.")
        raise UnusableError(
            what=say("There is nothing to draft from in {file}.", file=quoted(log)),
            why=why,
            what_to_do=say("Name the log in which the failure is printed."),
        )
    sys.stdout.write(site_rule_draft.toml(site_rule_draft.draft(failure)))
    return 0
