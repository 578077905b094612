"""Remove exactly what install wrote.

Without the package, 'python -m ddp_probe_activator uninstall' does the same.
What others wrote into one of these files stays in it. A file of ours that
somebody has changed is left as it is, and named.
"""

import argparse
import os
import sys
from typing import Callable, List

from ddp_probe.cli._commands import Command

COMMAND = Command("uninstall", order=140, summary="Remove exactly what install wrote.")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments: none."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter


def run(_args: argparse.Namespace) -> int:
    """Remove, report."""
    lines = _remove(_in_words())
    print("\n".join(lines))
    return 0


def _in_words() -> Callable[[str], str]:
    """Return what gives a text in the reader's language; a package that is broken says it in English."""
    try:
        from ddp_probe.showing import language
    except Exception:
        return str
    return language.chosen(sys.stdout).__call__


def _remove(say: Callable[[str], str]) -> List[str]:
    """Use the installer; if the package is too broken to load it, the installed activator removes itself."""
    try:
        from ddp_probe.activation.installer import activator_files, installation, locations
    except Exception:
        return _without_the_package() or [say("Nothing to remove.")]
    lines = activator_files.said(installation.uninstall(), locations.all_folders(), say)
    return lines or [say("Nothing to remove.")]


def _without_the_package() -> List[str]:
    try:
        import ddp_probe_activator as activator  # type: ignore[import-not-found]  # written to site-packages by install
    except ImportError:
        return []
    folder = os.path.dirname(os.path.abspath(activator.__file__))
    return list(activator.said(activator.remove(folder), [folder]))
