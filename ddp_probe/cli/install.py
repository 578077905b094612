"""Install the activator for this Python, and prove in a child interpreter that it works. Nothing is patched until DDP_PROBE=1 is set."""

import argparse
import sys

import ddp_probe
from ddp_probe.activation.installer import installation, locations
from ddp_probe.cli._commands import Command

COMMAND = Command("install", order=10, summary="Install the activator for this Python, and prove that it works.")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--via",
        choices=("auto", "sitecustomize", "pth"),
        default="auto",
        help="how Python finds the activator: by a sitecustomize.py, or by a line in a .pth file, which works together with any sitecustomize;"
        " auto writes both if no other sitecustomize is there, else the line alone",
    )
    parser.add_argument("--dry-run", action="store_true", help="print the files that would be written, and write nothing")


def run(args: argparse.Namespace) -> int:
    """Plan, write, prove, report."""
    plan = installation.plan(args.via)
    print("interpreter  %s (Python %s)" % (sys.executable, ".".join(map(str, sys.version_info[:3]))))
    print("via          %s: %s" % (plan.via, plan.because))
    if locations.is_users(plan.folder):
        print("folder       %s, which is read for this user alone: site-packages cannot be written to" % plan.folder)
    if args.dry_run:
        _print_files("would write", plan)
        print("Nothing was written.")
        return 0
    outcome = installation.install(plan)
    _print_files("activator", plan)
    print("package      %s" % outcome.package)
    print("proved       It ran in a child interpreter with DDP_PROBE=1.")
    print("%s Next:" % ("ddp_probe %s is installed." % ddp_probe.__version__ if outcome.changed else "It was already installed."))
    print("  DDP_PROBE=1 torchrun --nproc_per_node=8 train.py config.py")
    print("  python -m ddp_probe report")
    print("  python -m ddp_probe uninstall")
    return 0


def _print_files(label: str, plan: installation.Installation) -> None:
    for path in plan.files:
        print("%-12s %s" % (label, path))
    for path in plan.obsolete:
        print("%-12s %s" % ("instead of", path))
    if plan.home:
        print("%-12s The package is not installed in this interpreter; it is loaded from %s." % ("note", plan.home))
