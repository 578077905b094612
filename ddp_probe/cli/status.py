"""Show what is installed for this Python, and which targets would be patched.

torch and mmengine are not imported. The targets are counted; -v prints each.

--json prints one object:
  interpreter  executable, version, prefix
  ddp_probe    this package's version
  variable     the value of DDP_PROBE, or null
  activator    state (active, absent, shadowed, outdated, incomplete, broken),
               because, via (both, sitecustomize, pth), files, version,
               shadowed_by, package, installable,
               missing (packages needed before anything is recorded),
               uncompiled (files that each start compiles again if
               PYTHONDONTWRITEBYTECODE is set; install compiles them),
               shared (files into which others wrote as well), changed
               (files of ours that others have changed)
  versions     distribution to version, null if not installed
  targets      a list of probe, module, qualname, optional, why, and state
               (would be patched, absent, not installed, unreadable)
  mistakes     DDP_PROBE_* variable to the mistake in it
  unarmed      jobs that run on this host, if there is no run here; 'attach'
               looks at them
"""

import argparse
import json
import os
import sys
from collections import Counter
from typing import Any, Dict, List, Tuple

import ddp_probe
from ddp_probe.activation.installer import child
from ddp_probe.activation.installer import state as installed
from ddp_probe.activation.targets import TARGETS
from ddp_probe.cli import _static
from ddp_probe.cli._commands import Command
from ddp_probe.shared import settings
from ddp_probe.showing import language
from ddp_probe.showing.language import Language
from ddp_probe.showing.layout import label_of_width
from ddp_probe.showing.safe import visible
from ddp_probe.wording.text import say as text_of
from ddp_probe.wording.words import command, quoted

_DISTRIBUTIONS = ("wrapt", "structlog", "msgspec", "torch", "mmengine")
_FORMS = {"both": "sitecustomize and pth"}
_UNCOMPILED = " (not compiled for this interpreter: install compiles it)"
_SHARED = " (others wrote into it as well: that stays)"

