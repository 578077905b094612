"""The probe can write its files."""

import os
import shlex
import tempfile

from ddp_probe.activation import run_folder
from ddp_probe.judging.doctor.check import Answer, Check
from ddp_probe.judging.doctor.host import Host

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
        return CHECK.fail(
            "%s cannot be written: %s%s." % (folder, exc.strerror or exc, "" if place == folder else " (%s)" % place),
            "export DDP_PROBE_DIR=%s" % shlex.quote(os.path.join(tempfile.gettempdir(), "ddp_probe_runs")),
        )
    return CHECK.ok("%s %s." % (folder, "can be written" if place == folder else "can be made"))
