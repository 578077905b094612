"""What to change, as data: a rule names the edits, the report says them in words, `explain RULE RUN` shows the same ones as a diff.

The code in an edit is written once. A name after a $ in it is taken from the job's call, if its source is at hand, and is a
plain word otherwise: $was (the argument as it stands), $args (all arguments), $first and $second (the first two), $on (what the
method is called on), $device (the model's device).
"""

import ast
from string import Template
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

from ddp_probe.shared.schema import Site
from ddp_probe.wording.words import capital

# What the names stand for, if the call's source is not available.
_PLAIN = {"was": "it", "args": "…", "first": "model", "second": "path", "on": "model", "device": "next(model.parameters()).device"}
LONGEST = 80  # Characters of the job's code that a sentence repeats.
Names = Dict[str, str]  # What the names stand for in the job's call.

# Which call of a line is meant; own_change.py has the patterns.
WRAP, LOAD, SAVE, GROUP, SET_DEVICE = "wrap", "load", "save", "group", "set_device"
RUNNER, INIT_DIST, MOVE, LOAD_STATE = "runner", "init_dist", "move", "load_state_dict"
TRAINER, ACCELERATOR = "trainer", "accelerator"


class Argument(NamedTuple):
    """One argument of a call is given, replaced, or left out. A site without a line is the only such call of the file."""

    site: Optional[Site]
    call: str
    name: str  # Its keyword; empty if it has none.
    value: str  # Empty: it is left out.
    position: int = -1  # Its position if it is given without its keyword.
    add: bool = True  # Give it if it is not given yet.
    was: str = ""  # What $was is in words.
    replace: str = ""  # The value if it is given already; else it is replaced.
    imports: Tuple[str, ...] = ()

    def clause(self, names: Optional[Names] = None) -> str:
        """Return the edit without its place; empty if the job's call shows that there is nothing to do."""
        known = names or {}
        if known.get("hidden"):
            return self._out_of(known)
        if names is not None and "was" not in names and (not self.value or not self.add):
            return ""
        if not self.value:
            return "leave %s out" % self.name
        value = plain(self.replace if self.replace and "was" in known else self.value, **{"was": self.was or _PLAIN["was"], **known})
        by_position = "was" in known and "keyword" not in known
        if self.name and self.position != 0 and not by_position:
            return "write %s=%s%s" % (self.name, value, "" if self.add or "was" in known else ", if it is given")
        return "write %s in place of %s" % (value, known.get("was") or self.was or "the argument")

    def _out_of(self, names: Names) -> str:
        """Return the edit of an argument that *args or **kwargs may hold."""
        if not self.value:
            return "take %s out of what %s holds, if it is there" % (self.name, names["hidden"])
        value = plain(self.value, **{"was": self.was or _PLAIN["was"], **names})
        if self.add and "into" in names:
            return "write %s in place of **%s" % (merged(names["into"], self.name, value), names["into"])
        if_given = "" if self.add else ", if it is there"
        return "give %s=%s in place of what %s holds%s" % (self.name or "the argument", value, names["hidden"], if_given)


class Lines(NamedTuple):
    """Lines before the statement at a place, or after it."""

    site: Optional[Site]
    lines: Tuple[str, ...]
    imports: Tuple[str, ...] = ()
    condition: str = ""
    after: bool = False
    call: str = ""  # Only next to a statement with this call; empty: next to any.
    first: str = "model"  # What $first is in words.
    second: str = "path"

    def clause(self, own: Optional[Names] = None) -> str:
        """Return the edit without its place."""
        names = {"first": self.first, "second": self.second, **(own or {})}
        return "write: %s" % one_line([plain(line, **names) for line in self.lines], self.condition)


class Instead(NamedTuple):
    """A call is made under a condition only, and other lines run otherwise."""

    site: Optional[Site]
    call: str
    condition: str
    otherwise: Tuple[str, ...] = ()
    imports: Tuple[str, ...] = ()
    name: str = "it"  # Name of the call.

    def clause(self, names: Optional[Names] = None) -> str:
        """Return the edit without its place."""
        otherwise = [plain(line, **(names or {})) for line in self.otherwise]
        text = "call %s only if %s" % (self.name, self.condition)
        return text + ("; otherwise write: %s" % one_line(otherwise) if self.otherwise else "")


class Rewritten(NamedTuple):
    """A call is replaced by another."""

    site: Optional[Site]
    call: str
    text: str
    name: str = "the call"
    imports: Tuple[str, ...] = ()
    empty: str = ""  # The text for a call without arguments, if it differs.

    def clause(self, names: Optional[Names] = None) -> str:
        """Return the edit without its place."""
        text = self.empty if self.empty and names is not None and not names["args"] else self.text
        return "write %s in place of %s" % (plain(text, **{"args": "local_rank", "first": "local_rank", **(names or {})}), self.name)


class Swapped(NamedTuple):
    """Code that stands at a place of the job's source is replaced; both texts are exact."""

    site: Optional[Site]
    column: int
    was: str
    now: str
    imports: Tuple[str, ...] = ()

    def clause(self) -> str:
        """Return the edit without its place."""
        was = " ".join(self.was.split())
        return "write %s in place of %s" % (" ".join(self.now.split()), was if len(was) <= LONGEST else "the call")


class Added(NamedTuple):
    """Lines are added before a line, or after it; they are exact."""

    site: Optional[Site]
    lines: Tuple[str, ...]
    indent: str
    after: bool = False
    imports: Tuple[str, ...] = ()

    def clause(self) -> str:
        """Return the edit without its place."""
        return "write: %s" % "; ".join(" ".join(line.split()) for line in self.lines)


