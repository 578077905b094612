"""Prints docs/contributing/probes.md from ddp_probe/traced/probes."""

import inspect
import sys
from typing import Any, Iterator

from docs_parts import declarations, declared
from docs_parts.markdown import NOTE, anchor, prose


def probes_page() -> str:
    """Return docs/contributing/probes.md."""
    lines = [
        NOTE % "ddp_probe/traced/probes",
        "# Probes",
        "",
        "One file each under `ddp_probe/traced/probes/`. A target is patched in the module that defines it, once that module is executed.",
        "`python -m ddp_probe status` says which of them this interpreter has.",
    ]
    for probe in declarations.probes():
        module, about = str(sys.modules[probe.__module__].__doc__), inspect.cleandoc(str(probe.__doc__))
        lines += ["", "## %s" % probe.name, "", prose(module.strip()), "", prose(about), "", "Cost: " + prose(probe.cost), ""]
        lines += [often(probe), "", "| target | in | |", "|---|---|---|"]
        lines += [
            "| `%s.%s` | %s | %s |" % (module, qualname, ", ".join(roles), "if it exists" if optional else "")
            for _, module, qualname, roles, optional in declared.targets(probe)
        ]
        lines += ["", "| event | phases |", "|---|---|", *written(probe)]
    return "\n".join(lines) + "\n"


def often(probe: Any) -> str:
    """Return how many of the calls of one line are recorded."""
    return "Recorded: %d calls of one line of the job, then its %dth, %dth, %dth call and so on." % (
        probe.often,
        *(probe.often * by for by in (2, 4, 8)),
    )


def written(probe: Any) -> Iterator[str]:
    """Yield a row for each event that the probe writes."""
    for kinds, phases in ((probe.events, "begin, then end or error"), (probe.points, "point")):
        for kind in kinds:
            name = str(kind.__struct_config__.tag)
            yield "| [%s](../events.md#%s) | %s |" % (name, anchor(name), phases)
