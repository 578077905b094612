"""The path of the folder for temporary files is short enough for the sockets that lie in it."""

import os
import tempfile

from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.wording.text import say

CHECK = Check(
    id="DOC305",
    slug="temp-folder",
    title="The path of the folder for temporary files is short enough for the sockets of DataLoader workers.",
    looks_at="TMPDIR, or the folder that Python chooses without it, and how long its path is.",
    remedy="Choose a folder with a shorter path: export TMPDIR=/tmp",
)
_LONGEST = 107  # Bytes of a socket's path on Linux; one more ends the string.
_SOCKET = "/pymp-12345678/listener-12345678"  # What multiprocessing adds, with eight random letters.


def check(host: Host) -> Answer:
    """Measure its path."""
    folder = host.environ.get("TMPDIR") or tempfile.gettempdir()
    length = len(os.fsencode(folder + _SOCKET))
    if length <= _LONGEST:
        return CHECK.ok(say("Temporary files are in {folder}.", folder=folder))
    return CHECK.fail(
        say(
            "A socket in {folder} would have a path of {length} characters; {longest} are possible. DataLoader workers "
            "would fail with 'AF_UNIX path too long'.",
            folder=folder,
            length=length,
            longest=_LONGEST,
        ),
        CHECK.remedy,
    )
