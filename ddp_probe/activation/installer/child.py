"""The packages that a traced process needs to record anything, and what to say when they are missing."""

import json
import os
import shlex
import sys
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ddp_probe.activation.installer import activator_files, locations
from ddp_probe.shared.child_process import ChildProcess
from ddp_probe.shared.errors import ProbeError, UnusableError
from ddp_probe.wording.text import Text, joined, say
from ddp_probe.wording.words import listed, quoted

# tests/packaging/test_built_files.py holds them against the dependencies of the package.
TO_RECORD: Tuple[str, ...] = ("wrapt", "structlog", "msgspec", *(() if sys.version_info >= (3, 9) else ("typing_extensions",)))


def missing(names: List[str], what: str) -> UnusableError:
    """Return what to say when an interpreter lacks these packages."""
    return UnusableError(
        what=what,
        why=sentence(names),
        what_to_do=say("{command}    # or ddp-probe, which brings them", command=pip_install(names)),
    )


def pip_install(names: List[str]) -> Text:
    """Return the command that installs these packages for this interpreter."""
    return quoted("%s -m pip install %s" % (shlex.quote(sys.executable), " ".join(names)))


def sentence(names: List[str]) -> Text:
    """Name the packages."""
    if len(names) == 1:
        return say("{package} is not installed.", package=names[0])
    return say("{packages} are not installed.", packages=listed(names))


def nothing_recorded(names: List[str]) -> Text:
    """Say what the lack of these packages leads to."""
    return joined([sentence(names), say("Nothing would be recorded.")])


# Asks a child interpreter what really happens at its start; nobody else can know.

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


class Asked:
    """A question to a child interpreter that stands in the root folder. It runs from here on, beside other children."""

    def __init__(self, code: str, env: Dict[str, str], interpreter: Sequence[str] = (), folder: str = os.sep) -> None:
        command = [*(interpreter or [sys.executable]), "-c", code + _ANSWER]
        self._child: Optional[ChildProcess] = None
        try:
            self._child = ChildProcess(command, env, cwd=folder)
        except OSError as exc:
            self._refused = exc

    def answer(self) -> Tuple[Any, str]:
        """Return what the child found, and our complaint on its stderr."""
        if self._child is None:
            return None, say("The child interpreter did not answer: {error}", error=quoted(self._refused))
        try:
            printed = self._child.wait(_SECONDS)
        finally:
            self._child.end()
        if printed.code is None:
            return None, say("The child interpreter {end}.", end=printed.why)
        return _read(printed.out.decode(errors="replace"), printed.err.decode(errors="replace"), printed.code)

    def insist(self) -> Any:
        """Return what the child found; refuse if there is no answer."""
        found, complaint = self.answer()
        if found is None:
            template = "Nothing is known of this interpreter: a child of it, with DDP_PROBE unset, gave no answer."
            raise ProbeError(
                what=say(template),
                why=complaint,
                what_to_do=say("See what '{command}' says.", command=quoted("%s -c pass" % sys.executable)),
            )
        return found


class Rivals(NamedTuple):
    """The sitecustomize files that a child finds, and its path."""

    entries: List[Tuple[str, str]]
    path: List[str]

    def of(self, folder: str) -> Tuple[List[str], List[str]]:
        """Return the sitecustomize files that others wrote: those that win over the folder's, and those that it would win over."""
        places = [os.path.realpath(entry) for entry in self.path]
        own = places.index(os.path.realpath(folder)) if os.path.realpath(folder) in places else len(places)
        foreign = [(places.index(os.path.realpath(entry)), origin) for entry, origin in self.entries if activator_files.is_foreign(origin)]
        return [origin for index, origin in foreign if index <= own], [origin for index, origin in foreign if index > own]


def rivals(folder: str) -> Tuple[List[str], List[str]]:
    """Ask a child for its rivals of this folder."""
    return Rivals(*Asked(_RIVALS, _environment()).insist()).of(folder)


class Surroundings(NamedTuple):
    """What a plan needs: the rivals, and the file of the package that a child finds without PYTHONPATH; empty if it finds none."""

    rivals: Rivals
    package: str


def surroundings() -> Surroundings:
    """Ask two children, side by side."""
    env = _environment()
    first, second = Asked(_RIVALS, env), Asked(_PACKAGE, {name: value for name, value in env.items() if name != "PYTHONPATH"})
    return Surroundings(Rivals(*first.insist()), str(second.insist()))


def ask_proof() -> Asked:
    """Start a child with DDP_PROBE=1."""
    return Asked(_proof_code(), _armed())


def proof(asked: Optional[Asked] = None) -> Proof:
    """Return whether a child with DDP_PROBE=1 was started, and by what."""
    return _proof(*(asked or ask_proof()).answer())


def proof_in(interpreter: List[str], env: Dict[str, str], folder: str) -> Proof:
    """Ask the same of an interpreter, with its options, in an environment and a folder."""
    return _proof(*Asked(_proof_code(), env, interpreter, folder).answer())


def ask_all() -> Asked:
    """Start a child with DDP_PROBE=1 that answers for a plan as well."""
    return Asked("%sall = [found]\n%sall.append(found)\n%sfound = [*all, found]\n" % (_proof_code(), _RIVALS, _PACKAGE), _armed())


def proof_and_surroundings(asked: Asked) -> Tuple[Proof, Optional[Surroundings]]:
    """Return both; no surroundings if the child tells of others than one without DDP_PROBE and PYTHONPATH would."""
    found, complaint = asked.answer()
    if found is None:
        return proof(), None
    told = _proof(found[0], complaint)
    alike = not told.started and not _environment()["PYTHONPATH"]
    return told, Surroundings(Rivals(*found[1]), found[2]) if alike else None


def _proof(found: Any, complaint: str) -> Proof:
    started, activator, where, missing, forms = found or (False, "", "", [], [])
    return Proof(started, activator, where, missing, forms, complaint)


def _proof_code() -> str:
    return _PROOF % (TO_RECORD,)


def _armed() -> Dict[str, str]:
    return dict(_environment(), DDP_PROBE="1")


def _environment() -> Dict[str, str]:
    """Our environment without the probe's variables and without the folder that `run` puts first."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("DDP_PROBE")}
    ours = os.path.realpath(locations.templates())
    entries = [entry for entry in env.get("PYTHONPATH", "").split(os.pathsep) if entry and os.path.realpath(entry) != ours]
    env["PYTHONPATH"] = os.pathsep.join(entries)
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    return env


def _read(out: str, err: str, code: int) -> Tuple[Any, str]:
    answers = [line[len(_MARK) :] for line in out.splitlines() if line.startswith(_MARK)]
    said = [line for line in err.splitlines() if line.strip()]
    if not answers:
        ended = say("The child interpreter ended with exit code {code}.", code=code)
        return None, quoted(said[-1]) if said else ended
    complaints = [line for line in said if line.startswith("ddp_probe:")]
    return json.loads(answers[-1]), quoted(complaints[0]) if complaints else ""
