"""A remedy: changes a call of the job while DDP_PROBE_FIX asks for it, and records the change."""

import argparse
import ast
from typing import Any

from docs_parts import declarations

from new_parts.files import PRINT, PYTHON, Plan, RefusedError, call, camel, kebab, target

_REMEDY = '''"""Passes %(argument)s to %(module)s.%(qualname)s."""

from typing import Any, Optional

from ddp_probe.traced.patching import Call, Change
from ddp_probe.traced.remedies import Remedy

_WANTED: Any = %(value)s


class %(camel)s(Remedy):
    """Passes %(argument)s=%(quoted)s to %(module)s.%(qualname)s, unless the job passes it."""

    word = "%(name)s"
    order = %(order)d
    targets = ("%(module)s:%(qualname)s",)
    when = "The job does not pass %(argument)s."
    for_good = "%(qualname)s(…, %(argument)s=%(quoted)s)"

    def prepare(self, call: Call) -> Optional[Change]:
        """Pass the argument, unless the job passes one itself."""
        if "%(argument)s" in call.arguments():
            return None
        given = {"%(argument)s": _WANTED}
        return Change({"%(argument)s": "not given"}, given, "the job does not pass %(argument)s", arguments=given)


REMEDY = %(camel)s
'''

_TEST = '''"""The remedy %(name)s, in an interpreter of its own."""

CODE = """
%(call)s
"""


def _applied(run_python, armed, tmp_path, read_events, fix):
    done = run_python(CODE, env=armed(tmp_path / "runs", DDP_PROBE_FIX=fix), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    log = tmp_path / "runs" / "latest"  # not there if nothing was recorded
    return [event for event in read_events(log) if event["event"] == "remedy.applied"] if log.exists() else []


def test_the_change_is_made_and_recorded(run_python, armed, tmp_path, read_events):
    """With DDP_PROBE_FIX=%(name)s the call gets the argument, and one event says so with before and after."""
    (event,) = _applied(run_python, armed, tmp_path, read_events, "%(name)s")
    assert (event["remedy"], event["target"]) == ("%(name)s", "%(module)s.%(qualname)s")
    assert event["before"] == {"%(argument)s": "not given"}


def test_nothing_is_changed_without_the_variable(run_python, armed, tmp_path, read_events):
    """Without DDP_PROBE_FIX the call is left as it is."""
    assert _applied(run_python, armed, tmp_path, read_events, None) == []
'''

_LOAD = """import torch

torch.save({"a": 1}, "x.pt")
torch.load("x.pt")"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument("name", metavar="NAME", help="the remedy's name in DDP_PROBE_FIX, such as load-on-cpu")
    parser.add_argument("--target", default="torch.serialization:load", help="the call to change, as module:qualname; default %(default)s")
    parser.add_argument("--argument", default="map_location", help="the argument that the remedy passes; default %(default)s")
    parser.add_argument("--value", default="'cpu'", help="its value, as a Python literal; default %(default)s")
    parser.add_argument("--call", help="lines of Python that make the call, for the test, and succeed without the change too; needed with --target")


def plan(options: Any) -> Plan:
    """Return what is written for a remedy."""
    name = kebab("a remedy", options.name, "load-on-cpu")
    module, _, qualname = target(options.target).partition(":")
    if not options.argument.isidentifier():
        raise RefusedError("%r is not a valid name of an argument." % options.argument)
    words = {"name": name, "camel": camel(name), "module": module, "qualname": qualname, "argument": options.argument}
    words["value"] = words["quoted"] = literal(options.value)
    words["quoted"] = words["quoted"].replace('"', "'")
    words["call"] = call(options.call or (_LOAD if options.target == "torch.serialization:load" else ""), module, qualname)
    last = max(remedy.order for remedy in declarations.remedies())
    file, test = name.replace("-", "_"), "tests/remedies/test_%s_remedy.py" % name.replace("-", "_")
    return Plan(
        {"ddp_probe/traced/remedies/%s.py" % file: _REMEDY % {**words, "order": last + 10}, test: _TEST % words},
        (),
        [
            PRINT,
            "%s -m pytest %s    # a real call, changed" % (PYTHON, test),
            "In ddp_probe/traced/remedies/%s.py, return a Change only if the call needs it; if unsure, call self.declined() and return None." % file,
            "%s -m pytest tests/remedies tests/contract/test_09_repairs_nothing.py" % PYTHON,
        ],
    )


def literal(text: str) -> str:
    """Return a Python literal as ruff lays it out."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise RefusedError("%r is not a valid Python literal. Write a text with its quotes, such as \"'cpu'\"." % text) from None
    return '"%s"' % value if isinstance(value, str) and '"' not in value and "\\" not in value else repr(value)
