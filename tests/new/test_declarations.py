"""A declaration that is missing is told with the file and with what to write there; and what is declared is what happens."""

import configparser
import json
import re
from pathlib import Path
from typing import Any, Dict, Set, Tuple

import pytest

from ddp_probe.activation import targets
from ddp_probe.shared import accelerators, declared, own_code, schema, settings
from ddp_probe.showing import event_line

# What a file declares, what stands there instead, and how the sentence begins.
MISSING: Dict[str, Tuple[str, str, str, str]] = {
    "probe without cost": (
        "ddp_probe/traced/probes/save.py",
        '    cost = "Two stats per save, and one of the file system if the save fails."\n',
        "",
        'ddp_probe/traced/probes/save.py: Save has no cost. Write cost = "…" in the class:',
    ),
    "probe without targets": (
        "ddp_probe/traced/probes/spawn.py",
        '    targets = ("torch.multiprocessing.spawn:start_processes",)\n',
        "",
        'ddp_probe/traced/probes/spawn.py: Spawn has no targets. Write targets = ("module:qualname",) in the class:',
    ),
    "probe without events": (
        "ddp_probe/traced/probes/save.py",
        "    events = (schema.Save,)\n",
        "",
        "ddp_probe/traced/probes/save.py: Save has no events. Write events = (schema.X,) in the class:",
    ),
    "probe of another name": (
        "ddp_probe/traced/probes/save.py",
        '    name = "save"\n',
        '    name = "store"\n',
        "ddp_probe/traced/probes/save.py: Save is named 'store'. Write name = \"save\" in the class:",
    ),
    "probe in a role that does not exist": (
        "ddp_probe/traced/probes/launcher.py",
        "    roles = LAUNCH\n",
        '    roles = ("boss",)\n',
        "ddp_probe/traced/probes/launcher.py: Launcher has roles ('boss',). Write some of rank, solo, launcher.",
    ),
    "probe that is not named": (
        "ddp_probe/traced/probes/save.py",
        "\nPROBE = Save\n",
        "",
        "ddp_probe/traced/probes/save.py has no PROBE. Write PROBE = and the name of its class as its last line.",
    ),
    "target without a colon": (
        "ddp_probe/traced/probes/save.py",
        '("torch.serialization:save", ',
        '("torch.save", ',
        "ddp_probe/traced/probes/save.py: Save has the target 'torch.save'. Write it as module:qualname.",
    ),
    "remedy without for_good": (
        "ddp_probe/traced/remedies/timeout.py",
        "    for_good = ",
        "    _was = ",
        'ddp_probe/traced/remedies/timeout.py: Timeout has no for_good. Write for_good = "…" in the class: how to make the same change in code.',
    ),
    "remedy without an order": (
        "ddp_probe/traced/remedies/timeout.py",
        "    order = 110\n",
        "",
        "ddp_probe/traced/remedies/timeout.py: Timeout has order 0, which is not above 0. Write a number of its own in the class.",
    ),
    "remedy with the order of another": (
        "ddp_probe/traced/remedies/timeout.py",
        "    order = 110\n",
        "    order = 20\n",
        (
            "ddp_probe/traced/remedies/timeout.py: Timeout has order 20, as ddp_probe/traced/remedies/backend.py has. "
            "Write a number of its own in the class."
        ),
    ),
    "rule without an example": (
        "tests/rules/map-location-missing/03-both-ranks-load-to-cpu.log",
        "answer: clear",
        "answer: found",
        "tests/rules/map-location-missing has no example in which the rule stays silent. Write a file NN-WORDS.log with 'answer: clear' in",
    ),
    "example without an answer": (
        "tests/rules/map-location-missing/03-both-ranks-load-to-cpu.log",
        "answer: clear\n",
        "",
        "tests/rules/map-location-missing/03-both-ranks-load-to-cpu.log: the header needs a name, and an answer, which is one of found, clear,",
    ),
    "rule without a check and without words": (
        "ddp_probe/judging/rules/rank_came_late.py",
        "def check(run: Run)",
        "def look(run: Run)",
        "ddp_probe/judging/rules/rank_came_late.py has neither a check nor printed texts. Write check(run), or printed=(Printed(…),)",
    ),
    "rule with a cause that does not exist": (
        "ddp_probe/judging/rules/submodule_left_behind.py",
        'cause="mixed_cpu_cuda_params"',
        'cause="moon_phase"',
        "ddp_probe/judging/rules/submodule_left_behind.py: the rule has the cause 'moon_phase'. Write one of ddp_probe/judging/causes.py,",
    ),
    "rule with the id of another": (
        "ddp_probe/judging/rules/torch_fault.py",
        'id="DDP813"',
        'id="DDP104"',
        "ddp_probe/judging/rules/torch_fault.py: the rule has the id DDP104, as ddp_probe/judging/rules/submodule_left_behind.py has.",
    ),
    "rule of another name": (
        "ddp_probe/judging/rules/submodule_left_behind.py",
        'slug="submodule-left-behind"',
        'slug="left-behind"',
        "ddp_probe/judging/rules/submodule_left_behind.py: the rule has the slug 'left-behind'. Write slug=\"submodule-left-behind\":",
    ),
    "accelerator without device_types": (
        "ddp_probe/shared/accelerators.py",
        '        device_types=("musa",),\n',
        "",
        "ddp_probe/shared/accelerators.py: the record 'musa' has no device_types. Write device_types=(\"…\",) in it: what torch calls its devices.",
    ),
    "field without a meaning": (
        "ddp_probe/shared/schema.py",
        'calls: Annotated[int, _doc("How often the job has made this call.")] = 0',
        "calls: int = 0",
        'ddp_probe/shared/schema.py: the field calls of WatchedTarget has no meaning. Write it as calls: Annotated[…, _doc("…")].',
    ),
    "event without a docstring": (
        "ddp_probe/shared/schema.py",
        '    """restore() was called."""\n',
        "",
        "ddp_probe/shared/schema.py: Restored has no docstring. Write a sentence that says what it is.",
    ),
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", list(MISSING))
def test_a_missing_declaration_is_told(checkout: Any, name: str) -> None:
    """Nothing is printed, the exit code is 1, and one sentence says in which file to write what."""
    path, old, new, sentence = MISSING[name]
    checkout.edit(path, old, new)
    done = checkout.run("scripts/render_docs")
    assert done.returncode == 1, done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith(sentence)] == done.stdout.splitlines() != []


