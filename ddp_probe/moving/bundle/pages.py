"""The pages of the bundle itself: the report over what is in it, the environment block, and doctor's table if the run is of this host."""

import json
from typing import Dict

from ddp_probe.judging.judge import Diagnosis
from ddp_probe.moving.bundle import environment, host_table
from ddp_probe.showing import as_json, found, terminal
from ddp_probe.showing.layout import GLUE
from ddp_probe.showing.masker import Masker
from ddp_probe.showing.paths import Paths

ENVIRONMENT = "environment.md"
_WIDTH = 80
_CONTEXT = 3  # Lines around a change, as `explain` shows it.


def of(diagnosis: Diagnosis, masker: Masker, *, is_here: bool) -> Dict[str, str]:
    """Return each page by its name."""
    pages = {
        "report.txt": report(diagnosis),
        "report.json": as_json.text(diagnosis) + "\n",
        ENVIRONMENT: environment.block(environment.of_run(diagnosis, masker, is_here=is_here)),
    }
    if is_here:
        text, rows = host_table.table()
        pages["doctor.txt"] = "".join(map(masker.page, text.splitlines(keepends=True)))
        pages["doctor.json"] = json.dumps(masker.fields(rows), indent=1) + "\n"
    return pages


def report(diagnosis: Diagnosis) -> str:
    """Return the report as text."""
    return "".join(line.text + "\n" for line in terminal.lines(diagnosis, _WIDTH))


def everything_said(diagnosis: Diagnosis) -> str:
    """Return all that is said about a run: what `report` prints in two forms, and `explain` for each finding."""
    explained = [
        line.text for finding in diagnosis.findings for line in found.cause(finding, diagnosis, _WIDTH, Paths(diagnosis.run, GLUE), _CONTEXT)
    ]
    return "\n".join([report(diagnosis), as_json.text(diagnosis), *explained])
