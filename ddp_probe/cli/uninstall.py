"""Remove exactly what install wrote. Without the package, 'python -m ddp_probe_activator uninstall' does the same."""

import argparse
import os
from typing import List

from ddp_probe.cli._commands import Command

COMMAND = Command("uninstall", order=140, summary="Remove exactly what install wrote.")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments: none."""


def run(_args: argparse.Namespace) -> int:
    """Remove, report."""
    gone = _remove()
    for path in gone:
        print("removed  %s" % path)
    if not gone:
        print("Nothing to remove.")
    return 0


def _remove() -> List[str]:
    """Use the installer; if the package is too broken to load it, the installed activator removes itself."""
    try:
        from ddp_probe.activation.installer import installation
    except Exception:
        return _without_the_package()
    return installation.uninstall()


def _without_the_package() -> List[str]:
    try:
        import ddp_probe_activator as activator  # type: ignore[import-not-found]  # written to site-packages by install
    except ImportError:
        return []
    return list(activator.remove(os.path.dirname(os.path.abspath(activator.__file__))))
