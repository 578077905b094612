#!/usr/bin/env python
"""Checks the environment, finds mmengine, installs the probe and prints the command to run; --restore undoes it.

It never edits a library: the file that it finds stays as it is, and the probe is put beside it.
"""

import argparse
import glob
import os
import sys
from typing import List

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from ddp_probe import cli  # from this checkout, installed or not
from ddp_probe.cli import _static
from ddp_probe.shared.accelerators import ACCELERATORS

_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def main(argv: List[str]) -> int:
    """Look and install, or restore; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--restore", action="store_true", help="take the probe out again")
    if parser.parse_args(argv).restore:
        return cli.main(["uninstall"])
    found = _environment()
    print()
    code = cli.main(["install"])
    if code == 0 and not found:
        print("mmengine is not installed in this Python: call this script with the Python that trains.")
    return code


def _environment() -> bool:
    """Print what this machine has; return whether mmengine is there."""
    print("python       %s (Python %s)" % (sys.executable, ".".join(map(str, sys.version_info[:3]))))
    for name in ("torch", "mmengine"):
        print("%-12s %s" % (name, _package(name)))
    runner = _static.module_file("mmengine.runner.runner")
    if runner:
        print("runner.py    %s (left untouched)" % runner)
    print("accelerators %s" % (", ".join(_cards()) or "no device file below /dev"))
    print(
        "launcher     %s" % (" ".join("%s=%s" % (name, os.environ[name]) for name in _VARIABLES if name in os.environ) or "none above this process")
    )
    return runner is not None


def _package(name: str) -> str:
    path = _static.module_file(name)
    return "%s in %s" % (_static.version(name) or "unknown version", os.path.dirname(path)) if path else "not installed"


def _cards() -> List[str]:
    """Count device files; no device is opened and no vendor's module is imported."""
    found = []
    for record in ACCELERATORS:
        files = [path for pattern in record.device_files for path in glob.glob("/dev/" + pattern)]
        if files:
            found.append("%s: %d device files" % (record.name, len(files)))
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
