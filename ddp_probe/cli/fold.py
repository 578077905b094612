"""Fold the files of some hosts into one small file, which 'report' reads.

PATH is a run as in 'report': its folder, or files of it, on this host or at an
address that fsspec knows (s3://, gs://, oss://, hdfs://), with the extra
'remote'. A fold keeps what a report needs, masked as the files are. The order
of the folds, and which files are in which, makes no difference to the report:

  python -m ddp_probe fold s3://logs/RUN/rank000* -o s3://logs/folds/0.fold
  python -m ddp_probe fold s3://logs/RUN/rank001* -o s3://logs/folds/1.fold
  python -m ddp_probe report 's3://logs/folds/*.fold'

FILE is replaced as a whole, so a step that was killed is started again.
docs/fleets.md runs it on Ray, Dask, Spark and SLURM.

exit codes: 0 written, 2 nothing to fold, or it cannot be written
"""

import argparse
import contextlib
import os
import tempfile

from ddp_probe.cli._commands import FILES, RUNS, Command
from ddp_probe.shared.whole_file import whole_file
from ddp_probe.wording.unwritable import UnwritableError

COMMAND = Command("fold", order=65, summary="Fold the files of some hosts into one small file for 'report'.", offers={"paths": RUNS, "output": FILES})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("paths", nargs="*", metavar="PATH", help="a run's folder or files of it; default: the newest run")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="where the fold is written: a file, or an address")
    parser.add_argument("--cores", type=int, default=0, metavar="N", help="use at most N cores (default: all)")


def run(args: argparse.Namespace) -> int:
    """Fold into a file; an address gets it from a folder that is ours."""
    from ddp_probe.reading import fold, remote
    from ddp_probe.showing.progress import Bar

    away, bar, path = remote.is_address(args.output), Bar(), args.output
    with contextlib.ExitStack() as stack:
        paths = remote.brought(args.paths, stack)
        if away:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ddp_probe-fold-"))
            path = os.path.join(folder, "fold")
        try:
            with whole_file(path, 0o600) as file:
                fold.write(paths, file, bar, args.cores)
        except OSError as exc:
            raise UnwritableError(args.output, exc) from exc
        finally:
            bar.clear()
        if away:
            remote.put(path, args.output)
    return 0
