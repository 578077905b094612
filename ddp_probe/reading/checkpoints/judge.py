"""Judges one path: opens it, recognises its format by its first bytes, and asks the file of that format."""

import os
import stat
import time
import warnings
from typing import Optional

from ddp_probe.reading.checkpoints import advice, distributed, lookalikes, safetensors, sharded, torch_legacy, torch_zip, writers
from ddp_probe.reading.checkpoints.model import BROKEN, UNKNOWN, BrokenError, Judged, UnknownError
from ddp_probe.reading.checkpoints.source import FileRange, Progress, ReadMeter, open_file

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
        judged.verdict, judged.because = UNKNOWN, "%s." % (exc.strerror or type(exc).__name__)
    except (RecursionError, MemoryError) as exc:
        judged.verdict, judged.because = UNKNOWN, "It is larger or deeper than what is followed (%s)." % type(exc).__name__
    advice.add(judged)
    return judged


def _folder(path: str, judged: Judged, progress: Optional[Progress]) -> None:
    if distributed.is_one(path):
        distributed.judge(path, judged, progress)
    else:
        raise UnknownError("The folder holds no checkpoint.", "Name a file in it.")


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


def is_regular(path: str) -> bool:
    """Tell whether a path is a regular file, following links."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False
