"""A target is a name: the defining module, and the way from there to a callable."""

from typing import NamedTuple


class Target(NamedTuple):
    """What is to be watched, by the module that defines it and the qualified name inside."""

    module: str
    qualname: str

    def __str__(self) -> str:
        return "%s.%s" % (self.module, self.qualname)
