"""A rule: finds one cause in the logs of a run."""

import argparse
from typing import Any

from ddp_probe.diagnose.causes import group_of
from ddp_probe.diagnose.rules import RETIRED, modules, rule_of
from new_parts.files import PRINT, PYTHON, Insertion, Plan, RefusedError, kebab

_RULE = '''"""Says in one sentence what %(name)s means."""

from typing import Iterator

from ddp_probe import schema
from ddp_probe.diagnose.rule import Example, Finding, Rule, shown
from ddp_probe.diagnose.words import named
from ddp_probe.read.model import Run

_SIGN = "%(name)s.pth"

RULE = Rule(
    id="%(id)s",
    slug="%(name)s",
    cause="%(cause)s",
    title="A checkpoint is saved as %(name)s.pth.",
    symptom="What a person sees, with the words of the failure.",
    evidence="What in the logs proves it, and what tells it from its neighbours.",
    remedy="What to change, with the lines to write.",
    needs=("checkpoint.save",),
)

EXAMPLES = (
    Example(
        "A save to the name that this rule looks for.",
        """
{"event":"checkpoint.save","phase":"begin","rank":1,"span":1,"site":{"file":"/train/t.py","line":3,"function":"main"},"path":"%(name)s.pth"}
{"event":"checkpoint.save","phase":"end","rank":1,"span":1,"size":9}
""",
        ranks=(1,),
    ),
    Example(
        "A save to another name.",
        """
{"event":"checkpoint.save","phase":"begin","rank":1,"span":1,"site":{"file":"/train/t.py","line":3,"function":"main"},"path":"last.pth"}
{"event":"checkpoint.save","phase":"end","rank":1,"span":1,"size":9}
""",
        answer="clear",
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """Look at each save of each rank."""
    saves = [call for process in run.processes for call in process.calls(schema.Save) if call.begin.path.endswith(_SIGN)]
    if not saves:
        return
    ranks = [call.begin.rank for call in saves if call.begin.rank is not None]
    yield RULE.found(
        ranks=ranks,
        verdict="%%s saved to %%s." %% (named(ranks).capitalize(), _SIGN),
        evidence=[shown(call, "saved to %%s" %% call.begin.path) for call in saves[:4]],
        when=saves[0].when,
    )
'''

_ADVICE = "NOT_FOLLOWED: Dict[str, str] = {\n"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument("name", metavar="NAME", help="the rule's slug, such as model-never-moved; it never changes")
    parser.add_argument("--cause", default="own_exception", help="a cause of ddp_probe/diagnose/causes.py; default %(default)s")


def plan(options: Any) -> Plan:
    """Return what is written for a rule."""
    name = kebab("a rule", options.name, "model-never-moved")
    rules = [rule_of(module) for module in modules()]
    if name in [*RETIRED.values(), *(rule.slug for rule in rules)]:
        raise RefusedError("A rule has, or had, the slug %s. Choose another name." % name)
    if not group_of(options.cause):
        raise RefusedError("%r is not a cause. ddp_probe/diagnose/causes.py lists them; add a new one there." % options.cause)
    words = {"name": name, "cause": options.cause, "id": _free(rules, options.cause)}
    file = "ddp_probe/diagnose/rules/%s.py" % name.replace("-", "_")
    row = '    "%s": "a skeleton of scripts/new: a row above that follows its advice takes the place of this line",\n' % words["id"]
    return Plan(
        {file: _RULE % words},
        (Insertion("tests/advice/advice_table.py", _ADVICE, row, after=True),),
        [
            PRINT,
            "%s -m pytest tests/diagnose -k %s    # its examples, against every rule" % (PYTHON, name),
            "Write RULE, EXAMPLES and check in %s; submodule_left_behind.py is a good one to read." % file,
            "Put a job that follows the advice into tests/advice/advice_table.py, in place of the line that stands there.",
            "%s -m pytest tests/diagnose tests/advice" % PYTHON,
        ],
    )


def _free(rules: Any, cause: str) -> str:
    """Return the next id beside those of the same cause."""
    hundred = next((rule.id[:4] for rule in rules if rule.cause == cause), "DDP6")
    last = max(int(name[3:]) for name in [*RETIRED, *(rule.id for rule in rules)] if name.startswith(hundred))
    if last + 2 > int(hundred[3:]) * 100 + 99:
        raise RefusedError("No id is free in %s00 to %s99. Choose another cause." % (hundred, hundred))
    return "DDP%d" % (last + 2)