class Import(NamedTuple):
    """A module is imported at the top of the file."""

    site: Optional[Site]
    module: str

    def clause(self) -> str:
        """Return the edit without its place."""
        return "import %s" % self.module


class Spelling(NamedTuple):
    """An option of argparse gets a second spelling; it is looked for in the whole file."""

    site: Optional[Site]
    has: str
    more: str

    def clause(self) -> str:
        """Return the edit without its place."""
        return "accept both spellings: parser.add_argument('%s', '%s', …)" % (self.has, self.more)


class Key(NamedTuple):
    """A dictionary that has type=`of` gets a further key; it is looked for in the whole file."""

    site: Optional[Site]
    of: str
    key: str
    value: str

    def clause(self) -> str:
        """Return the edit without its place."""
        return "write %s=%s beside type='%s'" % (self.key, self.value, self.of)


class ConfigLine(NamedTuple):
    """A line at the end of a configuration file."""

    file: str
    line: str

    def clause(self) -> str:
        """Return the edit without its place."""
        return self.line


class Variable(NamedTuple):
    """A variable in the environment of all ranks; None takes it out."""

    name: str
    value: Optional[str]

    @property
    def shell(self) -> str:
        """Return the line for a shell."""
        return "unset %s" % self.name if self.value is None else "export %s=%s" % (self.name, self.value)


class LaunchCommand(NamedTuple):
    """The command to start the job with."""

    shell: str


NAMED = (Argument, Lines, Instead, Rewritten)  # Edits of one call, whose code takes names from it.
EXACT = (Swapped, Added)  # Edits whose code is made from the job's source already.
InSource = Union[Argument, Lines, Instead, Rewritten, Swapped, Added, Import, Key, Spelling, ConfigLine]
Edit = Union[InSource, Variable, LaunchCommand]
Change = Sequence[Union[Edit, str]]  # A string is a sentence that follows: an alternative, or something that only a person can do.


def edits(change: Change) -> List[Edit]:
    """Return what can be done without a person."""
    return [each for each in change if not isinstance(each, str)]


def words(change: Change, names_of: Callable[["InSource"], Optional[Names]] = lambda _: None) -> str:
    """Return a change as sentences; `names_of` gives the names in the job's call, if its source is at hand."""
    return " ".join(_sentences(change, names_of))


def shell(edits: Sequence[Edit]) -> List[str]:
    """Return the lines that a shell is to be given."""
    return [each.shell for each in edits if isinstance(each, (Variable, LaunchCommand))]


def plain(code: str, **names: str) -> str:
    """Return code with words in place of what the job's call would fill in."""
    return fill(code, {**_PLAIN, **names})


def fill(code: str, names: Names) -> str:
    """Return code with its names filled in; one that is not there stays. Code that is already in brackets gets no more."""
    for name, text in names.items():
        if text[:1] == "(" and _is_one(text[1:-1]):
            code = code.replace("($%s)" % name, "$" + name)
    return Template(code).safe_substitute(names)


def _is_one(code: str) -> bool:
    try:
        return not isinstance(ast.parse(code, mode="eval").body, (ast.Tuple, ast.GeneratorExp))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def merged(star: str, name: str, value: str) -> str:
    """Return a dictionary that is passed on, with one entry that counts more than its own."""
    return "**{**%s, '%s': %s}" % (star, name, value)


def one_line(lines: Sequence[str], condition: str = "") -> str:
    """Return statements as one line that Python reads."""
    text = "; ".join(plain(line) for line in lines)
    return "if %s: %s" % (condition, text) if condition else text


def _sentences(change: Change, names_of: Callable[["InSource"], Optional[Names]]) -> Iterator[str]:
    at, clauses = "", []  # type: Tuple[str, List[str]]
    for each in change:
        head = "" if isinstance(each, (str, Variable, LaunchCommand)) else _head(each)
        if clauses and head != at:
            yield _sentence(at, clauses)
            clauses = []
        if isinstance(each, str):
            yield each
        elif isinstance(each, (Variable, LaunchCommand)):
            yield _outside(each)
        else:
            clause = each.clause(names_of(each)) if isinstance(each, NAMED) else each.clause()
            at, clauses = head, [*clauses, clause] if clause else clauses
            if clause and _imports(each):
                clauses[-1] += " (with import %s)" % ", ".join(_imports(each))
    if clauses:
        yield _sentence(at, clauses)


def _sentence(at: str, clauses: List[str]) -> str:
    return "%s %s." % (at, "; ".join(clauses))


def _head(edit: InSource) -> str:
    if isinstance(edit, ConfigLine):
        return "In %s write:" % (edit.file or "the config file")
    if isinstance(edit, Import):
        return "At the top of %s" % (edit.site.file if edit.site is not None else "the program")
    if isinstance(edit, (Key, Spelling)) or (edit.site is not None and not edit.site.line):
        of = ", in the call of %s(…)," % capital(edit.call) if isinstance(edit, Argument) else ""
        return "In %s%s" % (edit.site.file if edit.site is not None else "the program", of)
    where = "%s:%d" % (edit.site.file, edit.site.line) if edit.site is not None and edit.site.file else "the line that the traceback names"
    return "%s %s" % (("After" if edit.after else "Before") if isinstance(edit, (Lines, Added)) else "At", where)


def _imports(edit: InSource) -> Tuple[str, ...]:
    return edit.imports if isinstance(edit, (*NAMED, *EXACT)) else ()


def _outside(edit: Union[Variable, LaunchCommand]) -> str:
    if isinstance(edit, LaunchCommand):
        return "Start it with: %s." % edit.shell
    if edit.value is None:
        return "Unset %s for all ranks." % edit.name
    return "Set %s=%s for all ranks." % (edit.name, edit.value)
