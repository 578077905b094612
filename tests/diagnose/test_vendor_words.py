"""A vendor's record is enough for the rules that read vendors' words."""

import json
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

SAID: Dict[str, str] = {
    "backend-not-available": "AttributeError: module 'torch' has no attribute 'acme'",
    "backend-does-not-fit-device": "RuntimeError: No backend type associated with device type acme",
    "card-out-of-memory": "RuntimeError: ACME out of memory. Tried to allocate 2.00 GiB",
    "cpu-tensor-in-collective": "RuntimeError: Tensors must be ACME and dense",
    "device-woken-too-early": "RuntimeError: Cannot re-initialize ACME in forked subprocess",
    "no-gpu-visible": "RuntimeError: No available ACMEs found",
    "operation-unsupported": "RuntimeError: accl does not support reduce_scatter",
    "operator-not-built": "RuntimeError: nms is not compiled with ACME support",
    "stale-process-holds-card": "RuntimeError: ACME 0 is busy",
    "vendor-library-missing": "ImportError: libacme_rt.so.2: cannot open shared object file: No such file or directory",
    "visible-cards-wrong": "RuntimeError: No ACME devices are available",
    "wrong-network-interface": "RuntimeError: ACCL_SOCKET_IFNAME is eth7, which is not there",
    "environment-skew": "\n".join(
        '{"event":"process.start","rank":%d,"world_size":3,"environment":{"ACME_FUSION":"%d","ACCL_ALGO":"%d"}}' % (rank, rank // 2, rank // 2)
        for rank in range(3)
    ),
}
CODE = """
import json, sys

sys.path.insert(0, sys.argv[1])
from ddp_probe.shared import accelerators
from new_parts import accelerator

class Options:
    name, vendor, module = "acme", None, None

if sys.argv[2]:
    known = eval("[%s][0]" % accelerator.plan(Options).insertions[0].lines, {"Accelerator": accelerators.Accelerator})
    known.backends = ("accl",)
    accelerators.register(known)

from ddp_probe.judging.judge import judge
from ddp_probe.judging.rules import modules, rule_of
from ddp_probe.reading.load_run import from_lines

rules = {rule_of(module).slug: module for module in modules()}
said = json.loads(sys.argv[3])
print(json.dumps([slug for slug, log in said.items() if judge(from_lines(log), [rules[slug]]).findings]))
"""


@pytest.mark.parametrize(("record", "expected"), [("with", sorted(SAID)), ("", ["backend-does-not-fit-device"])], ids=["with-record", "without"])
def test_a_record_is_enough(run_python: Callable[..., Any], repo: Path, record: str, expected: List[str]) -> None:
    """The record that scripts/new writes, with a backend, lets the rules understand its vendor; torch's own words need no record."""
    done = run_python(["-c", CODE, str(repo / "scripts"), record, json.dumps(SAID)])
    assert done.returncode == 0, done.stderr
    assert sorted(json.loads(done.stdout)) == expected
