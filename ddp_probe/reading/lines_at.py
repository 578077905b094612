"""Reads single lines of a log, or single records of a ledger, so that a report can quote what its evidence points at."""

import os
import stat
from typing import Collection, Dict

from ddp_probe.reading import events, held_files
from ddp_probe.reading._lines import lines
from ddp_probe.shared import ledger_schema


def lines_at(file: str, numbers: Collection[int]) -> Dict[int, bytes]:
    """Return the lines with these numbers, or of a ledger the records as `logs --raw` prints them; what is not there is left out."""
    if file.endswith(ledger_schema.SUFFIXES):
        return {one.number: one.line for one in events.records(file) if one.number in numbers}
    place, last = held_files.place(file), max(numbers, default=0)
    found: Dict[int, bytes] = {}
    try:
        if not stat.S_ISREG(os.stat(place).st_mode):  # Opening a pipe would block forever.
            return found
        with open(place, "rb") as stream:
            for number, line, _ in lines(stream):
                if number in numbers:
                    found[number] = line
                if number >= last:
                    break
    except OSError:
        pass
    return found
