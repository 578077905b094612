"""What to change, as data: a rule names the edits, the report says them in words, `explain RULE RUN` shows the same ones as a diff.

The code in an edit is written once. A name after a $ in it is taken from the job's call, if its source is at hand, and is a
plain word otherwise: $was (the argument as it stands), $args (all arguments), $first and $second (the first two), $on (what the
method is called on), $device (the model's device).
"""

import ast
from string import Template
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

from ddp_probe.shared.schema import Site
from ddp_probe.wording.text import Text, joined, say
from ddp_probe.wording.words import capital, listed, place, quoted

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

    def clause(self, names: Optional[Names] = None) -> Text:
        """Return the edit without its place; empty if the job's call shows that there is nothing to do."""
        known = names or {}
        if known.get("hidden"):
            return self._out_of(known)
        if names is not None and "was" not in names and (not self.value or not self.add):
            return say("")
        if not self.value:
            return say("leave {argument} out", argument=self.name)
        value = plain(self.replace if self.replace and "was" in known else self.value, **{"was": self.was or _PLAIN["was"], **known})
        by_position = "was" in known and "keyword" not in known
        if not self.name or self.position == 0 or by_position:
            return self._in_place_of(value, known.get("was", ""))
        code = quoted("%s=%s" % (self.name, value))
        if self.add or "was" in known:
            return say("write {code}", code=code)
        return say("write {code}, if it is given", code=code)

    def _in_place_of(self, value: str, was: str) -> Text:
        if was:
            return instead(value, quoted(was))
        return instead(value, self.was or say("the argument"))

    def _out_of(self, names: Names) -> Text:
        """Return the edit of an argument that *args or **kwargs may hold."""
        hidden = quoted(names["hidden"])
        if not self.value:
            return say("take {argument} out of what {hidden} holds, if it is there", argument=self.name, hidden=hidden)
        value = plain(self.value, **{"was": self.was or _PLAIN["was"], **names})
        if self.add and "into" in names:
            return instead(merged(names["into"], self.name, value), quoted("**" + names["into"]))
        argument = self.name or say("the argument")
        template = "give {argument}={code} in place of what {hidden} holds"
        if not self.add:
            template = "give {argument}={code} in place of what {hidden} holds, if it is there"
        return say(template, argument=argument, code=quoted(value), hidden=hidden)


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

    def clause(self, own: Optional[Names] = None) -> Text:
        """Return the edit without its place."""
        names = {"first": self.first, "second": self.second, **(own or {})}
        return say("write: {code}", code=quoted(one_line([plain(line, **names) for line in self.lines], self.condition)))


class Instead(NamedTuple):
    """A call is made under a condition only, and other lines run otherwise."""

    site: Optional[Site]
    call: str
    condition: str
    otherwise: Tuple[str, ...] = ()
    imports: Tuple[str, ...] = ()
    name: str = ""  # Name of the call; "it" without one.

    def clause(self, names: Optional[Names] = None) -> Text:
        """Return the edit without its place."""
        call, condition = self.name or say("it"), quoted(self.condition)
        if not self.otherwise:
            return say("call {call} only if {condition}", call=call, condition=condition)
        otherwise = one_line([plain(line, **(names or {})) for line in self.otherwise])
        template = "call {call} only if {condition}; otherwise write: {code}"
        return say(template, call=call, condition=condition, code=quoted(otherwise))


class Rewritten(NamedTuple):
    """A call is replaced by another."""

    site: Optional[Site]
    call: str
    text: str
    name: str = ""  # What stands there; "the call" without it.
    imports: Tuple[str, ...] = ()
    empty: str = ""  # The text for a call without arguments, if it differs.

    def clause(self, names: Optional[Names] = None) -> Text:
        """Return the edit without its place."""
        text = self.empty if self.empty and names is not None and not names["args"] else self.text
        code = plain(text, **{"args": "local_rank", "first": "local_rank", **(names or {})})
        return instead(code, self.name or say("the call"))


class Swapped(NamedTuple):
    """Code that stands at a place of the job's source is replaced; both texts are exact."""

    site: Optional[Site]
    column: int
    was: str
    now: str
    imports: Tuple[str, ...] = ()

    def clause(self) -> Text:
        """Return the edit without its place."""
        was = " ".join(self.was.split())
        return instead(" ".join(self.now.split()), quoted(was) if len(was) <= LONGEST else say("the call"))


