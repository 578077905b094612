"""One switch for the whole process: while it is off, every wrapper only calls its original."""


class Switch:
    """On in the process that is watched; a forked child or a helper turns it off."""

    __slots__ = ("on",)

    def __init__(self) -> None:
        self.on = True


switch = Switch()
