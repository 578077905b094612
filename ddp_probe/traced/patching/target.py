"""A target names a callable: the module that defines it, and the qualified name inside."""

from typing import NamedTuple


class Target(NamedTuple):
    """The name of a callable to patch."""

    module: str
    qualname: str

    def __str__(self) -> str:
        return "%s.%s" % (self.module, self.qualname)
