"""One switch for the whole process: off, and every wrapper is a corridor to its original."""


class Switch:
    """On in the process that is watched; a forked child or a helper turns it off."""

    __slots__ = ("on",)

    def __init__(self) -> None:
        self.on = True


switch = Switch()
