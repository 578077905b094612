"""Show what failed first, on which ranks, at which line, why, and what to change.

PATH is a run's folder (one per host if there are several), a file of one, a
shell pattern, an archive of 'bundle', folds that 'gather' has brought together,
or the plain log of a job that ran without the probe. The default is the newest
run in DDP_PROBE_DIR (default: ddp_probe_runs in this folder).

--format chooses what is printed:
  terminal  for a person (the default), in Chinese if DDP_PROBE_LANG or the
            locale says zh; all other forms are in English
  json      one JSON object, as --json does; docs/report.json is its schema
  brief     one line per finding, as --brief does
  github    workflow commands of GitHub Actions: each finding and each open
            question is an annotation, at the line of the job if that lies in
            GITHUB_WORKSPACE or in this folder. If GITHUB_STEP_SUMMARY is set,
            the report is appended to that file too, as inert text.
  junit     XML for the test reports of GitLab and Jenkins: a test for the
            verdict, one for each finding, and one for each open question
docs/schedulers.md says how job scripts and pipelines use them.

In a terminal, a report that is longer than it goes through a pager: that of
PAGER, or less. With --html or --trace, it has one line and the file's name.

exit codes:
  0  clear: every rank ended normally; warnings may be printed
  1  found: an error; with --strict, a warning too
  2  usage: the command line is wrong, or there is nothing to read
  3  undecided: no rule can name a cause; the reasons are printed

--exit-by restart exits with whether a restart helps if nothing is changed, by
the cause and by the attempts before this one (the starts by torchrun, and runs
of the same command in DDP_PROBE_DIR):
   0  nothing failed
   2  usage, as above
   3  unknown: it can be chance or not
  10  yes: it was chance; --json names the checkpoint that is there
  11  elsewhere: --json names the hosts and cards to leave out
  12  after: something has to be freed or waited for first
  13  no: the code or its settings fail again
"""

import argparse
import functools
import sys
from typing import Any, Callable, List

import ddp_probe
from ddp_probe.cli._commands import FILES, RUNS, Command
from ddp_probe.shared import settings
from ddp_probe.shared.errors import ProbeError, UsageError
from ddp_probe.showing import forms
from ddp_probe.wording.text import say

UNDECIDED = 3
_WAYS = ("verdict", "restart")

COMMAND = Command(
    "report",
    order=50,
    summary="Show what failed first, on which ranks, why, and what to change.",
    paints=True,
    offers={"paths": RUNS, "trace": FILES, "html": FILES},
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("paths", nargs="*", metavar="PATH", help="folders, files, patterns or plain logs; default: the newest run")
    add_forms(parser)
    for form in forms.FILES:
        parser.add_argument(form.option, metavar="FILE", help=form.help)
    parser.add_argument(
        "--exit-by",
        choices=_WAYS,
        default=_WAYS[0],
        metavar="WAY",
        help="what the exit code says: verdict (the default), or restart, whether a restart helps",
    )
    parser.add_argument("--no-pager", action="store_true", help="do not use a pager; PAGER= does the same")
    parser.add_argument("--cores", type=int, default=0, metavar="N", help="use at most N cores (default: all)")
    parser.add_argument("--follow", action="store_true", help="repeat while the job runs, print changes, end with the job; not with github and junit")


def add_forms(parser: argparse.ArgumentParser) -> None:
    """Declare the forms of a report, and how strictly its exit code judges."""
    parser.add_argument("--strict", action="store_true", help="exit with 1 for a warning too, not only for an error")
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--format",
        dest="form",
        choices=forms.NAMES,
        default=forms.TERMINAL,
        metavar="FORM",
        help="%s; 'report --help' describes them" % ", ".join(forms.NAMES),
    )
    form.add_argument("--json", dest="form", action="store_const", const=forms.JSON, help="print one JSON object; docs/report.json is its schema")
    brief = "print one line per finding, or one line: clear, or undecided with the reasons"
    form.add_argument("--brief", dest="form", action="store_const", const=forms.BRIEF, help=brief)


def run(args: argparse.Namespace) -> int:
    """Read, judge, print."""
    return guarded(lambda: _run(args))


def guarded(make: Callable[[], int]) -> int:
    """Return the exit code of what makes a report; an error of any kind is printed, and its code is never that of a verdict."""
    try:
        return make()
    except ProbeError as exc:
        return _complain(exc, exc.exit_code)
    except (ImportError, BrokenPipeError):
        raise
    except Exception as exc:
        if settings.get(settings.STRICT):
            raise
        return _complain(_own_fault(exc), UNDECIDED)


def _run(args: argparse.Namespace) -> int:
    from ddp_probe.reading import bundled
    from ddp_probe.showing import exit_codes

    if args.cores < 0:
        raise UsageError(
            say("--cores {number} is not a valid number of cores.", number=args.cores),
            "Give a number from 1 up, or leave it out.",
        )
    files = forms.wanted_files(vars(args))
    if args.follow:
        from ddp_probe.showing import follow

        forms.refuse_files_to_follow(files)
        bundled.refuse(args.paths, "--follow")
        code_of = functools.partial(exit_codes.of, by=args.exit_by, strict=args.strict)
        return follow.follow(args.paths, args.form, code_of)
    forms.refuse_files(files)
    from ddp_probe.showing.progress import Bar

    with bundled.opened(args.paths) as paths:
        bar = Bar()
        try:
            logged_run = ddp_probe.read(*paths, progress=bar, cores=args.cores)
        finally:
            bar.clear()
        diagnosis = ddp_probe.diagnose(logged_run)
        _show(diagnosis, args.form, files, is_paged=not args.no_pager)
        return exit_codes.of(diagnosis, args.exit_by, args.strict)


def _show(diagnosis: Any, form: str, files: "List[forms.WrittenFile]", *, is_paged: bool) -> None:
    """Print the report and write the files: 'report --trace FILE | head' writes its file as well.

    In a terminal, who asks for a file gets the last line of the report and where the file is.
    """
    from ddp_probe.showing import terminal

    try:
        if form != forms.TERMINAL or not sys.stdout.isatty():
            forms.show(diagnosis, form)
        elif files:
            terminal.show_sum(diagnosis)
        elif is_paged:
            terminal.show_paged(diagnosis)
        else:
            terminal.show(diagnosis)
        sys.stdout.flush()
    except BrokenPipeError:
        forms.write_files(files, diagnosis)
        raise
    forms.write_files(files, diagnosis)


def _own_fault(exc: Exception) -> ProbeError:
    return ProbeError(
        what="The report could not be made.",
        why="%s: %s" % (type(exc).__name__, exc),
        what_to_do="This is a bug in ddp_probe. DDP_PROBE_STRICT=1 shows the traceback; 'grep' and 'jq' can read the files without it.",
    )


def _complain(exc: ProbeError, code: int) -> int:
    from ddp_probe.cli import _why
    from ddp_probe.showing import language, safe

    sys.stdout.flush()
    _why.add(exc)
    print(safe.error(exc, language.chosen(sys.stderr), safe.line), file=sys.stderr)
    return code
