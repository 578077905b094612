"""A check of doctor: looks at one thing that a job needs from a host."""

import argparse
from typing import Any

from ddp_probe.doctor.checks import HUNDREDS, modules
from new_parts.files import PRINT, PYTHON, Plan, RefusedError, kebab

_CHECK = '''"""Says in one sentence what has to be so."""

from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted

CHECK = Check(
    id="%(id)s",
    slug="%(name)s",
    title="%(variable)s is not set.",
    looks_at="What is read, started or tried.",
    remedy="What to do, as a command that can be copied.",
)


def check(host: Host) -> Answer:
    """Look at the environment."""
    if "%(variable)s" not in host.environ:
        return CHECK.ok(say("%(variable)s is not set."))
    return CHECK.fail(say("%(variable)s is {value}.", value=quoted(repr(host.environ["%(variable)s"]))), quoted("unset %(variable)s"))
'''

_TEST = '''"""The check %(name)s."""

from types import SimpleNamespace

from ddp_probe.doctor.checks import %(module)s


def test_it_fails_if_the_fault_is_there():
    """The check passes on a host that is as it has to be, and fails on one with the fault, with what to do."""
    answers = [%(module)s.check(SimpleNamespace(environ=environ)) for environ in ({}, {"%(variable)s": "1"})]
    assert [answer.status for answer in answers] == ["ok", "fail"]
    assert answers[1].remedy == "unset %(variable)s"
'''


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument("name", metavar="NAME", help="the check's slug, such as shared-memory; it never changes")
    told = ", ".join("%s (%s)" % each for each in HUNDREDS.items())
    parser.add_argument("--hundred", default="DOC3", choices=sorted(HUNDREDS), help="what it is about: %s; default %%(default)s" % told)


def plan(options: Any) -> Plan:
    """Return what is written for a check."""
    name = kebab("a check", options.name, "shared-memory")
    checks = [module.CHECK for module in modules()]
    if name in [check.slug for check in checks]:
        raise RefusedError("A check has the slug %s already. Choose another name." % name)
    last = max(int(check.id[3:]) for check in checks if check.id.startswith(options.hundred))
    module = name.replace("-", "_")
    words = {"name": name, "module": module, "id": "DOC%d" % (last + 1), "variable": module.upper()}
    test = "tests/doctor/test_%s_check.py" % module
    return Plan(
        {"ddp_probe/doctor/checks/%s.py" % module: _CHECK % words, test: _TEST % words},
        (),
        [
            PRINT,
            "%s -m pytest %s    # a host without the fault, and one with it" % (PYTHON, test),
            "Write CHECK and check in ddp_probe/doctor/checks/%s.py, as shared_memory.py does." % module,
            "Plant its fault in tests/doctor/test_planted.py: exactly this check fails or warns, and what its remedy says makes it pass.",
            "%s -m pytest tests/doctor tests/languages    # every check, over every planted fault; some minutes" % PYTHON,
        ],
    )
