"""The command line. Only the module of the given command is imported."""

import contextlib
import sys
from typing import List, Optional

import ddp_probe
from ddp_probe.cli import _stdout
from ddp_probe.cli._commands import PROG, Command, commands, find, modules, page
from ddp_probe.shared.errors import ProbeError, UnusableError, UsageError
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted

__all__ = ["PROG", "Command", "commands", "find", "main", "modules", "page"]


def main(argv: Optional[List[str]] = None) -> int:
    """Run the command line; return its exit code."""
    _stdout.guard()
    try:
        code = _dispatch(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
    except ProbeError as exc:
        return _complain(exc)
    except UnicodeEncodeError as exc:
        return _complain(_no_text(exc))
    except BrokenPipeError:  # the reading program, such as head, has exited; the flush at exit must not fail either
        _stdout.give_up()
        return 141
    except _stdout.UnwritableStdoutError as exc:
        _stdout.give_up()
        sys.stderr.write("%s\n" % exc)
        return 2
    except KeyboardInterrupt:
        return 130
    return code


def _no_text(exc: UnicodeEncodeError) -> ProbeError:
    """Return what to do about a name that cannot be written down."""
    return UnusableError(
        what=say("The name of a file cannot be written as text: {name}.", name=quoted(ascii(exc.object[:200]))),
        why="Linux allows any bytes in a name, and these are not UTF-8.",
        what_to_do="Rename the file, and run the command again.",
    )


def _dispatch(argv: List[str]) -> int:
    if not argv or argv[0] in ("-h", "--help"):
        from ddp_probe.showing import language

        print(page(language.chosen(sys.stdout).__call__), end="")
        return 0 if argv else 2  # Nothing was done.
    if argv[0] in ("-V", "--version"):
        print("ddp_probe %s" % ddp_probe.__version__)
        return 0
    if argv[0].startswith("-"):
        raise UsageError(
            say("Unknown option {option}.", option=quoted(repr(argv[0]))),
            say("'{program} help' lists the commands.", program=PROG),
        )
    from ddp_probe.cli import _parse

    return _parse.run(find(argv[0]), argv[1:])


def _complain(exc: ProbeError) -> int:
    from ddp_probe.cli import _why
    from ddp_probe.showing import language, safe

    with contextlib.suppress(BrokenPipeError, _stdout.UnwritableStdoutError):
        sys.stdout.flush()
    _why.add(exc)
    sys.stderr.write("%s\n" % safe.error(exc, language.chosen(sys.stderr)))
    return exc.exit_code
