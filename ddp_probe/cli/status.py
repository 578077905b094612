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
import shlex
import sys
from collections import Counter
from typing import Any, Dict, List

import ddp_probe
from ddp_probe.activation.installer import state as installed
from ddp_probe.activation.targets import TARGETS
from ddp_probe.cli import _static
from ddp_probe.cli._commands import Command
from ddp_probe.shared import settings
from ddp_probe.showing.safe import visible

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
        print("\n".join(_lines(status, args.verbose)))
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


def _lines(status: Dict[str, Any], verbose: bool) -> List[str]:
    activator, variable = status["activator"], status["variable"]
    lines = [
        "interpreter  %s (Python %s)" % (status["interpreter"]["executable"], status["interpreter"]["version"]),
        "ddp_probe    %s" % status["ddp_probe"],
        "DDP_PROBE    %s" % ("unset" if variable is None else variable),
        "activator    %s" % _activator(activator),
    ]
    lines += ["             %s%s" % (path, _about(path, activator)) for path in activator["files"]]
    lines += ["changed      %s: uninstall leaves it as it is" % path for path in activator["changed"]]
    lines += ["package      %s" % activator["package"]] if activator["package"] else []
    lines += ["mistake      %s: %s" % pair for pair in status["mistakes"].items()]
    lines += ["running      %s. There is no run of it here. Next: python -m ddp_probe attach" % job for job in map(visible, status["unarmed"][:4])]
    lines += ["", "versions", *("  %-10s %s" % (name, number or "not installed") for name, number in status["versions"].items())]
    return [*lines, "", "targets", *(_targets if verbose else _counted)(status["targets"])]


def _about(path: str, activator: Dict[str, Any]) -> str:
    return _UNCOMPILED * (path in activator["uncompiled"]) + _SHARED * (path in activator["shared"])


def _counted(rows: List[Dict[str, Any]]) -> List[str]:
    """Return how many targets there are of each state, and each one that is needed and would not be patched."""
    counts = Counter(row["state"] for row in rows)
    needed = [row for row in rows if not row["optional"] and row["state"] not in (_static.PATCHED, _static.MISSING)]
    return [*("  %-16s %d" % pair for pair in counts.items()), *_targets(needed), "  status -v prints each."]


def _activator(activator: Dict[str, Any]) -> str:
    pip = "%s -m pip install %s" % (shlex.quote(sys.executable), " ".join(activator["missing"]))
    texts = {
        "active": "active, by %s; a child interpreter proves it%s" % (_FORMS.get(activator["via"], activator["via"]), _remark(activator)),
        "outdated": "active, by %s. %s Next: python -m ddp_probe install" % (_FORMS.get(activator["via"], activator["via"]), activator["because"]),
        "incomplete": "installed, but records nothing: %s Next: %s" % (activator["because"], pip),
        "absent": "absent. Next: python -m ddp_probe install" if activator["installable"] else "absent. %s" % activator["because"],
    }
    fallback = "%s. %s Next: python -m ddp_probe install, or uninstall" % (activator["state"], activator["because"])
    return str(texts.get(activator["state"], fallback))


def _remark(activator: Dict[str, Any]) -> str:
    because = activator["because"]
    if activator["via"] == "sitecustomize":
        return ". %s 'python -m ddp_probe install' writes a .pth line beside it, which works together with it" % because
    return ". " + because.rstrip(".") if because else ""


def _targets(rows: List[Dict[str, Any]]) -> List[str]:
    lines = []
    for row in rows:
        if row["state"] == _static.MISSING:
            continue
        lines.append("  %-16s %s.%s" % (row["state"], row["module"], row["qualname"]))
        if row["why"]:
            lines.append("  %-16s   %s" % ("", row["why"]))
    missing = [row["module"].split(".", 1)[0] for row in rows if row["state"] == _static.MISSING]
    lines += ["  %-16s %s (targets: %d)" % (_static.MISSING, name, missing.count(name)) for name in sorted(set(missing))]
    return lines
