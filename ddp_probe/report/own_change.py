"""The change for good, as a diff of the job's own source, where that is at hand: a remedy is a bridge, not a home.

The edits are those of the finding, which are its words as well. The source is parsed, never run. Where a line is not the call that a log
speaks of, or where one edit of several cannot be made, there is no diff rather than a wrong one.
"""

import difflib
import os
from typing import Dict, List, Optional

from ddp_probe.diagnose import Finding, change
from ddp_probe.report import source_edits

_LARGEST = 2_000_000  # Bytes; nobody writes more by hand.


def diff(finding: Finding, width: int = 3) -> List[str]:
    """Return the lines of a unified diff of every file that the change touches; empty where one of its edits cannot be made."""
    before: Dict[str, List[str]] = {}
    for file, chosen in _by_file(finding.edits).items():
        source = _source(file)
        if source is None:
            return []
        before[file] = source
        if source_edits.applied(source, chosen) is None:
            return []
    lines: List[str] = []
    for file, chosen in _by_file(finding.edits).items():
        after = source_edits.applied(before[file], chosen) or []
        lines += difflib.unified_diff(before[file], after, "a/" + _name(file), "b/" + _name(file), n=width, lineterm="")
    return lines


def shell(finding: Finding) -> List[str]:
    """Return the lines of a change that are for a shell: variables, and the command to start with."""
    return change.shell(finding.edits)


def _by_file(edits: List[change.Edit]) -> "Dict[str, List[change.InSource]]":
    found: Dict[str, List[change.InSource]] = {}
    for edit in edits:
        if not isinstance(edit, (change.Variable, change.Command)):
            file = edit.file if isinstance(edit, change.Entry) else edit.site.file if edit.site is not None else ""
            found.setdefault(file, []).append(edit)
    return found


def _name(path: str) -> str:
    """Return a path as `patch -p1` takes it in the folder where one stands, or in the file's own folder."""
    here = os.getcwd() + os.sep
    return path[len(here) :] if path.startswith(here) else os.path.basename(path)


def _source(path: str) -> Optional[List[str]]:
    """A path in a log is no more than a claim: only a Python file is read, and no more of it than a person writes."""
    try:
        if not path.endswith(".py") or not os.path.isfile(path) or os.path.getsize(path) > _LARGEST:
            return None
        with open(path, encoding="utf-8") as file:
            return file.read().splitlines()
    except (OSError, UnicodeDecodeError, ValueError):
        return None
