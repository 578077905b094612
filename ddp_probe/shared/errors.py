"""Errors with three required parts: what happened, why, and what to do."""


class ProbeError(Exception):
    """A request that cannot be fulfilled: what happened, why, and what to do."""

    exit_code = 1
    nothing_recorded = False  # The job may have run without the probe: the command line then explains why.
    form = "%s\n  why: %s\n  what to do: %s"

    def __init__(self, *, what: str, why: str, what_to_do: str) -> None:
        # Each may name an address or a command line, as they were given.
        self.what, self.why, self.what_to_do = _masked(what), _masked(why), _masked(what_to_do)
        super().__init__(self.what)

    def parts(self) -> "tuple[str, ...]":
        """Return what stands in the places of the form."""
        return self.what, self.why, self.what_to_do

    def __str__(self) -> str:
        return self.form % self.parts()


def _masked(text: str) -> str:
    """Return a text without secrets. One that has none keeps its template, for the reader's language."""
    from ddp_probe.shared.masks import mask  # Few commands fail: the others do not load the masks for it.

    without = mask(text)
    return text if without == text else without


class UnusableError(ProbeError):
    """Missing input or a missing dependency: no run, an empty folder, a wrong path, a package that is not installed; exit code 2."""

    exit_code = 2


class UsageError(UnusableError):
    """An invalid command line."""

    form = "%s\n  what to do: %s"

    def __init__(self, what: str, what_to_do: str) -> None:
        super().__init__(what=what, why="", what_to_do=what_to_do)

    def parts(self) -> "tuple[str, ...]":
        """Return what stands in the places of the form: the command line itself is the reason."""
        return self.what, self.what_to_do
