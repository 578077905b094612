"""A rule: finds one cause in the logs of a run."""

import argparse
from typing import Any

from ddp_probe.judging.causes import group_of
from ddp_probe.judging.rules import RETIRED, modules, rule_of
from ddp_probe.showing.rule_page import HUNDREDS
from new_parts.files import PRINT, PYTHON, Insertion, Plan, RefusedError, kebab

_RULE = '''"""Says in one sentence what %(name)s means."""

from typing import Iterator

from ddp_probe.judging.rule import Finding, Rule, shown
from ddp_probe.reading.model import Run
from ddp_probe.shared import schema
from ddp_probe.wording.text import say
from ddp_probe.wording.words import named, quoted

_SIGN = "%(name)s.pth"

RULE = Rule(
    id="%(id)s",
    slug="%(name)s",
    cause="%(cause)s",
    title="A checkpoint is saved as %(name)s.pth.",
    symptom="What a person sees, with the words of the failure.",
    evidence="What in the logs proves it, and what tells it from similar causes.",
    remedy="What to change, with the lines to write.",
    restart="unknown",  # Or no, yes, elsewhere, after; and why: what stays, or changes by itself.
    needs=("checkpoint.save",),
)


def check(run: Run) -> Iterator[Finding]:
    """Look at each save of each rank."""
    saved = [(process, call) for process in run.processes for call in process.calls(schema.Save) if call.begin.path.endswith(_SIGN)]
    if not saved:
        return
    saves = [call for _, call in saved]
    ranks = [process.rank for process, _ in saved if process.rank is not None]
    yield RULE.found(
        ranks=ranks,
        verdict=say("{who:capital} saved to {path}.", who=named(ranks), path=quoted(_SIGN)),
        evidence=[shown(call, say("saved to {path}", path=quoted(call.begin.path))) for call in saves[:4]],
        when=saves[0].when,
    )
'''

_BY_WORDS = '''"""Says in one sentence what %(name)s means."""

from ddp_probe.judging.rule import Printed, Rule

RULE = Rule(
    id="%(id)s",
    slug="%(name)s",
    cause="%(cause)s",
    title="An exception says %(name)s.",
    symptom="What a person sees, with the words of the failure: 'RuntimeError: %(name)s'.",
    evidence="Which words prove it, and what tells it from similar causes.",
    remedy="What to change, with the lines to write.",
    restart="unknown",  # Or no, yes, elsewhere, after; and why: what stays, or changes by itself.
    needs=("process.end",),
    printed=(Printed(r"RuntimeError: %(name)s"),),
)
'''

_LOGS = {
    "01-save-to-the-name.log": """name: A save to the name that this rule looks for.
answer: found
ranks: 1

{"event":"checkpoint.save","phase":"begin","rank":1,"span":1,"site":{"file":"t.py","line":3},"path":"%(name)s.pth"}
{"event":"checkpoint.save","phase":"end","rank":1,"span":1,"size":9}
""",
    "02-save-to-another-name.log": """name: A save to another name.
answer: clear

{"event":"checkpoint.save","phase":"begin","rank":1,"span":1,"site":{"file":"t.py","line":3},"path":"last.pth"}
{"event":"checkpoint.save","phase":"end","rank":1,"span":1,"size":9}
""",
}

_LOGS_BY_WORDS = {
    "01-rank-1-raises.log": """name: Rank 1 raises the exception.
answer: found
ranks: 1

[rank1]: Traceback (most recent call last):
[rank1]:   File "/train/t.py", line 3, in main
[rank1]: RuntimeError: %(name)s
""",
    "02-another-exception.log": """name: Another exception is raised.
answer: clear

RuntimeError: something else
""",
}

_MODELS = "submodule_left_behind.py does, or work_never_waited_for.py over ledgers"
_ADVICE = "NOT_FOLLOWED: Dict[str, str] = {\n"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument("name", metavar="NAME", help="the rule's slug, such as model-never-moved; it never changes")
    parser.add_argument(
        "--cause", default="own_exception", help="a cause of ddp_probe/judging/causes.py; the id follows those of its rules; default %(default)s"
    )
    hundreds = ", ".join("%s (%s)" % pair for pair in HUNDREDS.items())
    parser.add_argument("--hundred", default="", choices=sorted(HUNDREDS), help="where the id of the first rule of a new cause is: %s" % hundreds)
    parser.add_argument("--by-words", action="store_true", help="the words of an exception decide alone: a rule without a check()")


def plan(options: Any) -> Plan:
    """Return what is written for a rule."""
    name = kebab("a rule", options.name, "model-never-moved")
    rules = [rule_of(module) for module in modules()]
    if name in [*RETIRED.values(), *(rule.slug for rule in rules)]:
        raise RefusedError("A rule has, or had, the slug %s. Choose another name." % name)
    if not group_of(options.cause):
        raise RefusedError(
            "%r is not a cause. ddp_probe/judging/causes.py lists them; add a new one there. --hundred chooses the ids of its rules." % options.cause
        )
    words = {"name": name, "cause": options.cause, "id": _free(rules, options.cause, options.hundred)}
    file, logs = "ddp_probe/judging/rules/%s.py" % name.replace("-", "_"), "tests/rules/%s/" % name
    text, examples = (_BY_WORDS, _LOGS_BY_WORDS) if options.by_words else (_RULE, _LOGS)
    parts, model = ("RULE", "save_folder_renamed_twice.py does") if options.by_words else ("RULE and check", _MODELS)
    row = '    "%s": "a skeleton of scripts/new: replace this line by a row above that follows the advice, or say why nobody can",\n' % words["id"]
    return Plan(
        {file: text % words, **{logs + own: log % words for own, log in examples.items()}},
        (Insertion("tests/advice/advice_table.py", _ADVICE, row, after=True),),
        [
            PRINT,
            "%s -m pytest tests/diagnose -k %s    # its examples, against every rule" % (PYTHON, name),
            "Write %s in %s, as %s, and the logs of %s: cut them from a real run. "
            "What the symptom quotes becomes a row of docs/messages.md." % (parts, file, model, logs),
            "In tests/advice/advice_table.py, add a row whose job follows the advice and remove the line of %s, or write there why nobody can."
            % words["id"],
            "%s -m pytest tests/diagnose tests/advice    # every rule, over every recorded job; some minutes" % PYTHON,
        ],
    )


def _free(rules: Any, cause: str, hundred: str) -> str:
    """Return the next odd id of a hundred, or of that of the same cause; if none is left, the first that is free."""
    hundred = hundred or next((rule.id[:4] for rule in rules if rule.cause == cause), "DDP6")
    first = int(hundred[3:]) * 100
    taken = {int(name[3:]) for name in [*RETIRED, *(rule.id for rule in rules)] if name.startswith(hundred)}
    free = [number for number in (max(taken) + 2, *range(first + 1, first + 100)) if number not in taken and number < first + 100]
    if not free:
        raise RefusedError("No id is free in %s00 to %s99. Choose another cause." % (hundred, hundred))
    return "DDP%d" % free[0]
