"""An accelerator: one record with the vendor's module, devices, backends and variables."""

import argparse
from typing import Any

from ddp_probe.shared.accelerators import ACCELERATORS
from new_parts.files import PRINT, PYTHON, Insertion, Plan, RefusedError, snake

_MARK = "    # scripts/new accelerator puts a new record above this line.\n"

_RECORD = """    Accelerator(
        name="%(name)s",
        vendor="%(vendor)s",
        modules=("%(module)s",),
        device_types=("%(name)s",),
        torch_attribute="%(name)s",
        visible=("%(upper)s_VISIBLE_DEVICES",),
        environment=("%(upper)s_",),
        set_device=("%(module)s:set_device",),
    ),
"""

_TEST = '''"""The accelerator %(name)s, with a module that stands for the vendor's."""

MODULE = """
def set_device(index):
    return index
"""

CODE = """
import torch, %(module)s

%(module)s.set_device(0)
"""


def test_its_record_reaches_the_log(run_python, armed, tmp_path, read_events):
    """The first line names the accelerator and its variables, and set_device of its module is recorded."""
    (tmp_path / "%(module)s.py").write_text(MODULE)
    env = armed(tmp_path / "runs", %(upper)s_VISIBLE_DEVICES="0,1", %(upper)s_LOG_LEVEL="1")
    env["PYTHONPATH"] += ":%%s" %% tmp_path
    done = run_python(CODE, env=env, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    events = read_events(tmp_path / "runs" / "latest")
    (card,) = [card for card in events[0]["accelerators"] if card["name"] == "%(name)s"]
    assert (card["device_type"], card["module"], card["visible"]) == ("%(name)s", "%(module)s", {"%(upper)s_VISIBLE_DEVICES": "0,1"})
    assert events[0]["environment"]["%(upper)s_LOG_LEVEL"] == "1"
    assert [event["target"] for event in events if event["event"] == "device.set" and event["phase"] == "begin"] == ["%(module)s.set_device"]
'''


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument("name", metavar="NAME", help="what torch calls its devices, such as gcu")
    parser.add_argument("--vendor", help="who makes it; default NAME with a capital")
    parser.add_argument("--module", help="the import name of the vendor's plugin; default torch_NAME")


def plan(options: Any) -> Plan:
    """Return what is written for an accelerator."""
    name = snake("an accelerator", options.name, "gcu")
    module = snake("a module", options.module or "torch_" + name, "torch_gcu")
    for record in ACCELERATORS:
        if name == record.name or name in record.device_types or module in record.modules:
            raise RefusedError("ddp_probe/shared/accelerators.py has the record %r for %s already. Change that one." % (record.name, name))
    words = {"name": name, "module": module, "upper": name.upper(), "vendor": options.vendor or name.capitalize()}
    test = "tests/facts/test_%s_accelerator.py" % name
    return Plan(
        {test: _TEST % words},
        (Insertion("ddp_probe/shared/accelerators.py", _MARK, _RECORD % words),),
        [
            PRINT,
            "%s -m pytest %s tests/test_accelerators.py" % (PYTHON, test),
            "Write in the record what the vendor's manual says: backends, smi, device_files, and where set_device is defined.",
        ],
    )
