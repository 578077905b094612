"""Reads the files of a running job repeatedly and prints changes, with at most a fifth of one core."""

import os
import platform
import sys
import time
from typing import Any, Callable, List, Sequence, Set, Tuple

from ddp_probe.judging.judge import Diagnosis, judge
from ddp_probe.reading import find
from ddp_probe.reading.load_run import load
from ddp_probe.reading.model import Run
from ddp_probe.shared.errors import ProbeError
from ddp_probe.showing import as_json, brief_form, forms, inventory, language, safe, terminal
from ddp_probe.showing.rank_state import rank_states
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import clock, listed

SHARE = 0.2  # Maximum share of one core.
_PAUSE = 1.0  # Minimum seconds between two checks of the files.
_ALIVE = 5.0  # Seconds between two checks of processes, even if no file has changed.
_SETTLED = 10.0  # If all processes are gone and no file has grown for this many seconds, the job is over.


def follow(paths: Sequence[str], form: str, code_of: Callable[[Diagnosis], int] = Diagnosis.exit_code) -> int:
    """Follow a job until it has ended, and return the exit code of the last report; Ctrl-C ends it, as for each command."""
    forms.refuse_to_follow(form)
    printer = _Printer(form)
    try:
        chosen = list(paths) or [_newest(printer)]
        seen, looked, grown = None, 0.0, time.monotonic()
        while True:
            began, spent = time.monotonic(), time.process_time()
            sizes = _sizes(chosen)
            if sizes != seen or began - looked >= _ALIVE:
                grown = began if sizes != seen else grown
                seen, looked = sizes, began
                diagnosis = judge(load(chosen))
                over = _over(diagnosis.run, began - grown)
                printer.update(diagnosis, over)
                if over:
                    return code_of(diagnosis)
                del diagnosis  # Frees its memory before the next reading.
            time.sleep(max(_PAUSE, (time.process_time() - spent) * (1 / SHARE - 1)))
    finally:
        printer.status("")


def _newest(printer: "_Printer") -> str:
    """Return the newest run, or wait for the first one."""
    while True:
        try:
            return find.newest()
        except ProbeError:
            printer.status(say("waiting for a run in {folder}", folder=os.path.abspath(find.root())))
            time.sleep(_PAUSE)


def _sizes(paths: Sequence[str]) -> List[Tuple[str, int]]:
    sources = find.files(paths, "--follow")
    sizes = []
    for file in (*sources.events, *sources.texts):
        try:
            sizes.append((file, os.stat(file).st_size))
        except OSError:
            sizes.append((file, -1))
    return sizes


def _over(run: Run, quiet: float) -> bool:
    """Return whether no process of this launch will write again."""
    here = platform.node()
    gone = [process.end or process.death or (process.host == here and process.rank not in run.running) for process in run.processes]
    if not all(gone) or not (run.processes or run.launchers):
        return False
    complete = not run.missing and all(launcher.end is not None for launcher in run.launchers)
    return complete or (quiet >= _SETTLED and bool(run.processes))


class _Printer:
    """Prints only what is new: the whole report if its verdict changes, single lines in a pipe."""

    def __init__(self, form: str) -> None:
        self._form = form
        self._person = form == forms.TERMINAL and sys.stdout.isatty()
        self._said: Set[str] = set()
        self._picture: Any = None

    def update(self, diagnosis: Diagnosis, over: bool) -> None:
        """Print what is new."""
        picture: Any = (diagnosis.verdict, [(finding.id, finding.ranks) for finding in diagnosis.findings])
        if self._form == forms.JSON:
            picture = (*picture, [reason.because for reason in diagnosis.undecided])
        changed, self._picture = picture != self._picture, picture
        self.status("")
        if self._form == forms.JSON:
            self._print([as_json.text(diagnosis, None)] if changed or over else [])
        elif self._person:
            self._report(diagnosis, changed or over)
        else:
            self._lines(diagnosis)
            self._report(diagnosis, over and self._form == forms.TERMINAL)
        if not over:
            self.status(_now(diagnosis))

    def _report(self, diagnosis: Diagnosis, wanted: bool) -> None:
        if wanted:
            self._print(["", "--- %s" % _time_now()])
            terminal.show(diagnosis)
            sys.stdout.flush()

    def _lines(self, diagnosis: Diagnosis) -> None:
        new = [line for line in brief_form.lines(diagnosis, language.english()) if line not in self._said]
        self._said.update(new)
        self._print(["%s  %s" % (_time_now(), line) for line in new])

    def _print(self, lines: Sequence[str]) -> None:
        for line in lines:
            print(line, flush=True)  # noqa: T201  # what the command prints

    def status(self, text: str) -> None:
        """Show a line on a terminal's stderr, replacing the previous one."""
        if sys.stderr.isatty() and self._form == forms.TERMINAL:
            translated = language.chosen(sys.stderr).text(text)
            sys.stderr.write("\r%s\r%s" % (" " * 78, safe.line(translated)[:78]))
            sys.stderr.flush()


def _time_now() -> str:
    return language.english().text(clock(time.time()))


def _now(diagnosis: Diagnosis) -> Text:
    run = diagnosis.run
    ends = inventory.ends(rank_states(run))
    counts = listed([say("{count} {end}", count=len(ranks), end=say(end)) for end, ranks in ends.items()])
    return say(
        "{now}  {ranks}, {lines} lines; Ctrl-C ends",
        now=clock(time.time()),
        ranks=counts or say("no rank yet"),
        lines=run.inventory.lines,
    )
