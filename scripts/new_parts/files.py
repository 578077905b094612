"""What a skeleton consists of: files that are new, files that gain a few lines, and the next steps. All of it is written, or nothing."""

import keyword
import re
from pathlib import Path
from typing import Dict, List, NamedTuple, Tuple

PYTHON = ".venv/bin/python"
PRINT = PYTHON + " scripts/render_docs    # prints the tables and pages"

_SNAKE = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_KEBAB = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_TARGET = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*:[A-Za-z_]\w*(?:\.\w+)*")


class RefusedError(Exception):
    """Why nothing is written, as a sentence."""


class Insertion(NamedTuple):
    """Lines that a file gains, before or after a text that it has once."""

    path: str
    beside: str
    lines: str
    after: bool = False


class Plan(NamedTuple):
    """What is written, and what a person does next."""

    new: Dict[str, str]
    insertions: Tuple[Insertion, ...]
    steps: List[str]

    @property
    def files(self) -> List[str]:
        """Return the paths of what is written, new files first."""
        return list(dict.fromkeys([*self.new, *(each.path for each in self.insertions)]))


def write(repo: Path, plan: Plan) -> None:
    """Write the files of a plan; refuse before the first of them if one cannot be."""
    texts = dict(plan.new)
    for path in texts:
        if (repo / path).exists():
            raise RefusedError("%s exists already. Choose another name." % path)
    for each in plan.insertions:
        text = texts.get(each.path) or (repo / each.path).read_text(encoding="utf-8")
        if text.count(each.beside) != 1:
            raise RefusedError(
                "%s has the text %r %d times, and has to have it once. Put it back." % (each.path, each.beside, text.count(each.beside))
            )
        texts[each.path] = text.replace(each.beside, each.beside + each.lines if each.after else each.lines + each.beside)
    for path, text in texts.items():
        (repo / path).parent.mkdir(parents=True, exist_ok=True)
        (repo / path).write_text(text, encoding="utf-8")


def snake(kind: str, name: str, example: str) -> str:
    """Return the name, if it can be that of a module and an attribute."""
    if not _SNAKE.fullmatch(name) or keyword.iskeyword(name):
        raise RefusedError("%r is not a valid name for %s. Use small letters, digits and underscores, such as %s." % (name, kind, example))
    return name


def kebab(kind: str, name: str, example: str) -> str:
    """Return the name, if it can be a slug."""
    if not _KEBAB.fullmatch(name) or keyword.iskeyword(name):
        raise RefusedError("%r is not a valid name for %s. Use small letters, digits and hyphens, such as %s." % (name, kind, example))
    return name


def target(text: str) -> str:
    """Return a target, if it is written as one."""
    if not _TARGET.fullmatch(text):
        raise RefusedError("%r is not a valid target. Write it as module:qualname, such as torch.serialization:load." % text)
    return text


def call(given: str, module: str, qualname: str) -> str:
    """Return the lines that make a call for the test; what a call needs cannot be guessed."""
    if not given:
        raise RefusedError(
            "Write with --call the lines that call %s.%s, such as --call $'import torch\\n\\n…'; they become the test." % (module, qualname)
        )
    return given


def camel(name: str) -> str:
    """Return the name of a class for this name."""
    return "".join(part.capitalize() for part in re.split(r"[-_.]", name))
