"""Parses the arguments of one command and runs it. Every mistake becomes one line with the problem and one with what to do."""

import argparse
import difflib
import importlib
import re
import shlex
import sys
from typing import Any, List, NoReturn

from ddp_probe.cli.commands import PROG, Command
from ddp_probe.errors import UnusableError, UsageError


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        close = self._close(message)
        if close:
            raise UsageError("%s%s." % (message[:1].upper(), message[1:]), "Did you mean %s? '%s --help' lists its arguments." % (close, self.prog))
        raise UsageError("%s%s." % (message[:1].upper(), message[1:]), "'%s --help' lists its arguments." % self.prog)

    def _close(self, message: str) -> str:
        """Return the option most similar to an unknown one, or an empty string."""
        found = re.match(r"unrecognized arguments: (--[\w-]+)", message)
        known = [name for name in self._option_string_actions if name.startswith("--")]
        close = difflib.get_close_matches(found[1], known, n=1, cutoff=0.6) if found else []
        return close[0] if close else ""


def parser(command: Command, module: Any) -> argparse.ArgumentParser:
    """Return the parser of a command; the command's module declares the arguments."""
    made = _Parser(prog="%s %s" % (PROG, command.name), description=module.__doc__, allow_abbrev=False, usage=getattr(module, "USAGE", None))
    module.add_arguments(made)
    if getattr(module, "PAINTS", False):
        _add_colour(made)
    return made


def _add_colour(made: argparse.ArgumentParser) -> None:
    """Add the option of every command that prints with colours."""
    from ddp_probe.report import paint

    meaning = "when to use colours; default auto: in a terminal, as NO_COLOR and FORCE_COLOR say; always suits a pipe into less -R"
    made.add_argument("--color", choices=paint.CHOICES, default=paint.AUTO, metavar="WHEN", help="%s: %s" % (", ".join(paint.CHOICES), meaning))


def load(command: Command) -> Any:
    """Import a command's module, and name a missing dependency."""
    try:
        return importlib.import_module(command.module)
    except (ImportError, SyntaxError) as exc:
        raise incomplete(exc, command.name) from exc


def incomplete(exc: Exception, name: str) -> UnusableError:
    """Return the error for a missing or broken dependency or part of the package."""
    lacking = (exc.name or "").partition(".")[0] if isinstance(exc, ModuleNotFoundError) else ""
    return UnusableError(
        what="The command %r cannot run." % name,
        why="%s is not installed." % lacking if lacking and lacking != "ddp_probe" else "%s: %s" % (type(exc).__name__, exc),
        what_to_do="Reinstall ddp-probe with its dependencies: %s -m pip install ddp-probe. 'uninstall' works without them."
        % shlex.quote(sys.executable),
    )


def run(command: Command, argv: List[str]) -> int:
    """Parse and run; everything after a bare ``--`` is passed on unchanged."""
    own, rest = (argv[: argv.index("--")], argv[argv.index("--") + 1 :]) if "--" in argv else (argv, [])
    module = load(command)
    reader = parser(command, module)
    if getattr(module, "TAKES_COMMAND", False) and "--" not in argv:
        _insist_on_dashes(reader, own)
    try:
        args = reader.parse_args(own)
    except SystemExit as exc:  # --help
        return int(exc.code or 0)
    if rest and not getattr(module, "TAKES_COMMAND", False):
        reader.error("nothing may follow --")
    args.command = rest
    _choose_colour(args)
    try:
        return int(module.run(args))
    except ImportError as exc:
        raise incomplete(exc, command.name) from exc


def _choose_colour(args: argparse.Namespace) -> None:
    if hasattr(args, "color"):
        from ddp_probe.report import paint

        paint.choose(args.color)


def _insist_on_dashes(reader: argparse.ArgumentParser, argv: List[str]) -> None:
    """If the two dashes before a command are missing, print the correct command line."""
    if "-h" in argv or "--help" in argv:
        return
    words = reader.parse_known_args(argv)[1]
    first = next((number for number, word in enumerate(argv) if word in words), len(argv))
    if first < len(argv) and not argv[first].startswith("-"):
        meant = " ".join(shlex.quote(word) for word in [*argv[:first], "--", *argv[first:]])
        raise UsageError("The command to run follows two dashes.", "%s %s" % (reader.prog, meant))
