"""Install the activator for this Python, and prove in a child interpreter that it works. Nothing is patched until DDP_PROBE=1 is set."""

import argparse
import sys

import ddp_probe
from ddp_probe.activation.installer import installation, locations
from ddp_probe.cli._commands import Command
from ddp_probe.showing import language
from ddp_probe.showing.language import Language
from ddp_probe.showing.layout import label_of_width
from ddp_probe.wording.text import say as text_of

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
    say = language.chosen(sys.stdout)
    version = ".".join(map(str, sys.version_info[:3]))
    _print("interpreter", text_of("{path} (Python {version})", path=sys.executable, version=version), say)
    because = text_of("it works beside {path}", path=plan.beside) if plan.beside else text_of(plan.because)
    _print("via", text_of("{via}: {because}", via=plan.via, because=because), say)
    if locations.is_users(plan.folder):
        template = "{folder}, which is read for this user alone: site-packages cannot be written to"
        _print("folder", text_of(template, folder=plan.folder), say)
    if args.dry_run:
        _print_files("would write", plan, say)
        print(say("Nothing was written."))
        return 0
    outcome = installation.install(plan)
    _print_files("activator", plan, say)
    _print("package", outcome.package, say)
    _print("proved", text_of("It ran in a child interpreter with DDP_PROBE=1."), say)
    done = text_of("It was already installed.")
    if outcome.changed:
        done = text_of("ddp_probe {version} is installed.", version=ddp_probe.__version__)
    print(say("%s Next:") % say.text(done))
    print("  DDP_PROBE=1 torchrun --nproc_per_node=8 train.py config.py")
    print("  python -m ddp_probe report")
    print("  python -m ddp_probe uninstall")
    return 0


def _print_files(label: str, plan: installation.Installation, say: Language) -> None:
    for path in plan.files:
        _print(label, path, say)
    for path in plan.obsolete:
        _print("instead of", path, say)
    if plan.home:
        template = "The package is not installed in this interpreter; it is loaded from {folder}."
        _print("note", text_of(template, folder=plan.home), say)


def _print(label: str, text: str, say: Language) -> None:
    print(label_of_width(say(label), 13) + say.text(text))