COMMAND = Command("status", order=20, summary="Show what is installed, and what would be patched.")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("-v", "--verbose", action="store_true", help="print each target")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Collect, check in a child, print. The exit code is 0 if the probe is active or could be installed, 2 if a dependency is missing, else 1."""
    status = collect()
    if args.json:
        print(json.dumps(status, indent=2))
    else:
        print("\n".join(_lines(status, args.verbose, language.chosen(sys.stdout))))
    activator = status["activator"]
    if activator["missing"]:
        return 2
    return 0 if activator["state"] in ("active", "outdated") or (activator["state"] == "absent" and activator["installable"]) else 1


def collect() -> Dict[str, Any]:
    """Return everything that the command prints."""
    look = installed.begin()  # Its child runs while the rest goes on.
    versions, unarmed = {name: _static.version(name) for name in _DISTRIBUTIONS}, _unarmed()
    trees: Dict[str, Any] = {}
    targets = []
    for row in TARGETS:
        verdict = _static.judge(row.module, row.qualname, trees)
        targets.append(
            {
                "probe": row.probe,
                "module": row.module,
                "qualname": row.qualname,
                "optional": bool(row.optional),
                "state": verdict.state,
                "why": verdict.why,
            }
        )
    status = look()._asdict()
    activator = {"state": status.pop("name"), **status}
    return {
        "interpreter": {"executable": sys.executable, "version": ".".join(map(str, sys.version_info[:3])), "prefix": sys.prefix},
        "ddp_probe": ddp_probe.__version__,
        "variable": os.environ.get(settings.PROBE.name),
        "activator": activator,
        "versions": versions,
        "targets": targets,
        "mistakes": settings.mistakes(),
        "unarmed": [] if activator["missing"] else unarmed,
    }


def _unarmed() -> List[str]:
    """Return the jobs on this host, if nothing here shows what they do."""
    try:
        from ddp_probe.attaching import ranks

        jobs = ranks.find(None, True)
        from ddp_probe.reading import find  # It reads logs: not needed if no job runs.

        return [] if find.runs(find.root()) else [job.said for job in jobs]
    except Exception:  # No job runs here; or a package is broken, and this command has to say so.
        return []


def _lines(status: Dict[str, Any], verbose: bool, say: Language) -> List[str]:
    activator, variable = status["activator"], status["variable"]
    python = status["interpreter"]
    interpreter = text_of("{path} (Python {version})", path=python["executable"], version=python["version"])
    rows: List[Tuple[str, str]] = [
        (say("interpreter"), say.text(interpreter)),
        ("ddp_probe", status["ddp_probe"]),
        ("DDP_PROBE", say("unset") if variable is None else variable),
        (say("activator"), say.text(_activator(activator))),
    ]
    rows += [("", path + _about(path, activator, say)) for path in activator["files"]]
    changed = [text_of("{path}: uninstall leaves it as it is", path=path) for path in activator["changed"]]
    rows += [(say("changed"), say.text(text)) for text in changed]
    rows += [(say("package"), activator["package"])] if activator["package"] else []
    for name, mistake in status["mistakes"].items():
        rows.append((say("mistake"), name + say(": ") + say.text(mistake)))
    for job in status["unarmed"][:4]:
        template = "{job}. There is no run of it here. Next: {command}"
        next_step = text_of(template, job=job, command=command("attach"))
        rows.append((say("running"), visible(say.text(next_step))))
    versions = [(name, number or say("not installed")) for name, number in status["versions"].items()]
    return [
        *(label_of_width(label, 13) + text for label, text in rows),
        "",
        say("versions"),
        *("  %-10s %s" % row for row in versions),
        "",
        say("targets"),
        *(_targets if verbose else _counted)(status["targets"], say),
    ]


def _about(path: str, activator: Dict[str, Any], say: Language) -> str:
    uncompiled, shared = path in activator["uncompiled"], path in activator["shared"]
    return (say(_UNCOMPILED) if uncompiled else "") + (say(_SHARED) if shared else "")


def _counted(rows: List[Dict[str, Any]], say: Language) -> List[str]:
    """Return how many targets there are of each state, and each one that is needed and would not be patched."""
    counts = Counter(row["state"] for row in rows)
    needed = [row for row in rows if not row["optional"] and row["state"] not in (_static.PATCHED, _static.MISSING)]
    lines = [_of_state(state, str(count), say) for state, count in counts.items()]
    return [*lines, *_targets(needed, say), say("  status -v prints each.")]


def _of_state(state: str, text: str, say: Language) -> str:
    return "  " + label_of_width(say(state), 17) + text


def _activator(activator: Dict[str, Any]) -> str:
    state, because, install = activator["state"], activator["because"], command("install")
    by = text_of(_FORMS.get(activator["via"], activator["via"]))
    if state == "active":
        template = "active, by {form}; a child interpreter proves it{remark}"
        return text_of(template, form=by, remark=_remark(activator))
    if state == "outdated":
        template = "active, by {form}. {because} Next: {command}"
        return text_of(template, form=by, because=because, command=install)
    if state == "incomplete":
        template = "installed, but records nothing: {because} Next: {command}"
        return text_of(template, because=because, command=child.pip_install(activator["missing"]))
    if state == "absent":
        if activator["installable"]:
            return text_of("absent. Next: {command}", command=install)
        return text_of("absent. {because}", because=because)
    template = "{state}. {because} Next: {command}, or uninstall"
    return text_of(template, state=text_of(state), because=because, command=install)


def _remark(activator: Dict[str, Any]) -> str:
    because = activator["because"]
    if activator["via"] == "sitecustomize":
        template = ". {because} {command} writes a .pth line beside it, which works together with it"
        return text_of(template, because=because, command=quoted("'python -m ddp_probe install'"))
    return text_of(". {because:clause}", because=because) if because else ""


def _targets(rows: List[Dict[str, Any]], say: Language) -> List[str]:
    lines = []
    for row in rows:
        if row["state"] == _static.MISSING:
            continue
        lines.append(_of_state(row["state"], "%s.%s" % (row["module"], row["qualname"]), say))
        if row["why"]:
            lines.append("  %-16s   %s" % ("", say.text(row["why"])))
    missing = [row["module"].split(".", 1)[0] for row in rows if row["state"] == _static.MISSING]
    for name in sorted(set(missing)):
        count = text_of("{name} (targets: {count})", name=name, count=missing.count(name))
        lines.append(_of_state(_static.MISSING, say.text(count), say))
    return lines
