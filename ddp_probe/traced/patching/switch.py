"""Switches: the one of the whole process, with which every wrapper only calls its original while it is off, and that of the ledger."""


class Switch:
    """On in the process that is watched; a forked child or a helper turns it off. That of the ledger is off after a fault of ours, too."""

    __slots__ = ("on",)

    def __init__(self) -> None:
        self.on = True


switch = Switch()
