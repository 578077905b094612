"""The error of every command that cannot write a file or a folder."""

from ddp_probe.shared.errors import UnusableError
from ddp_probe.wording.text import say


class UnwritableError(UnusableError):
    """A place at which nothing can be written."""

    def __init__(self, path: str, exc: OSError, what_to_do: str = "Name another file.") -> None:
        why = "%s." % (exc.strerror or exc)
        super().__init__(what=say("{path} cannot be written.", path=path), why=why, what_to_do=what_to_do)
