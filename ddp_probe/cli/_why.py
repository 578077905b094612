"""Explains why DDP_PROBE=1 may have recorded nothing, by checking the start-up of a child interpreter."""

import sys

from ddp_probe.errors import ProbeError


def add(exc: ProbeError) -> None:
    """Add the reason to an error about a folder without runs; other errors stay unchanged."""
    if not exc.nothing_recorded:
        return
    try:
        why, remedy = _found()
    except Exception:  # this interpreter cannot start a child: report the original error
        return
    if why:
        exc.why = "%s %s" % (exc.why, why)
        exc.what_to_do = "%s %s" % (remedy, exc.what_to_do)


def _found() -> "tuple[str, str]":
    from ddp_probe.activation.installer import state

    found = state.state()
    again = "Run python -m ddp_probe install, then run the job again."
    if found.name == "active":
        return found.because, again if found.because else ""
    if found.missing:
        return found.because, "Run %s -m pip install %s." % (sys.executable, " ".join(found.missing))
    if found.name == "absent":
        why = "The activator is not installed for %s: DDP_PROBE=1 alone records nothing there." % sys.executable
        return why, "Run python -m ddp_probe install once; or, for one launch, python -m ddp_probe run -- COMMAND."
    return "The activator is %s: %s" % (found.name, found.because), again