class Added(NamedTuple):
    """Lines are added before a line, or after it; they are exact."""

    site: Optional[Site]
    lines: Tuple[str, ...]
    indent: str
    after: bool = False
    imports: Tuple[str, ...] = ()

    def clause(self) -> Text:
        """Return the edit without its place."""
        return say("write: {code}", code=quoted("; ".join(" ".join(line.split()) for line in self.lines)))


class Import(NamedTuple):
    """A module is imported at the top of the file."""

    site: Optional[Site]
    module: str

    def clause(self) -> Text:
        """Return the edit without its place."""
        return quoted("import %s" % self.module)


class Spelling(NamedTuple):
    """An option of argparse gets a second spelling; it is looked for in the whole file."""

    site: Optional[Site]
    has: str
    more: str

    def clause(self) -> Text:
        """Return the edit without its place."""
        code = "parser.add_argument('%s', '%s', …)" % (self.has, self.more)
        return say("accept both spellings: {code}", code=quoted(code))


class Key(NamedTuple):
    """A dictionary that has type=`of` gets a further key; it is looked for in the whole file."""

    site: Optional[Site]
    of: str
    key: str
    value: str

    def clause(self) -> Text:
        """Return the edit without its place."""
        code, beside = "%s=%s" % (self.key, self.value), "type='%s'" % self.of
        return say("write {code} beside {beside}", code=quoted(code), beside=quoted(beside))


class ConfigLine(NamedTuple):
    """A line at the end of a configuration file."""

    file: str
    line: str

    def clause(self) -> Text:
        """Return the edit without its place."""
        return quoted(self.line)


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


def words(change: Change, names_of: Callable[["InSource"], Optional[Names]] = lambda _: None) -> Text:
    """Return a change as sentences; `names_of` gives the names in the job's call, if its source is at hand."""
    return joined(list(_sentences(change, names_of)))


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


def instead(code: str, was: str) -> Text:
    """Return the edit that writes code in place of something."""
    return say("write {code} in place of {was}", code=quoted(code), was=was)


def _sentences(change: Change, names_of: Callable[["InSource"], Optional[Names]]) -> Iterator[str]:
    at: Optional[Text] = None
    clauses: List[Text] = []
    for each in change:
        head = None if isinstance(each, (str, Variable, LaunchCommand)) else _head(each)
        if at is not None and clauses and head != at:
            yield _sentence(at, clauses)
            clauses = []
        if isinstance(each, str):
            yield each
        elif isinstance(each, (Variable, LaunchCommand)):
            yield _outside(each)
        else:
            clause = each.clause(names_of(each)) if isinstance(each, NAMED) else each.clause()
            at = head
            if clause:
                clauses.append(_with_imports(clause, _imports(each)))
    if at is not None and clauses:
        yield _sentence(at, clauses)


def _with_imports(clause: Text, modules: Sequence[str]) -> Text:
    return say("{edit} (with import {modules})", edit=clause, modules=listed(modules)) if modules else clause


def _sentence(at: Text, clauses: List[Text]) -> Text:
    return say("{at} {edits}.", at=at, edits=listed(clauses, by="; "))


def _head(edit: InSource) -> Text:
    if isinstance(edit, ConfigLine):
        return say("In {file} write:", file=quoted(edit.file) if edit.file else say("the config file"))
    file = quoted(edit.site.file) if edit.site is not None else say("the program")
    if isinstance(edit, Import):
        return say("At the top of {file}", file=file)
    if isinstance(edit, (Key, Spelling)) or (edit.site is not None and not edit.site.line):
        if isinstance(edit, Argument):
            return say("In {file}, in the call of {call}(…),", file=file, call=capital(edit.call))
        return say("In {file}", file=file)
    is_known = edit.site is not None and edit.site.file
    where = place(edit.site) if is_known else say("the line that the traceback names")
    if not isinstance(edit, (Lines, Added)):
        return say("At {where}", where=where)
    return say("After {where}", where=where) if edit.after else say("Before {where}", where=where)


def _imports(edit: InSource) -> Tuple[str, ...]:
    return edit.imports if isinstance(edit, (*NAMED, *EXACT)) else ()


def _outside(edit: Union[Variable, LaunchCommand]) -> Text:
    if isinstance(edit, LaunchCommand):
        return say("Start it with: {command}.", command=quoted(edit.shell))
    if edit.value is None:
        return say("Unset {variable} for all ranks.", variable=edit.name)
    return say("Set {variable}={value} for all ranks.", variable=edit.name, value=quoted(edit.value))
