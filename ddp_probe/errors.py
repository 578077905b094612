"""An error is a small form with three blanks, so that nobody can forget the remedy."""


class ProbeError(Exception):
    """Something a person asked for that cannot be done: what happened, why, and what to do."""

    def __init__(self, *, what: str, why: str, what_to_do: str) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.what_to_do = what_to_do

    def __str__(self) -> str:
        return "%s\n  why: %s\n  what to do: %s" % (self.what, self.why, self.what_to_do)


class UsageError(ProbeError):
    """A command line that cannot be understood; exit code 2."""

    def __init__(self, what: str, what_to_do: str) -> None:
        super().__init__(what=what, why="", what_to_do=what_to_do)

    def __str__(self) -> str:
        return "%s\n  what to do: %s" % (self.what, self.what_to_do)
