"""Write one masked archive of a run, and print an environment block to paste.

RUN is a run as 'report' takes it, the plain log of a job too; the default is
the newest run. The archive holds the logs, ledgers (as text), stacks, lists
of models' parameters, dumps of the Flight Recorder, the report as text and as
JSON, the environment block, the parts of the job's source that the report
looks into, and, if the run is of this host, doctor's table without live
checks, and without those that import torch if its ranks have imported this
Python's torch and no card is detected. 'report', 'logs', 'stacks' and
'explain RULE' read it on any machine:

  python -m ddp_probe report ddp_probe-RUN.tar.gz

Before it is written, the listing says what it holds, what was masked, and
what was left out. Whatever looks like a credential, by its name, its form or
its place, is masked, and so are the values that this shell's environment has
under names such as HF_TOKEN. Names of users, hosts and folders are not masked:
read the listing, and look into the archive, before you publish it. --list
writes nothing.

The archive has at most 20 MiB, or --max-bytes. What does not fit is cut from
the middle of the largest logs, in whole lines, or left out.

--json prints one object: file (null with --list), bytes, differs (how the
report over the bundle differs from the one over the run; empty if it does
not), environment (Markdown), and bundle, which is bundle.json of the archive.

exit codes: 0 written or listed, 2 nothing to bundle, or it cannot be written
"""

import argparse
import json
import os
import sys
from typing import Any

from ddp_probe.cli import _sizes
from ddp_probe.cli._commands import FILES, RUNS, Command
from ddp_probe.wording.text import say
from ddp_probe.wording.words import command, size

_SMALLEST = 1 << 14

COMMAND = Command(
    "bundle", order=70, summary="Write one masked archive of a run, to attach to an issue.", paints=True, offers={"paths": RUNS, "output": FILES}
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("paths", nargs="*", metavar="RUN", help="a run's name, folder or files, or a plain log; default: the newest run")
    parser.add_argument("-o", "--output", metavar="FILE", default="", help="the archive; default: ddp_probe-RUN.tar.gz in this folder")
    parser.add_argument("--force", action="store_true", help="overwrite FILE")
    parser.add_argument("--max-bytes", metavar="N", default="20M", help="most bytes of the archive, such as 5M; default 20M")
    parser.add_argument("--no-source", action="store_true", help="leave out the job's source; the report over the bundle may say less")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--list", action="store_true", help="print the listing, and write nothing")
    what.add_argument("--env-only", action="store_true", help="print the environment block alone: of RUN, or of this host if none is named")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Make it, list it, write it."""
    if args.env_only and not args.paths:
        return _host(args)
    from ddp_probe.moving.bundle import make, stage
    from ddp_probe.showing.progress import Bar

    bar, writes = Bar(), not (args.list or args.env_only)
    most = _sizes.size_of(args.max_bytes, "--max-bytes", _SMALLEST, say("500k or 20M"))
    request = make.BundleRequest(args.paths, args.output, most, source=not args.no_source, writes=writes, force=args.force)
    with make.prepared(request, bar) as bundle:
        bar.clear()
        if args.env_only:
            print(json.dumps({"environment": bundle.environment}) if args.json else bundle.environment, end="\n" if args.json else "")
            return 0
        closed = None
        try:
            if not args.json:
                _list(bundle)
        except BrokenPipeError as exc:  # 'bundle | head' still writes the archive.
            closed = exc
        if not args.list:
            stage.place(bundle.packed, bundle.output, force=args.force)
        if closed is not None:
            raise closed
        _end(bundle, args)
    return 0


def _host(args: argparse.Namespace) -> int:
    """Print the environment block of this host."""
    from ddp_probe.moving.bundle import bundle_pages
    from ddp_probe.showing.masker import Masker

    text = bundle_pages.block(bundle_pages.of_host(Masker(os.environ)))
    print(json.dumps({"environment": text}) if args.json else text, end="\n" if args.json else "")
    return 0


def _list(bundle: Any) -> None:
    from ddp_probe.moving.bundle.contents import KINDS
    from ddp_probe.showing import bundle_page, language, paint
    from ddp_probe.showing.layout import StyledLine, sentence

    width = max(40, min(paint.width(), 110))
    reader = language.chosen(sys.stdout)
    page = list(bundle_page.lines(bundle.manifest, [kind[:3] for kind in KINDS], width, reader))
    if bundle.differs:
        page += [StyledLine(""), *sentence(reader.text(bundle.differs), width, style=paint.WARN)]
    paint.write(page)
    print("\n%s\n\n%s" % (reader("To paste into an issue:"), bundle.environment))
    sys.stdout.flush()


def _end(bundle: Any, args: argparse.Namespace) -> None:
    from ddp_probe.showing import language

    if args.json:
        import msgspec

        about = {
            "file": None if args.list else bundle.output,
            "bytes": bundle.size,
            "differs": bundle.differs,
            "environment": bundle.environment,
        }
        print(json.dumps({**about, "bundle": msgspec.to_builtins(bundle.manifest, enc_hook=str)}, indent=1))
        return
    reader = language.chosen(sys.stdout)
    if args.list:
        template = "Nothing was written: --list. The archive would have {size}."
        print(reader.text(say(template, size=size(bundle.size))))
        return
    print(reader.text(say("Written: {path}, {size}.", path=bundle.output, size=size(bundle.size))))
    print(reader("To read it on any machine:"))
    print("  %s" % command("report", bundle.output))
