"""Prints docs/checks.md from ddp_probe/doctor/checks."""

from ddp_probe.doctor.checks import HUNDREDS, modules
from docs_parts.markdown import NOTE, prose


def checks_page() -> str:
    """Return docs/checks.md."""
    lines = [
        NOTE % "ddp_probe/doctor/checks",
        "# Checks of doctor",
        "",
        "One file each under `ddp_probe/doctor/checks/`. `python -m ddp_probe explain DOC301` prints one. An id and a slug never change.",
        "A check says ok, warn, fail, unknown (it could not look) or skipped, with the reason; what fails comes with what to do.",
    ]
    hundred = ""
    for module in modules():
        check = module.CHECK
        if check.id[:4] != hundred:
            hundred = check.id[:4]
            lines += ["", "## %s" % HUNDREDS[hundred], "", "| check | what has to be so | what it looks at | if it fails |", "|---|---|---|---|"]
        name = "%s %s%s" % (check.id, check.slug, " (live)" if check.live else "")
        lines.append("| %s |" % " | ".join(prose(" ".join(text.split())) for text in (name, check.title, check.looks_at, check.remedy)))
    return "\n".join(lines) + "\n"
