"""Why DDP_PROBE=1 may have recorded nothing: what this interpreter does at its start, as a child of it tells."""

import sys

from ddp_probe.errors import ProbeError


def add(exc: ProbeError) -> None:
    """Complete what is said of a folder without a run; any other error stays as it is."""
    if not exc.nothing_recorded:
        return
    try:
        why, remedy = _found()
    except Exception:  # this interpreter cannot start a child: what is known is said all the same
        return
    if why:
        exc.why = "%s %s" % (exc.why, why)
        exc.what_to_do = "%s %s" % (remedy, exc.what_to_do)


def _found() -> "tuple[str, str]":
    from ddp_probe.activation.installer import state

    found = state.state()
    again = "python -m ddp_probe install, and run the job again."
    if found.name == "active":
        return found.because, again if found.because else ""
    if found.missing:
        return found.because, "%s -m pip install %s." % (sys.executable, " ".join(found.missing))
    if found.name == "absent":
        told = "The activator is not installed for %s: DDP_PROBE=1 alone records nothing there." % sys.executable
        return told, "python -m ddp_probe install, once; or, for one launch, python -m ddp_probe run -- COMMAND."
    return "The activator is %s: %s" % (found.name, found.because), again
