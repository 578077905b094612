"""Reads the arguments of one command and runs it; every mistake becomes one line what and one line what to do."""

import argparse
import importlib
import sys
from typing import Any, List, NoReturn

from ddp_probe.cli import PROG, Command
from ddp_probe.errors import UnusableError, UsageError


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError("%s%s." % (message[:1].upper(), message[1:]), "'%s --help' says what it takes." % self.prog)


def parser(command: Command, module: Any) -> argparse.ArgumentParser:
    """Return the parser of a command; the command's module says what it takes."""
    made = _Parser(prog="%s %s" % (PROG, command.name), description=module.__doc__, allow_abbrev=False, usage=getattr(module, "USAGE", None))
    module.add_arguments(made)
    return made


def load(command: Command) -> Any:
    """Import a command's module; a dependency that is missing is named."""
    try:
        return importlib.import_module(command.module)
    except (ImportError, SyntaxError) as exc:
        raise incomplete(exc, command.name) from exc


def incomplete(exc: Exception, name: str) -> UnusableError:
    """Return what to say where a dependency, or a part of the package, is missing or broken."""
    lacking = (exc.name or "").partition(".")[0] if isinstance(exc, ModuleNotFoundError) else ""
    return UnusableError(
        what="The command %r cannot run." % name,
        why="%s is not installed." % lacking if lacking and lacking != "ddp_probe" else "%s: %s" % (type(exc).__name__, exc),
        what_to_do="Install ddp-probe again, with its dependencies: %s -m pip install ddp-probe. 'uninstall' works without them." % sys.executable,
    )


def run(command: Command, argv: List[str]) -> int:
    """Parse and run; what follows a bare ``--`` is handed on as it stands."""
    own, rest = (argv[: argv.index("--")], argv[argv.index("--") + 1 :]) if "--" in argv else (argv, [])
    module = load(command)
    reader = parser(command, module)
    try:
        args = reader.parse_args(own)
    except SystemExit as exc:  # --help
        return int(exc.code or 0)
    if rest and not getattr(module, "TAKES_COMMAND", False):
        reader.error("nothing may follow --")
    args.command = rest
    try:
        return int(module.run(args))
    except ImportError as exc:
        raise incomplete(exc, command.name) from exc
