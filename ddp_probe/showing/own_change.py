"""The permanent change, as a diff of the job's own source if it is available. A remedy only replaces it for a while.

The edits are the finding's own, from which its text is made too. The source is parsed, never run. If a line is not the call that the log
names, or one of several edits cannot be made, there is no diff rather than a wrong one.
"""

import difflib
import os
from typing import Dict, List, Optional

from ddp_probe.judging import change
from ddp_probe.judging.rule import Finding
from ddp_probe.reading import job_source
from ddp_probe.showing import source_edits


def diff(finding: Finding, width: int = 3) -> List[str]:
    """Return the lines of a unified diff of every file that the change affects; empty if one of its edits cannot be made."""
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
    """Return the part of a change for the shell: variables, and the command to start the job."""
    return change.shell(finding.edits)


def _by_file(edits: List[change.Edit]) -> "Dict[str, List[change.InSource]]":
    found: Dict[str, List[change.InSource]] = {}
    for edit in edits:
        if not isinstance(edit, (change.Variable, change.LaunchCommand)):
            file = edit.file if isinstance(edit, change.ConfigLine) else edit.site.file if edit.site is not None else ""
            found.setdefault(file, []).append(edit)
    return found


def _name(path: str) -> str:
    """Return a path that `patch -p1` accepts in the current folder, or in the file's own folder."""
    here = os.getcwd() + os.sep
    return path[len(here) :] if path.startswith(here) else os.path.basename(path)


def _source(path: str) -> Optional[List[str]]:
    """Return the lines of a Python file."""
    found = job_source.read(path) if path.endswith(".py") else None
    return found.text.splitlines() if found is not None else None
