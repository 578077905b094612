"""What a page's commands print: over a recorded job as if it were train.py of this folder, or over a fault that is made here."""

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any, Dict, Tuple
from unittest import mock

from page_blocks import REPO

from ddp_probe import cli
from ddp_probe.showing import inventory

RECORDED = REPO / "tests" / "recorded" / "new"
_TEXTS = (".jsonl", ".txt", ".json")
_RUN = re.compile(r'"run":"([^"]+)"')
# What differs between machines, and what the pages have in its place.
PYTHON, FOLDER = "/opt/train/bin/python", "/train"


class Scene:
    """A folder of a job, and what commands print in it."""

    def __init__(self, folder: Path, output: Any) -> None:
        self.folder = folder
        self._output = output

    def job(self, name: str) -> Path:
        """Put a recorded job here: its run into ddp_probe_runs, its program as train.py, older than the run. Return the run's folder."""
        logs = {path.relative_to(RECORDED / name): path.read_text(encoding="utf-8") for path in RECORDED.joinpath(name).rglob("*") if path.is_file()}
        run = next(found.group(1) for found in map(_RUN.search, logs.values()) if found)
        for path, text in logs.items():
            copy = self.folder / "ddp_probe_runs" / run / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(self._here(text, name), encoding="utf-8")
        program = REPO / "tests" / "jobs" / (name + ".py")
        shutil.copy(str(program), str(self.folder / "train.py"))
        os.utime(str(self.folder / "train.py"), (1, 1))
        return self.folder / "ddp_probe_runs" / run

    def _here(self, text: str, name: str) -> str:
        for old, new in ((name, "train"), ("/train/", str(self.folder) + "/"), ("/scratch/runs", str(self.folder / "ddp_probe_runs"))):
            text = text.replace(old, new)
        return text

    def printed(self, *words: str) -> str:
        """Return what a command of the probe prints here, to stdout and to stderr."""
        self._output.readouterr()
        with mock.patch.object(inventory, "age", return_value=120.0):
            cli.main(list(words))
        return self.said()

    def shown(self, *words: str) -> str:
        """Return a command of the probe, as a person types it, and what it prints."""
        return "$ python -m ddp_probe %s\n%s" % (" ".join(words), self.printed(*words))

    def said(self) -> str:
        """Return what was printed to stdout and to stderr since the last question, in the words of the pages."""
        out, err = self._output.readouterr()
        return self.of_pages(out + err).rstrip("\n")

    def of_pages(self, text: str) -> str:
        """Put the folder and the Python of the pages in place of this machine's."""
        for here, there in ((str(self.folder), FOLDER), (sys.executable, PYTHON)):
            text = re.sub("'(%s[^']*)'" % re.escape(here), r"\1", text).replace(here, there)  # In quotes if this machine's path holds a space.
        return text


def lines_of(run: Path) -> Dict[Tuple[str, int], str]:
    """Return every line of a run's logs, by its file and number."""
    return {(path.name, number): line for path in run.glob("*.jsonl") for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)}
