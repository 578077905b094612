"""Prints what a run left behind, in 80 columns: its files, each rank's events, and one event in full."""

import itertools
import json
import sys
import textwrap
from pathlib import Path
from typing import Any, Dict, List

Event = Dict[str, Any]


def events_of(file: Path) -> List[Event]:
    """Return the events of one file, one a line."""
    with file.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def wrapped(text: str, indent: str, hang: str) -> str:
    """Return the text in lines of at most 79 characters."""
    return textwrap.fill(text, width=79, initial_indent=indent, subsequent_indent=hang, break_on_hyphens=False)


def show_files(files: Dict[Path, List[Event]]) -> None:
    """Print each file with its number of lines."""
    for file, events in files.items():
        print("%6d lines  %s" % (len(events), file.name))


def show_sequence(events: List[Event]) -> None:
    """Print one rank's events in the order they were written."""
    steps = []
    for name, alike in itertools.groupby("%s/%s" % (event.get("event"), event.get("phase")) for event in events):
        times = len(list(alike))
        steps.append(name if times == 1 else "%s (%d times)" % (name, times))
    print("\nrank %s:" % events[0].get("rank"))
    print(wrapped(" > ".join(steps), indent="  ", hang="  "))


def show_event(events: List[Event], name: str) -> None:
    """Print the first begin of one event, in full, a field a line."""
    for event in events:
        if event.get("event") == name and event.get("phase") == "begin":
            print("\n%s of rank %s, the line written before the call:" % (name, event.get("rank")))
            for key, value in event.items():
                print(wrapped("%s: %s" % (json.dumps(key), json.dumps(value)), indent="  ", hang="      "))
            return


def main() -> int:
    """Show the one run below the folder given; 1 where a rank left no file."""
    runs = [folder for folder in Path(sys.argv[1]).iterdir() if folder.is_dir() and not folder.is_symlink()]
    files = {file: events_of(file) for run in runs for file in sorted(run.glob("*.jsonl"))}
    show_files(files)
    ranks = [events for file, events in files.items() if file.name.startswith("rank") and events]
    for events in ranks:
        show_sequence(events)
    for events in ranks[:1]:
        show_event(events, "ddp.init")
    return 0 if len(ranks) == 2 else 1


if __name__ == "__main__":
    sys.exit(main())