def test_ring_0_has_what_the_files_declare() -> None:
    """The table that settings and the import hook read names each file of probes and remedies, and each vendor's set_device."""
    package = Path(str(declared.__file__)).parent.parent
    files = {folder: {path.stem for path in (package / "traced" / folder).glob("[a-z]*.py")} for folder in ("probes", "remedies")}
    assert {row.probe for row in targets.TARGETS} == files["probes"]
    assert {name.replace("-", "_") for name in settings.REMEDIES} == files["remedies"]
    assert {row.module + ":" + row.qualname for row in targets.TARGETS if row.probe == "set_device"} == set(accelerators.set_device_targets())


def test_a_phase_that_was_recorded_is_declared(repo: Path) -> None:
    """Each line of a recorded job that a probe wrote has a phase that a probe declares for its event."""
    page = (repo / "docs" / "contributing" / "probes.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| \[([a-z_.]+)\]\(\.\./events\.md#[^)]*\) \| (.*) \|$", page)
    phases: Dict[str, Set[str]] = {}
    for event, told in rows:
        phases.setdefault(event, set()).update(word for word in ("begin", "end", "error", "point") if word in told)
    seen = {event: set() for event in phases}
    for path in (repo / "tests" / "recorded").rglob("*.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            event = json.loads(line)
            seen.get(event["event"], set()).add(event["phase"])
    assert {event: sorted(found - phases[event]) for event, found in seen.items() if found - phases[event]} == {}
    assert sum(map(bool, seen.values())) > 8


def test_the_envelope_is_told_once() -> None:
    """A person who reads along sees the fields of an event, and none that every line has but how often a line has called."""
    event = {name: 7 for name in schema.ENVELOPE if name != "failure"}
    text = event_line.line(0.0, {"event": "unheard.of", **event, "colour": "red"})
    assert re.findall(r"(\w+)=", text) == ["nth", "colour"]


def test_no_package_of_a_vendor_is_the_jobs_own() -> None:
    """The modules of every record are libraries to who looks for the job's line, and the import contract forbids each of them."""
    config = configparser.ConfigParser()
    config.read(str(Path(__file__).resolve().parent.parent.parent / "setup.cfg"), encoding="utf-8")
    forbidden = config["importlinter:contract:no-framework"]["forbidden_modules"].split()
    assert {"torch_dipu", "torch_xla", "habana_frameworks", "intel_extension_for_pytorch", "oneccl_bindings_for_pytorch"} <= set(
        accelerators.modules()
    )
    for name in accelerators.modules():
        assert own_code.framework(name)
        assert name in forbidden
