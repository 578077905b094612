"""The pages of docs/pipelines, and their configurations with a test's own places put in."""

import json
import re
import shutil
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple

import pytest

REPO = Path(__file__).resolve().parent.parent.parent
PAGES = REPO / "docs" / "pipelines"
RECORDED = REPO / "tests" / "recorded" / "new"

# What a page says that the reader puts in.
RUNS, LOKI = "/srv/ddp_probe_runs", ("loki.example", "3100")


class Place(NamedTuple):
    """A test's own places: the folder of runs, one for the collector's own files, and the port of Loki on this host."""

    runs: Path
    state: Path
    port: int


def configured(name: str, place: Place) -> str:
    """Return a configuration as its reader would have changed it."""
    text = (PAGES / name).read_text(encoding="utf-8").replace(RUNS, str(place.runs))
    text = re.sub(r"/var/lib/[\w-]+", str(place.state), text)
    return text.replace(LOKI[0], "127.0.0.1").replace(LOKI[1], str(place.port))


def fences(page: str, language: str) -> List[str]:
    """Return the blocks of a page that are in one language."""
    text = (PAGES / page).read_text(encoding="utf-8")
    return re.findall(r"^```%s\n(.*?)^```$" % re.escape(language), text, re.DOTALL | re.MULTILINE)


def recorded(job: str) -> Dict[str, List[str]]:
    """Return the lines of each file of a recorded run."""
    return {path.name: path.read_text(encoding="utf-8").splitlines() for path in sorted((RECORDED / job).glob("*.jsonl"))}


def events(job: str) -> List[Dict[str, Any]]:
    """Return all events of a recorded run."""
    return [json.loads(line) for lines in recorded(job).values() for line in lines]


def _ended_badly(event: Dict[str, Any]) -> bool:
    ended = event["event"] in ("process.end", "launcher.child")
    return ended and (bool(event.get("uncaught")) or event.get("exit_code", 0) != 0)


SEARCHES: Dict[str, Callable[[Dict[str, Any]], bool]] = {
    "Processes that ended badly": _ended_badly,
    "Hangs": lambda event: event["event"] in ("hang.suspected", "launcher.hang"),
    "Warnings": lambda event: event["event"] == "probe.warning",
    "Calls that raised": lambda event: event["phase"] == "error",
}
"""What the pages search for, by the first words of each search: the events that it must find, and no others."""


def is_alert(event: Dict[str, Any]) -> bool:
    """Tell whether an event may need somebody: a process that ended badly, a hang, a warning."""
    return any(SEARCHES[title](event) for title in ("Processes that ended badly", "Hangs", "Warnings"))


def found(program: str) -> str:
    """Return where a program is, or skip the test with the reason."""
    path = shutil.which(program)
    if path is None:
        pytest.skip("%s is not on PATH; CONTRIBUTING.md says how to run this test" % program)
    return str(path)
