"""The first lines of a script that a Python runs, as pip writes them: a `#!` line cannot hold a space."""

from typing import Any


def of(python: Any) -> str:
    """Return the lines for this interpreter."""
    return "#!%s\n" % python if " " not in str(python) else "#!/bin/sh\n'''exec' \"%s\" \"$0\" \"$@\"\n' '''\n" % python
