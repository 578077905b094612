"""Show what failed first, on which ranks, at which line, why, and what to change.

PATH is a run's folder (one per host if there are several), a file of one, a
shell pattern, an archive of 'bundle', folds that 'gather' has brought together,
or the plain log of a job that ran without the probe. The default is the newest
run in DDP_PROBE_DIR (default: ddp_probe_runs in this folder).

exit codes:
  0  clear: every rank ended normally, and no rule found anything
  1  found: a rule names a cause
  2  usage: the command line is wrong, or there is nothing to read
  3  undecided: no rule can name a cause; the reasons are printed
"""

import argparse
import sys
from typing import Any

from ddp_probe import settings
from ddp_probe.errors import ProbeError, UsageError

UNDECIDED = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("paths", nargs="*", metavar="PATH", help="folders, files, patterns or plain logs; default: the newest run")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON object; docs/report.json is its schema")
    form.add_argument("--brief", action="store_true", help="print one line per finding, or one line: clear, or undecided with the reasons")
    parser.add_argument("--cores", type=int, default=0, metavar="N", help="read on at most N cores (default: all)")
    parser.add_argument("--follow", action="store_true", help="repeat while the job runs, print changes, end with the job")


def run(args: argparse.Namespace) -> int:
    """Read, judge, print."""
    if hasattr(sys.stdout, "reconfigure"):  # A log may contain characters that this locale cannot encode.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        return _run(args)
    except ProbeError as exc:
        return _complain(exc, exc.exit_code)
    except (ImportError, BrokenPipeError):
        raise
    except Exception as exc:
        if settings.get(settings.STRICT):
            raise
        return _complain(_own_fault(exc), UNDECIDED)


def _run(args: argparse.Namespace) -> int:
    from ddp_probe.read import bundled

    if args.cores < 0:
        raise UsageError("--cores %d is not a valid number of cores." % args.cores, "Give a number from 1 up, or leave it out.")
    if args.follow:
        from ddp_probe.report import follow

        bundled.refuse(args.paths, "--follow")
        return follow.follow(args.paths, _form(args))
    from ddp_probe import read
    from ddp_probe.diagnose import judge
    from ddp_probe.report.progress import Bar

    with bundled.opened(args.paths) as paths:
        bar = Bar()
        try:
            found = read.load(paths, bar, args.cores)
        finally:
            bar.clear()
        diagnosis = judge(found)
        show(diagnosis, _form(args))
    return diagnosis.exit_code


def _form(args: argparse.Namespace) -> str:
    return "json" if args.json else "brief" if args.brief else "terminal"


def show(diagnosis: Any, form: str) -> None:
    """Print a diagnosis in one of its forms."""
    if form == "json":
        from ddp_probe.report import as_json

        print(as_json.text(diagnosis))
    elif form == "brief":
        from ddp_probe.report import brief

        print("\n".join(brief.lines(diagnosis)))
    else:
        from ddp_probe.report import terminal

        terminal.show(diagnosis)


def _own_fault(exc: Exception) -> ProbeError:
    return ProbeError(
        what="The report could not be made.",
        why="%s: %s" % (type(exc).__name__, exc),
        what_to_do="This is a bug in ddp_probe. DDP_PROBE_STRICT=1 shows the traceback; 'grep' and 'jq' can read the files without it.",
    )


def _complain(exc: ProbeError, code: int) -> int:
    from ddp_probe.cli import _why
    from ddp_probe.report import safe

    sys.stdout.flush()
    _why.add(exc)
    print("\n".join(safe.line(part) for part in str(exc).splitlines()), file=sys.stderr)
    return code
