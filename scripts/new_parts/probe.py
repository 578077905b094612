"""A probe: watches a call of the job and records it before and after."""

import argparse
from typing import Any

from ddp_probe.shared import schema
from new_parts.files import PRINT, PYTHON, Insertion, Plan, RefusedError, call, camel, snake, target

_C10D = "torch.distributed.distributed_c10d"
_MARK = "# scripts/new probe puts the event of a new probe above this line.\n"

_PROBE = '''"""%(module)s.%(qualname)s: what it was called with, and what came back."""

from typing import Any, Optional

from ddp_probe.shared import schema
from ddp_probe.traced.facts.describe import describe, describe_mapping
from ddp_probe.traced.patching import Call
from ddp_probe.traced.probes import Begun, Probe


class %(camel)s(Probe):
    """Records the arguments and the result, described."""

    name = "%(name)s"
    targets = ("%(module)s:%(qualname)s",)
    events = (schema.%(camel)s,)
    cost = "Two lines per call."

    def begin(self, call: Call) -> Optional[schema.Event]:
        """Record what was asked for; this line is on disk before the call runs."""
        return schema.%(camel)s(arguments=describe_mapping(call.arguments()))

    def end(self, call: Call, begun: Begun, result: Any) -> Optional[schema.Event]:
        """Record what came back."""
        return schema.%(camel)s(result=describe(result))


PROBE = %(camel)s
'''

_EVENT = '''class %(camel)s(Event, tag="%(event)s", kw_only=True, omit_defaults=True):
    """%(module)s.%(qualname)s."""

    arguments: Annotated[Dict[str, str], _doc("The arguments that were given, described.")] = {}
    result: Annotated[str, _doc("What came back, described.")] = ""


'''

_TEST = '''"""The probe %(name)s, in an interpreter of its own."""

CODE = """
%(call)s
"""


def test_the_call_is_recorded_before_and_after(run_python, armed, tmp_path, read_events):
    """A call of the target leaves a begin and an end event, with the line that made it."""
    done = run_python(CODE, env=armed(tmp_path / "runs"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    events = [event for event in read_events(tmp_path / "runs" / "latest") if event["event"] == "%(event)s"]
    assert [event["phase"] for event in events] == ["begin", "end"]
    assert events[0]["site"]["line"] == len(CODE.strip().splitlines()) + 1
'''

_GROUP = """import torch
import torch.distributed as dist

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
dist.%s(torch.ones(1))"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument("name", metavar="NAME", help="the probe's name, such as all_reduce")
    parser.add_argument("--target", help="the call to watch, as module:qualname of the module that defines it; default %s:NAME" % _C10D)
    parser.add_argument("--event", help="the event's name; default dist.NAME for a target in torch.distributed, else PACKAGE.NAME")
    parser.add_argument("--call", help="lines of Python for the test, of which the last makes the call; needed for a target outside of %s" % _C10D)


def plan(options: Any) -> Plan:
    """Return what is written for a probe."""
    name = snake("a probe", options.name, "all_reduce")
    module, _, qualname = target(options.target or "%s:%s" % (_C10D, name)).partition(":")
    package = "dist" if module.startswith("torch.distributed") else module.split(".", 1)[0]
    event = options.event or "%s.%s" % (package, name)
    if event in schema.EVENTS:
        raise RefusedError("An event has the name %s already. Choose another with --event." % event)
    if hasattr(schema, camel(name)):
        raise RefusedError("ddp_probe/shared/schema.py has a class %s already. Choose another name." % camel(name))
    made = call(options.call or (_GROUP % qualname if module == _C10D else ""), module, qualname)
    words = {"name": name, "camel": camel(name), "module": module, "qualname": qualname, "event": event, "call": made}
    test = "tests/probes/test_%s_probe.py" % name
    return Plan(
        {"ddp_probe/traced/probes/%s.py" % name: _PROBE % words, test: _TEST % words},
        (Insertion("ddp_probe/shared/schema.py", _MARK, _EVENT % words),),
        [
            PRINT,
            "%s -m pytest %s    # a real call, recorded" % (PYTHON, test),
            "Declare in ddp_probe/shared/schema.py the fields that %s needs, fill them in ddp_probe/traced/probes/%s.py, and test them."
            % (camel(name), name),
            "Declare in `shown` of %s which fields `logs` shows in a terminal, how pages draw its calls over time, and which phase "
            "of a rank follows; without it, `logs` shows all fields, and nothing is drawn." % camel(name),
            "%s -m pytest tests/contract/test_10_shows_nothing.py    # strange values to every target; a minute" % PYTHON,
            "%s -m pytest tests/contract    # every promise, over this probe as well; minutes" % PYTHON,
        ],
    )
