"""Judges what the arguments of the command name: finds the paths, recognises each format, and says what to do about a broken file."""

import glob
import os
import time
import warnings
from typing import List, Optional

from ddp_probe.checkpoints import distributed, lookalikes, safetensors, sharded, torch_legacy, torch_zip, writers
from ddp_probe.checkpoints.broken_advice import add_advice
from ddp_probe.checkpoints.checkpoint_file import FileRange, Progress, ReadMeter, open_file
from ddp_probe.checkpoints.judged import BROKEN, UNKNOWN, BrokenError, Judged, UnknownError
from ddp_probe.shared.errors import UnusableError
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted

_SUFFIXES = (".pth", ".pt", ".ckpt", ".bin", ".safetensors", ".pth.tar", ".pkl", ".npz", ".npy", ".distcp", ".index.json", ".pt2", ".th", ".model")
_MOST = 10_000


def paths_of(arguments: List[str]) -> List[str]:
    """Return the paths to judge, in order, each once."""
    paths: List[str] = []
    for argument in arguments:
        matches = [argument] if os.path.lexists(argument) else sorted(glob.glob(argument, recursive=True))
        if not matches:
            raise UnusableError(
                what=say("No such file or folder: {path}.", path=argument),
                why="No file, folder or pattern matches.",
                what_to_do="Name the checkpoint's path.",
            )
        for match in matches:
            paths.extend(_inside(match) if os.path.isdir(match) and not distributed.is_checkpoint(match) else [match])
    return list(dict.fromkeys(paths))


def _inside(folder: str) -> List[str]:
    """Return the checkpoints in a folder and the folders below; links to folders are not followed."""
    paths: List[str] = []
    for at, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        inner = [name for name in folders if distributed.is_checkpoint(os.path.join(at, name))]
        folders[:] = [name for name in folders if name not in inner]
        paths.extend(os.path.join(at, name) for name in [*inner, *sorted(name for name in files if name.endswith(_SUFFIXES))])
        if len(paths) > _MOST:
            raise UnusableError(
                what=say("{folder} holds more than {most} checkpoints.", folder=folder, most=_MOST),
                why="",
                what_to_do="Name fewer of them.",
            )
    if not paths:
        why, what_to_do = lookalikes.of_folder(folder)
        raise UnusableError(
            what=say("{folder} holds no checkpoint.", folder=folder),
            why=why
            or say(
                "No file in it or below has a name such as {names}.",
                names=", ".join("*" + suffix for suffix in _SUFFIXES[:5]),
            ),
            what_to_do=what_to_do or "Name the file itself.",
        )
    return paths


# One path: opened, recognised by its first bytes, and handed to the file of that format.

_HEAD = 64


def judge(path: str, *, deep: bool = False, progress: Optional[Progress] = None) -> Judged:
    """Return what can be said of a file, or of the folder of a distributed or sharded checkpoint. Never raises for what is in it."""
    judged = Judged(path, deep=deep)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pickletools warns about the escapes in a text, which is not ours.
            if os.path.isdir(path):
                _folder(path, judged, progress)
            else:
                _file(path, judged, progress)
    except UnknownError as exc:
        judged.because, judged.what_to_do = exc.because, exc.what_to_do
        if judged.verdict != BROKEN:
            judged.verdict = UNKNOWN
    except BrokenError as exc:
        judged.broken(exc.fault)
    except OSError as exc:
        judged.verdict, judged.because = UNKNOWN, say("{message}.", message=quoted(exc.strerror or type(exc).__name__))
    except (RecursionError, MemoryError) as exc:
        judged.verdict, judged.because = UNKNOWN, say("It is larger or deeper than what is followed ({exception}).", exception=type(exc).__name__)
    add_advice(judged)
    part = lookalikes.part_of(path)
    judged.remarks += [part] if part else []
    return judged


def _folder(path: str, judged: Judged, progress: Optional[Progress]) -> None:
    if distributed.is_checkpoint(path):
        distributed.judge(path, judged, progress)
    else:
        raise UnknownError(say("The folder holds no checkpoint."), say("Name a file in it."))


def _file(path: str, judged: Judged, progress: Optional[Progress]) -> None:
    fd, status = open_file(path)
    try:
        judged.size, judged.modified = status.st_size, status.st_mtime
        judged.age = round(time.time() - status.st_mtime, 3)
        source = FileRange(fd, 0, status.st_size, ReadMeter(status.st_size if judged.deep else 0, progress))
        try:
            by_format(path, source, judged, progress)
        finally:
            if judged.verdict != "whole":
                judged.writers = writers.writers(status)
    finally:
        os.close(fd)


def by_format(path: str, source: FileRange, judged: Judged, progress: Optional[Progress] = None) -> None:
    """Judge by the first bytes."""
    head = source.read(0, _HEAD)
    if not head:
        lookalikes.empty(judged)
    elif head[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        torch_zip.judge(source, judged)
    elif torch_legacy.starts(head):
        torch_legacy.judge(source, judged)
    elif head[:6] == b"\x93NUMPY":
        lookalikes.numpy(source, judged)
    elif head[8:9] == b"{" and 2 <= int.from_bytes(head[:8], "little") <= safetensors.LONGEST:
        safetensors.judge(source, judged)
    elif head[:1] == b"\x80" and 2 <= (head[1:2] or b"\0")[0] <= 5:
        lookalikes.pickle(source, judged)
    elif head[:1] == b"{" and path.endswith(".index.json"):
        sharded.judge(path, source, judged, lambda shard: judge(shard, deep=judged.deep, progress=progress))
    else:
        lookalikes.judge(source, judged, head)
