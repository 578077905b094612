"""How a command ends that is started as a job of one rank per host.

torchrun prints a traceback of its own, which names no cause, for each rank that ends with another code than 0. So below torchrun the ranks end
with 0 after a page, and the code of the verdict is in a line of rank 0, in a file, and with --exit-code that of the ranks.
"""

import argparse
import os
import sys

from ddp_probe.wording.text import say
from ddp_probe.wording.unwritable import UnwritableError

USAGE = 2


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare where the exit code goes."""
    parser.add_argument("--exit-code", action="store_true", help="end with the exit code below torchrun, too, which adds a traceback of its own")
    parser.add_argument("--code-file", metavar="FILE", default="", help="also write the exit code to FILE, at rank 0")


def ended(args: argparse.Namespace, code: int, *, leads: bool) -> int:
    """Return the exit code of this rank, once its page is printed."""
    if leads and args.code_file:
        _write(args.code_file, code)
    if args.exit_code or code in (0, USAGE) or not os.environ.get("TORCHELASTIC_RUN_ID"):
        return code
    if leads:
        sys.stdout.flush()
        from ddp_probe.showing.remark import remark

        remark(
            say(
                "The exit code is {code}; below torchrun the ranks end with 0, unless --exit-code is given.",
                code=code,
            )
        )
    return 0


def _write(path: str, code: int) -> None:
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write("%d\n" % code)
    except OSError as exc:
        raise UnwritableError(path, exc) from exc
