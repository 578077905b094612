"""Reads entry points from the files of packages: importlib.metadata would cost each rank its import."""

import configparser
import os
import sys
from typing import List, Sequence, Tuple

from ddp_probe.shared.ours import ours
from ddp_probe.shared.regular_files import open_text

_FOLDERS = 200


def entry_points(groups: Sequence[str]) -> List[Tuple[str, str, str]]:
    """Return (group, name, value) of every entry point in these groups, which begin with `ddp_probe.`."""
    entries: List[Tuple[str, str, str]] = []
    for folder in [entry for entry in sys.path if type(entry) is str][:_FOLDERS]:
        for name in sorted(_infos(folder)):
            entries += _declared(os.path.join(folder, name, "entry_points.txt"), groups)
    return list(dict.fromkeys(entries))


def _infos(folder: str) -> List[str]:
    try:
        return [name for name in os.listdir(folder or ".") if name.endswith((".dist-info", ".egg-info"))]
    except ours(OSError):
        return []


def _declared(path: str, groups: Sequence[str]) -> List[Tuple[str, str, str]]:
    try:
        with open_text(path, errors="replace") as file:
            text = file.read()
    except ours(OSError):
        return []
    if "[ddp_probe." not in text:
        return []
    parser = configparser.ConfigParser(delimiters=("=",), strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    parser.read_string(text)
    entries: List[Tuple[str, str, str]] = []
    for group in parser.sections():
        if group in groups:
            entries.extend((group, name, value) for name, value in parser[group].items())
    return entries
