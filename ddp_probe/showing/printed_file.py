"""The one door through which text that a program of the job has printed enters a file: masked, and readable by its user alone."""

import os

from ddp_probe.showing.masker import Masker

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW


def write(path: str, printed: str) -> None:
    """Write what was printed, masked line by line, and of a private key every line."""
    masked = Masker(os.environ).lines(printed.encode("utf-8", "replace"), "what was printed")
    with os.fdopen(os.open(path, _FLAGS, 0o600), "wb") as file:
        file.write(masked)
