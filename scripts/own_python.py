"""For a script that was started with a Python that lacks what it imports: starts it again with that of .venv, or says in one line what to run.

A newcomer starts a script as it stands, with whichever python3 is on PATH. This cannot lie in ddp_probe, whose modules import what may be missing.
"""

import importlib.util
import os
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
VENV = REPO / ".venv"
PACKAGE = ("msgspec", "structlog", "wrapt")
"""What the package imports; a test compares it with setup.cfg."""


def need(*modules: str) -> None:
    """Return if these modules are found; a script calls this before it imports what needs them."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if not missing:
        return
    script = os.path.relpath(os.path.realpath(sys.argv[0]), str(REPO))
    python = VENV / "bin" / "python"
    inside = Path(sys.prefix) == VENV
    if python.exists() and not inside:
        os.execv(str(python), [str(python), *sys.argv])  # noqa: S606  # the same command, and no shell
    where = ".venv is out of date" if inside else "there is no .venv"
    sys.stderr.write(
        "%s: %s lacks %s, and %s. ./scripts/test --quick builds it and runs the quick tests; then start this again.\n"
        % (script, sys.executable, ", ".join(missing), where)
    )
    sys.exit(2)
