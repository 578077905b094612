"""The launcher's last word: once a launch has failed, a child reads what the ranks wrote, and stderr says it.

The finding stands in torchrun's own table of failures, at its root cause, where torchrun knows nothing but an
exit code or a signal. Whatever else was found, and how to read the whole report, follows in lines of ours.

Never in a rank that a launcher started, never before the launcher's end, and never longer than a few seconds:
a reader that needs more is ended, and the line that asks for the report is all that is said. A program that
starts the other ranks itself, as one does with Lightning, has no launcher beside it: it is rank 0 and the
launcher in one process, and nobody else is left who could speak.
"""

import os
from typing import List, Optional, Tuple

from ddp_probe.shared import schema
from ddp_probe.shared.masks import masked
from ddp_probe.shared.ours import ours
from ddp_probe.traced.facts.describe import class_name
from ddp_probe.traced.record import brief, stderr
from ddp_probe.traced.record.chain import OURS
from ddp_probe.traced.session import Session

_SECONDS = 5.0
_MOST_LINES = 12
_LONGEST = 1000
_FOUND = 1
"""The exit code of a report that has found an error: its first line is the finding."""
_FAILED = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError"
_CELL = "traceback : "
"""What stands before the last text of the table, which is that of its root cause."""
_NO_TEXT = "To enable traceback see: "
"""How that text begins if torchrun knows nothing but an exit code."""
_OF_SIGNAL = "Signal "
"""How it begins if a signal ended the rank."""


class LastWord:
    """What is left to be said of a launch that has failed."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._due = False
        self._lines: Optional[List[str]] = None

    def ask(self, last: schema.Event) -> None:
        """Note from the last line of this process whether there is anything to say."""
        self._due = _is_wanted(last, self._session)

    def enter_in_table(self, exc: BaseException) -> None:
        """Write the finding into the table that is about to be printed; a text of the rank stays alone."""
        if not self._due or class_name(exc) != _FAILED or len(exc.args) != 1 or type(exc.args[0]) is not str:
            return
        table, cell, text = exc.args[0].rpartition(_CELL)
        if not cell or not text.startswith((_NO_TEXT, _OF_SIGNAL)) or self._lines is not None:
            return
        self._lines, code = _read(self._session.process.folder)
        if code == _FOUND and self._lines:
            known, newline, border = text.partition("\n")
            finding = OURS + masked(self._lines.pop(0), _LONGEST)
            entry = finding if known.startswith(_NO_TEXT) else "%s; %s" % (known, finding)
            exc.args = (table + cell + entry + newline + border,)

    def say(self) -> None:
        """Say what the table does not hold, a line each, and how to get the whole report."""
        if not self._due:
            return
        folder = self._session.process.folder
        if self._lines is None:
            self._lines, _ = _read(folder)
        for line in self._lines[:_MOST_LINES]:
            stderr.say(line)
        stderr.say("The whole report: %s" % brief.command("report", folder))


def _is_wanted(last: schema.Event, session: Session) -> bool:
    """Tell a launcher whose launch has failed, and a person who has not asked for silence."""
    if not isinstance(last, (schema.LauncherEnd, schema.ProcessEnd)) or not brief.is_wanted():
        return False
    if last.failure is None and not last.exit_code:
        return False
    return isinstance(last, schema.LauncherEnd) or (_started_others(session) and brief.can_start())


def _started_others(session: Session) -> bool:
    """Return whether this program is rank 0 beside others: what else writes in its run was started by it."""
    written = session.recorder.path
    if session.process.role.name != "solo" or written is None:
        return False
    own = os.path.basename(written).partition(".")[0]
    names = (name for name in os.listdir(session.process.folder) if name.startswith("rank"))
    return any(name.partition(".")[0] != own for name in names)


def _read(folder: str) -> Tuple[List[str], Optional[int]]:
    """Return the lines of the brief report, and its exit code; no lines if it cannot be read in time."""
    from ddp_probe.shared.child_process import ChildProcess  # It loads subprocess, which a rank never needs.

    try:
        child = ChildProcess(brief.arguments(folder), brief.environment())
        try:
            printed = child.wait(_SECONDS)
        finally:
            child.end()
    except ours(OSError, KeyboardInterrupt):
        return [], None
    said = printed.out.decode("utf-8", "replace").splitlines() if printed.code in (0, 1, 3) else []
    return said, printed.code
