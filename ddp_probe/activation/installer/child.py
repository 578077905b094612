"""Asks a child interpreter what really happens at its start; nobody else can know."""

import json
import os
import subprocess
import sys
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from ddp_probe.activation.installer import _files, locations, needs
from ddp_probe.shared.errors import ProbeError

_MARK = "ddp_probe-answer "
_SECONDS = 60
_ANSWER = "import json\nprint('\\n%s' + json.dumps(found))\n" % _MARK

_RIVALS = """
import sys
from importlib.machinery import PathFinder
found = []
for entry in [entry for entry in sys.path if entry]:
    spec = PathFinder.find_spec("sitecustomize", [entry])
    if spec is not None and spec.loader is not None:
        found.append([entry, spec.origin or entry])
found = [found, sys.path]
"""
_PACKAGE = """
import sys
sys.path = [entry for entry in sys.path if entry]
try:
    import ddp_probe.activation
    found = ddp_probe.activation.__file__
except ImportError:
    found = ""
"""
_PROOF = """
import importlib.util, sys
package, activator = (sys.modules.get(name) for name in ("ddp_probe.activation", "ddp_probe_activator"))
missing = [name for name in %r if importlib.util.find_spec(name) is None]
calls = getattr(activator, "calls", [])
found = [getattr(package, "state", lambda: "off")() != "off", getattr(activator, "__file__", ""), getattr(package, "__file__", ""), missing, calls]
"""


class Proof(NamedTuple):
    """What a child with DDP_PROBE=1 says of itself."""

    started: bool
    activator: str
    package: str
    missing: List[str]  # What it lacks to record anything.
    forms: List[str]  # Which forms of the activator have run.
    complaint: str

    def by(self, folder: str) -> bool:
        """Tell whether the activator of this folder started it, and nothing went wrong."""
        return self.started and not self.complaint and os.path.realpath(os.path.dirname(self.activator)) == os.path.realpath(folder)


def rivals(folder: str) -> Tuple[List[str], List[str]]:
    """Return the sitecustomize files that others wrote: those that win over the folder's, and those that it would win over."""
    entries, path = _insist(_RIVALS, _environment())
    places = [os.path.realpath(entry) for entry in path]
    own = places.index(os.path.realpath(folder)) if os.path.realpath(folder) in places else len(places)
    foreign = [(places.index(os.path.realpath(entry)), origin) for entry, origin in entries if _files.is_foreign(origin)]
    return [origin for index, origin in foreign if index <= own], [origin for index, origin in foreign if index > own]


def package() -> str:
    """Return where a child finds the package by itself, whatever PYTHONPATH holds here; empty if it does not."""
    env = _environment()
    env.pop("PYTHONPATH", None)
    return str(_insist(_PACKAGE, env))


def proof() -> Proof:
    """Start a child with DDP_PROBE=1 and read back whether it was started, and by what."""
    return proof_in([sys.executable], dict(_environment(), DDP_PROBE="1"), os.sep)


def proof_in(interpreter: List[str], env: Dict[str, str], folder: str) -> Proof:
    """Ask the same of an interpreter, with its options, in an environment and a folder."""
    found, complaint = _ask(_PROOF % (needs.TO_RECORD,), env, interpreter, folder)
    started, activator, where, missing, forms = found or (False, "", "", [], [])
    return Proof(started, activator, where, missing, forms, complaint)


def _environment() -> Dict[str, str]:
    """Our environment without the probe's variables and without the folder that `run` puts first."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("DDP_PROBE")}
    ours = os.path.realpath(locations.templates())
    entries = [entry for entry in env.get("PYTHONPATH", "").split(os.pathsep) if entry and os.path.realpath(entry) != ours]
    env["PYTHONPATH"] = os.pathsep.join(entries)
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    return env


def _insist(code: str, env: Dict[str, str]) -> Any:
    """Ask; refuse where there is no answer."""
    found, complaint = _ask(code, env)
    if found is None:
        raise ProbeError(
            what="Nothing is known of this interpreter: a child of it, with DDP_PROBE unset, gave no answer.",
            why=complaint,
            what_to_do="See what '%s -c pass' says." % sys.executable,
        )
    return found


def _ask(code: str, env: Dict[str, str], interpreter: Sequence[str] = (), folder: str = os.sep) -> Tuple[Any, str]:
    """Run code in a child that stands in the root folder; return what it found, and our own complaint on its stderr."""
    command = [*(interpreter or [sys.executable]), "-c", code + _ANSWER]
    try:
        done = subprocess.run(command, env=env, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as exc:
        return None, "The child interpreter did not answer: %s" % exc
    answers = [line[len(_MARK) :] for line in done.stdout.decode(errors="replace").splitlines() if line.startswith(_MARK)]
    said = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
    if not answers:
        return None, said[-1] if said else "The child interpreter ended with exit code %d." % done.returncode
    complaints = [line for line in said if line.startswith("ddp_probe:")]
    return json.loads(answers[-1]), complaints[0] if complaints else ""
