"""Parses the arguments of one command and runs it. Every mistake becomes one line with the problem and one with what to do."""

import argparse
import re
import shlex
import sys
from typing import Any, List, NoReturn

from ddp_probe.cli._commands import PROG, Command, described, incomplete
from ddp_probe.shared.errors import UsageError
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        close = self._close(message)
        what_to_do = say("'{program} --help' lists its arguments.", program=self.prog)
        if close:
            template = "Did you mean {option}? '{program} --help' lists its arguments."
            what_to_do = say(template, option=close, program=self.prog)
        raise UsageError(_as_text(message), what_to_do)

    def print_help(self, file: Any = None) -> None:
        """Print the page in the reader's language."""
        from ddp_probe.cli import _help_texts
        from ddp_probe.showing import language

        say = language.chosen(file or sys.stdout)
        if not say.is_english:
            _help_texts.translate(self, say)
        super().print_help(file)

    def _close(self, message: str) -> str:
        """Return the option most similar to an unknown one, or an empty string."""
        match = re.match(r"unrecognized arguments: --([\w-]+)", message)
        import difflib

        # The dashes are alike in all.
        options = [name[2:] for name in self._option_string_actions if name.startswith("--")]
        close = difflib.get_close_matches(match[1], options, n=1, cutoff=0.6) if match else []
        return "--" + close[0] if close else ""


_MESSAGES = (
    ("unrecognized arguments: (?P<words>.*)", "Unrecognized arguments: {words}."),
    ("the following arguments are required: (?P<names>.*)", "The following arguments are required: {names}."),
    ("one of the arguments (?P<names>.*) is required", "One of the arguments {names} is required."),
    ("argument (?P<name>[^:]+): expected one argument", "Argument {name}: expected one argument."),
    (
        "argument (?P<name>[^:]+): expected at least one argument",
        "Argument {name}: expected at least one argument.",
    ),
    (
        r"argument (?P<name>[^:]+): invalid choice: (?P<given>.*) \(choose from (?P<choices>.*)\)",
        "Argument {name}: invalid choice: {given} (choose from {choices}).",
    ),
    (
        r"argument (?P<name>[^:]+): invalid (?P<type>\w+) value: (?P<given>.*)",
        "Argument {name}: invalid {type} value: {given}.",
    ),
    (
        "argument (?P<name>[^:]+): not allowed with argument (?P<other>.*)",
        "Argument {name}: not allowed with argument {other}.",
    ),
    (
        "argument (?P<name>[^:]+): ignored explicit argument (?P<given>.*)",
        "Argument {name}: ignored explicit argument {given}.",
    ),
    ("nothing may follow --", "Nothing may follow --."),
)
"""What argparse says, and the template of the same."""


def _as_text(message: str) -> str:
    for pattern, template in _MESSAGES:
        match = re.fullmatch(pattern, message, re.DOTALL)
        if match:
            return say(template, **{name: quoted(words) for name, words in match.groupdict().items()})
    return "%s%s." % (message[:1].upper(), message[1:])


def parser(module: Any) -> argparse.ArgumentParser:
    """Return the parser of a command; the command's module declares the arguments."""
    command: Command = module.COMMAND
    about, page = described(module)  # The long text follows the options, which are on the first screen then.
    command_parser = _Parser(
        prog="%s %s" % (PROG, command.name),
        description=about,
        epilog=page or None,
        allow_abbrev=False,
        usage=command.usage,
    )
    module.add_arguments(command_parser)
    if command.paints:
        _add_colour(command_parser)
    arguments = map(_positional, command_parser._get_positional_actions())
    command_parser.usage = command.usage or " ".join([command_parser.prog, "[OPTIONS]", *arguments])
    return command_parser


def _positional(action: argparse.Action) -> str:
    """Return an argument as a usage line has it; the options follow it in a list."""
    name = str(action.metavar or action.dest)
    return {"*": "[%s ...]", "+": "%s [%s ...]" % ("%s", name), "?": "[%s]"}.get(str(action.nargs or ""), "%s") % name


def _add_colour(command_parser: argparse.ArgumentParser) -> None:
    """Add the option of every command that prints with colours."""
    from ddp_probe.showing import paint

    meaning = "auto (the default: as the terminal, NO_COLOR and FORCE_COLOR say), always or never"
    command_parser.add_argument("--color", choices=paint.CHOICES, default=paint.AUTO, metavar="WHEN", help=meaning)


def run(module: Any, argv: List[str]) -> int:
    """Parse and run; everything after a bare ``--`` is passed on unchanged."""
    own, rest = (argv[: argv.index("--")], argv[argv.index("--") + 1 :]) if "--" in argv else (argv, [])
    command: Command = module.COMMAND
    reader = parser(module)
    if command.takes_command and "--" not in argv:
        _insist_on_dashes(reader, own)
    try:
        several = len(reader._get_positional_actions()) > 1  # explain RULE --diff RUN: an option may be between two of them.
        args = reader.parse_intermixed_args(own) if several else reader.parse_args(own)
    except SystemExit as exc:  # --help
        return int(exc.code or 0)
    if rest and not command.takes_command:
        reader.error("nothing may follow --")
    args.command = rest
    _choose_colour(args)
    try:
        return int(module.run(args))
    except ImportError as exc:
        raise incomplete(exc, command.name) from exc


def _choose_colour(args: argparse.Namespace) -> None:
    if hasattr(args, "color"):
        from ddp_probe.showing import paint

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
