"""Checks whether a command will be recorded, by starting its interpreter in the same environment."""

import glob
import itertools
import os
import re
import shlex
import shutil
import sys
from typing import Dict, List, Mapping, NamedTuple, Sequence

from ddp_probe.activation.installer import child
from ddp_probe.shared.regular_files import open_bytes
from ddp_probe.wording.text import joined, say
from ddp_probe.wording.words import quoted

_PYTHON = re.compile(r"python(\d(\.\d+)?)?$")
_FLAGS = re.compile(r"-[bBdEIOPqsSuv]+$")  # Options without a value, which affect what runs at start-up.
_IMPORT = re.compile(r"^\s*(?:from|import)\s+([\w.]+)", re.MULTILINE)
_INSTALLED = say("'python -m ddp_probe install' works there.")
_WORDS = 30  # Maximum words of the command that are checked.


class _Start(NamedTuple):
    """The first Python of a command."""

    interpreter: List[str]  # The interpreter with its options.
    tool: str  # A program that puts another sitecustomize first on PYTHONPATH.
    folder: str  # The folder of that sitecustomize.


def interpreter(command: Sequence[str], env: Mapping[str, str]) -> str:
    """Return the first Python of a command; empty if none is found."""
    python = _start(command, env.get("PATH", os.defpath)).interpreter
    return python[0] if python else ""


def why_not(command: Sequence[str], env: Dict[str, str]) -> str:
    """Return why this command will not be recorded; empty if it will be, or if no Python is found in it."""
    start = _start(command, env.get("PATH", os.defpath))
    if not start.interpreter:
        return ""
    if start.folder:
        env = {**env, "PYTHONPATH": os.pathsep.join([start.folder, env.get("PYTHONPATH", "")])}
    command_line = quoted(" ".join(start.interpreter))
    if any("S" in flags for flags in start.interpreter[1:]):
        return say("{command} skips site-packages. Start it without -S.", command=command_line)
    proof = child.proof_in(start.interpreter, env, os.curdir)
    if proof.missing:
        return say(
            "{python} lacks packages needed for recording: {packages} Install them there.",
            python=quoted(start.interpreter[0]),
            packages=child.sentence(proof.missing),
        )
    if proof.complaint:
        return quoted(proof.complaint.partition("not active: ")[2] or proof.complaint)
    if proof.started:
        return ""
    if start.folder:
        first = say(
            "{tool} puts its own sitecustomize first ({file}).",
            tool=start.tool,
            file=quoted(os.path.join(start.folder, "sitecustomize.py")),
        )
    elif any(set("IE") & set(flags) for flags in start.interpreter[1:]):
        first = say("{command} ignores PYTHONPATH.", command=command_line)
    else:
        first = say(
            "{python} does not load it: another sitecustomize comes first, or PYTHONPATH is not passed on.",
            python=quoted(start.interpreter[0]),
        )
    return joined([first, _INSTALLED])


def _start(command: Sequence[str], path: str) -> _Start:
    interpreter: List[str] = []
    tool = folder = ""
    for number, word in enumerate(command[:_WORDS]):
        program = shutil.which(word, path=path) if word and word[0] != "-" and "=" not in word else None
        if program is None:
            continue
        if _PYTHON.match(os.path.basename(program)):
            return _Start([program, *_flags(command[number + 1 :])], tool, folder)
        by, text = _script(program, path)
        if not by:
            continue
        interpreter, brought = by, _brings(text, by[0])
        if not brought:
            break
        tool, folder = os.path.basename(program), brought
    return _Start(interpreter, tool, folder)


def _flags(words: Sequence[str]) -> List[str]:
    flags = []
    for word in words:
        if not _FLAGS.match(word):
            break
        flags.append(word)
    return flags


def _script(program: str, path: str) -> "tuple[List[str], str]":
    """Return the Python in a script's first line, with its options, and the script's text; empty for any other program."""
    try:
        with open_bytes(program) as file:
            text = file.read(1 << 14).decode("utf-8", "replace")
    except OSError:
        return [], ""
    words = _first_words(text)
    if words and os.path.basename(words[0]) == "env":
        words = [word for word in words[1:] if not word.startswith("-S")]
        words[:1] = [shutil.which(words[0], path=path) or words[0]] if words else []
    return (words, text) if words and _PYTHON.match(os.path.basename(words[0])) else ([], "")


def _first_words(text: str) -> List[str]:
    """Return the interpreter that a script names, with its options; pip writes a line of the shell if a #! line could not hold the path."""
    first, second = (text.split("\n", 2) + [""])[:2]
    if first == "#!/bin/sh" and second.startswith("'''exec' "):
        return list(itertools.takewhile(lambda word: word != "$0", shlex.split(second[len("'''exec' ") :])))
    return first[2:].split() if first.startswith("#!") else []


def _brings(text: str, interpreter: str) -> str:
    """Return the folder of the script's package that contains a sitecustomize, or an empty string."""
    prefix = os.path.dirname(os.path.dirname(os.path.abspath(interpreter)))
    sites = [*glob.glob(os.path.join(glob.escape(prefix), "lib", "python3*", "site-packages")), *sys.path]
    for module in _IMPORT.findall(text):
        for site in sites:
            folder = os.path.join(site, *module.split("."))
            if os.path.isfile(os.path.join(folder, "sitecustomize.py")):
                return folder
    return ""
