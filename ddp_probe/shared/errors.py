"""Errors with three required parts: what happened, why, and what to do."""


class ProbeError(Exception):
    """A request that cannot be fulfilled: what happened, why, and what to do."""

    exit_code = 1
    nothing_recorded = False  # The job may have run without the probe: the command line then explains why.

    def __init__(self, *, what: str, why: str, what_to_do: str) -> None:
        from ddp_probe.shared.masks import mask  # Few commands fail: the others do not load the masks for it.

        # Each may name an address or a command line, as they were given.
        self.what, self.why, self.what_to_do = mask(what), mask(why), mask(what_to_do)
        super().__init__(self.what)

    def __str__(self) -> str:
        return "%s\n  why: %s\n  what to do: %s" % (self.what, self.why, self.what_to_do)


class UnusableError(ProbeError):
    """Missing input or a missing dependency: no run, an empty folder, a wrong path, a package that is not installed; exit code 2."""

    exit_code = 2


class UnwritableError(UnusableError):
    """A place at which nothing can be written."""

    def __init__(self, path: str, exc: OSError, what_to_do: str = "Name another file.") -> None:
        why = "%s." % (exc.strerror or exc)
        super().__init__(what="%s cannot be written." % path, why=why, what_to_do=what_to_do)


class UsageError(UnusableError):
    """An invalid command line."""

    def __init__(self, what: str, what_to_do: str) -> None:
        super().__init__(what=what, why="", what_to_do=what_to_do)

    def __str__(self) -> str:
        return "%s\n  what to do: %s" % (self.what, self.what_to_do)
