"""Prints docs/remedies.md from ddp_probe/traced/remedies."""

import inspect

from docs_parts import declarations
from docs_parts.markdown import NOTE, prose


def remedies_page() -> str:
    """Return docs/remedies.md."""
    lines = [
        NOTE % "ddp_probe/traced/remedies",
        "# Remedies",
        "",
        "`DDP_PROBE_FIX=auto`, or names with commas in between, changes these calls while the job starts. Each change is an event",
        "`remedy.applied` with before and after, is reported once on stderr, and is undone by `ddp_probe.restore()`. A remedy that might be",
        "wrong does nothing and says why (`remedy.declined`). Without the variable, nothing is ever changed. A remedy is temporary: each says how",
        "to make the same change in code.",
        "",
        "Before you use them: `atomic-save` needs disk space for the old and the new checkpoint at the same time. `backend` decides in each rank,",
        "without knowing the other hosts. `settled-load` waits at most 30 s for an incomplete file that nothing writes to. torch 1.12 ends the whole",
        "process on a full disk, with any remedy.",
    ]
    for remedy in declarations.remedies():
        lines += ["", "## %s" % remedy.word, "", prose(inspect.cleandoc(str(remedy.__doc__))), "", "| | |", "|---|---|"]
        lines += ["| applies under auto | %s |" % prose(remedy.when), "| in code | %s |" % prose(remedy.for_good)]
        lines += ["| changes | %s |" % ", ".join("`%s`" % target.replace(":", ".") for target in remedy.targets)]
    return "\n".join(lines) + "\n"
