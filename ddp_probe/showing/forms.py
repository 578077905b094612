"""The forms of a report, by name. A form's module has show(diagnosis), and is imported only if that form is printed."""

import importlib
from typing import NamedTuple, Tuple

from ddp_probe.shared.errors import UsageError

TERMINAL, JSON, BRIEF, GITHUB, JUNIT = "terminal", "json", "brief", "github", "junit"


class PrintedForm(NamedTuple):
    """One form: its name, its module, and whether --follow can print it again and again."""

    name: str
    module: str
    follows: bool


FORMS: Tuple[PrintedForm, ...] = (
    PrintedForm(TERMINAL, "ddp_probe.showing.terminal", follows=True),
    PrintedForm(JSON, "ddp_probe.showing.as_json", follows=True),
    PrintedForm(BRIEF, "ddp_probe.showing.brief", follows=True),
    PrintedForm(GITHUB, "ddp_probe.showing.github", follows=False),
    PrintedForm(JUNIT, "ddp_probe.showing.junit", follows=False),
)
NAMES = tuple(form.name for form in FORMS)


def show(diagnosis: object, name: str) -> None:
    """Print a diagnosis in the form of this name."""
    importlib.import_module(_form(name).module).show(diagnosis)


def refuse_to_follow(name: str) -> None:
    """Refuse a form that is one whole document: what is printed twice is not a valid one."""
    if not _form(name).follows:
        follow = ", ".join(form.name for form in FORMS if form.follows)
        raise UsageError(
            "--follow cannot print the form %s, which is printed once, when the job has ended." % name,
            "Leave out --follow, or choose one of these forms: %s." % follow,
        )


def _form(name: str) -> PrintedForm:
    return next(form for form in FORMS if form.name == name)
