"""Explains why DDP_PROBE=1 may have recorded nothing, by the checks of doctor that look at the probe itself."""

import sys

from ddp_probe.shared.errors import ProbeError
from ddp_probe.wording.text import joined, say

# A job that was started with `run` needs no installation.
_SINGLE = (
    "'python -m ddp_probe run' needs no installation; but a program of one process has a run only once it makes a call that is recorded, "
    "such as init_process_group, a wrap in DDP, torch.save or torch.load."
)


def add(exc: ProbeError) -> None:
    """Add the reason to an error about a folder without runs; other errors stay unchanged."""
    if not exc.nothing_recorded:
        return
    try:
        why, remedy = _first_problem()
    except Exception:  # this interpreter cannot start a child: report the original error
        return
    exc.why = joined([exc.why, why, say(_SINGLE)])
    if remedy:
        exc.what_to_do = say("{remedy:clause}, then run the job again. {more}", remedy=remedy, more=exc.what_to_do)


def _first_problem() -> "tuple[str, str]":
    from ddp_probe.doctor.check import FAIL, WARN
    from ddp_probe.doctor.checks import activator, launcher_recorded, run_folder_writable
    from ddp_probe.doctor.host import Host, Request

    host = Host(Request())
    for module in (activator, launcher_recorded, run_folder_writable):
        answer = module.check(host)
        if answer.status in (FAIL, WARN):
            return answer.saw, answer.remedy
    return say(
        "The probe is installed for {python} and can write: no job with DDP_PROBE=1 was started from here.",
        python=sys.executable,
    ), ""
