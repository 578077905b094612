"""What a folder that gather has filled says beside its folds: from which hosts nothing or not everything came, and why."""

import contextlib
import os
import re
from typing import Iterator, List, Sequence

import msgspec

from ddp_probe.reading import find, shape
from ddp_probe.reading.model import Run
from ddp_probe.shared.regular_files import open_bytes
from ddp_probe.shared.schema import UNREADABLE
from ddp_probe.wording.text import say

NAME = "gathered.json"
VERSION = 1
_LARGEST = 1 << 28
_NOT = "not gathered: "


class GatheredHost(msgspec.Struct):
    """One host whose fold is in the folder."""

    file: str  # The name of its fold without .fold; its logs are in logs/ under the same name.
    host: str
    logs: List[str]  # The names of the logs in the fold. By them the host is known again, whatever rank it has next time.


class Gathered(msgspec.Struct):
    """What the folder holds, and what it does not."""

    gathered: int
    run: str
    hosts: List[GatheredHost] = []
    lacking: List[str] = []  # What did not come, and why; one sentence each.


def read(folder: str) -> Gathered:
    """Return what a folder holds. Raises OSError and ValueError."""
    path = os.path.join(folder, NAME)
    if os.path.getsize(path) > _LARGEST:
        raise ValueError(say("{file} is too large", file=NAME))
    with open_bytes(path) as file:
        try:
            gathered = msgspec.json.decode(file.read(), type=Gathered)
        except UNREADABLE as exc:
            raise ValueError(str(exc)) from exc
    if gathered.gathered != VERSION:
        raise ValueError(
            say(
                "it is of version {version}, and this ddp_probe reads version {newest}",
                version=gathered.gathered,
                newest=VERSION,
            )
        )
    return gathered


def note(run: Run, paths: Sequence[str]) -> None:
    """Say in the run what the folders that were read say."""
    for folder in _folders(paths):
        with contextlib.suppress(OSError, ValueError):
            note_lacking(run, read(folder).lacking)


def note_lacking(run: Run, lacking: List[str]) -> None:
    """Say in the run what gather could not bring: ranks without a file here may have files there."""
    run.inventory.notes = [text for text in run.inventory.notes if not text.startswith(_NOT)]
    run.inventory.notes += [say("not gathered: {what}", what=sentence) for sentence in lacking]
    run.not_gathered = list(lacking)
    if lacking:
        on_seen_hosts = shape.of_nodes_seen(run)
        run.elsewhere = sorted({*run.elsewhere, *(rank for rank in run.missing if rank not in on_seen_hosts)})


def _folders(paths: Sequence[str]) -> Iterator[str]:
    for path in paths:
        plain = path if os.path.isdir(path) else re.sub(r":[1-9][0-9]{0,6}$", "", path)
        for folder in (plain, os.path.join(find.root(), plain)):
            if os.path.isfile(os.path.join(folder, NAME)):
                yield folder
                break
