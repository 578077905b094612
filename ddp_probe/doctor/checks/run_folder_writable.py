"""The probe can write its files."""

import os
import shlex
import tempfile

from ddp_probe.activation import run_folder
from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted

CHECK = Check(
    id="DOC502",
    slug="run-folder-writable",
    title="The folder of runs can be written.",
    looks_at="DDP_PROBE_DIR, or ddp_probe_runs in this folder; a file is created and removed there, or in the folder in which it would be created.",
    remedy="Point DDP_PROBE_DIR to a folder that can be written: export DDP_PROBE_DIR=/tmp/ddp_probe_runs",
)


def check(host: Host) -> Answer:
    """Write there."""
    folder = run_folder.root(host.environ)
    place = folder
    while not os.path.lexists(place) and os.path.dirname(place) != place:
        place = os.path.dirname(place)
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(b"x")
    except OSError as exc:
        error = quoted(exc.strerror or exc)
        saw = say("{folder} cannot be written: {error}.", folder=quoted(folder), error=error)
        if place != folder:
            saw = say(
                "{folder} cannot be written: {error} ({place}).",
                folder=quoted(folder),
                error=error,
                place=quoted(place),
            )
        elsewhere = os.path.join(tempfile.gettempdir(), "ddp_probe_runs")
        return CHECK.fail(saw, quoted("export DDP_PROBE_DIR=%s" % shlex.quote(elsewhere)))
    if place == folder:
        return CHECK.ok(say("{folder} can be written.", folder=quoted(folder)))
    return CHECK.ok(say("{folder} can be made.", folder=quoted(folder)))
