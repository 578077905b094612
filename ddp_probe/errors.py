"""An error is a small form with three blanks, so that nobody can forget the remedy."""


class ProbeError(Exception):
    """Something a person asked for that cannot be done: what happened, why, and what to do."""

    exit_code = 1
    nothing_recorded = False  # The job may have run without the probe: the command line says what it finds of that.

    def __init__(self, *, what: str, why: str, what_to_do: str) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.what_to_do = what_to_do

    def __str__(self) -> str:
        return "%s\n  why: %s\n  what to do: %s" % (self.what, self.why, self.what_to_do)


class UnusableError(ProbeError):
    """Nothing to work on, or nothing to work with: no run, an empty folder, a wrong path, a package that is not installed; exit code 2."""

    exit_code = 2


class UsageError(UnusableError):
    """A command line that cannot be understood."""

    def __init__(self, what: str, what_to_do: str) -> None:
        super().__init__(what=what, why="", what_to_do=what_to_do)

    def __str__(self) -> str:
        return "%s\n  what to do: %s" % (self.what, self.what_to_do)
