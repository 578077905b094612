"""Judge checkpoint files: whole or broken, what they hold, what a load needs.

Nothing is unpickled, and torch is not needed.

PATH is a file, a folder (its checkpoints and those below), or a pattern. These
are recognised by their content: archives and older files of torch.save,
TorchScript, safetensors, folders of torch.distributed.checkpoint, sharded
indices of Hugging Face (*.index.json); and what is found in their place: a
git-lfs pointer, an HTML page, an empty or truncated file, and files of GGUF,
ONNX, TensorFlow, numpy, joblib and a tokenizer. A file that is not whole and is
open for writing is still being written, and is not judged.

Only directories, headers and pickles are read, so a file of 100 GB takes no
longer than a small one. --deep reads every byte and compares the checksum of
each record of an archive; the other formats have none.

--json prints a list with one object a path:
  path, verdict   whole, broken, or unknown: it could not be judged
  kind            the format
  because         why it is unknown, or what else it is
  what_to_do      if it is broken
  faults          a list of text, record, offset (in the file), unnoticed
                  (true: torch.load does not look for it)
  remarks         what is unusual and harmless
  size, modified (Unix time), age (seconds), files (of a folder or an index)
  writers         processes of this host that have it open for writing: pid,
                  command; looked for unless it is whole
  tensors, elements, bytes, dtypes (bytes by type), devices (storages by the
                  device that they were saved from)
  keys            of the object at the top
  states          mapping in the file to the number of tensors in it
  names           a list of name, shape, dtype, device, storage
  prefixes        prefix such as 'module.' to the number of names; '' is none
  versions, progress   what frameworks have written: mmengine, epoch, iter, ...
  classes         which a load needs beyond those of tensors
  weights_only    accepted, refused (classes), because: what torch.load of
                  torch 2.13 says with weights_only=True; null if it does not
                  apply
  against         with --against: other, is_model (a list of parameters: it has
                  no buffers), fits, same (count), missing, unexpected, shapes
                  (name, shape here, shape there), buffers (unexpected names
                  that may be buffers), explains (names), renaming and load
                  (Python source); else null

exit codes:
  0  every file is whole
  1  one is broken, or does not fit the one that --against names
  2  usage: the command line is wrong, or there is nothing to judge
  3  none is broken, but one could not be judged
"""

import argparse
import sys
from typing import Any, List

from ddp_probe.cli._commands import FILES, Command

CODES = {"whole": 0, "unknown": 3, "broken": 1}

COMMAND = Command(
    "checkpoint", order=100, summary="Tell whether checkpoints are whole, and what they hold.", paints=True, offers={"paths": FILES, "against": FILES}
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("paths", nargs="+", metavar="PATH", help="files, folders or patterns")
    parser.add_argument("--json", action="store_true", help="print one JSON list")
    parser.add_argument("--deep", action="store_true", help="read every byte, and compare checksums")
    parser.add_argument("--against", metavar="OTHER", help="compare names and shapes with a checkpoint, or with models/DIGEST.json of a run")
    parser.add_argument("--names", action="store_true", help="list every tensor")


def run(args: argparse.Namespace) -> int:
    """Judge, print."""
    from ddp_probe.checkpoints import judge_path

    judged = _judged(judge_path.paths_of(args.paths), deep=args.deep)
    if args.against is not None:
        _compare(judged, args.against)
    if args.json:
        import msgspec

        print(msgspec.json.format(msgspec.json.encode(judged, enc_hook=str), indent=1).decode())
    else:
        from ddp_probe.showing import checkpoint_page, language, paint

        say = language.chosen(sys.stdout)
        paint.write(checkpoint_page.lines(judged, max(40, paint.width()), names=args.names, say=say))
    for checkpoint in judged:
        if checkpoint.verdict == "broken" or (checkpoint.against and not checkpoint.against.fits):
            return 1
    return max(CODES[checkpoint.verdict] for checkpoint in judged)


def _compare(checkpoints: List[Any], path: str) -> None:
    from ddp_probe.checkpoints import against

    other = against.read(path)
    for judged in checkpoints:
        if judged.tensors is not None:
            judged.against = against.compare(judged, other)


def _judged(paths: List[str], *, deep: bool) -> List[Any]:
    from ddp_probe.checkpoints.judge_path import judge
    from ddp_probe.showing.progress import Bar

    bar = Bar()
    try:
        return [judge(path, deep=deep, progress=bar) for path in paths]
    finally:
        bar.clear()
