"""Every DDP_PROBE_* variable: its name, default, parser and meaning, declared once.

Every interpreter of a job imports it, so it must be cheap: importing typing alone would cost 5 ms per start.
``docs/settings.md`` is printed from it.
"""

from __future__ import annotations

import os

from ddp_probe.shared import declared
from ddp_probe.shared.ours import ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import tzinfo
    from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

_OFF = ("", "0", "off", "false", "no")


def _switch(text: str) -> bool:
    return text.strip().lower() not in _OFF


def _text(text: str) -> str:
    return text.strip()


def _folder(text: str) -> str:
    """Parse a path; a shell does not expand the ~ of NAME=~/x in quotes, in a file, or after `env`."""
    return os.path.expanduser(text.strip())


def _choice(*allowed: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        word = text.strip().lower()
        if word not in allowed:
            raise ValueError("one of " + ", ".join(allowed))
        return word

    return parse


def _line(text: str) -> str:
    """Parse FILE:LINE; empty: no line."""
    file, _, line = text.strip().rpartition(":")
    if text.strip() and not (file and line.isascii() and line.isdigit()):
        raise ValueError("a file and a line, such as train.py:23")
    return text.strip()


def _language(text: str) -> str:
    """Parse en or zh; an empty string leaves the choice to the locale."""
    return _choice("en", "zh")(text) if text.strip() else ""


def _zone(text: str) -> Optional[tzinfo]:
    """Parse UTC, an offset or the name of a time zone; an empty string leaves the choice to the host."""
    word = text.strip()
    if not word:
        return None
    from datetime import timedelta, timezone

    if word.upper() in ("UTC", "Z"):
        return timezone.utc
    hours, _, minutes = word[1:].partition(":")
    try:
        if word[0] in "+-":
            offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
            return timezone(offset if word[0] == "+" else -offset)
        from zoneinfo import ZoneInfo

        return ZoneInfo(word)
    except ours(ImportError, ValueError, LookupError, OSError):
        forms = "UTC, an offset such as +08:00, or, from Python 3.9 on, a name such as Asia/Shanghai"
        raise ValueError(forms) from None


def _ledger(text: str) -> bool:
    """Parse records or off; 1 and 0 are accepted too."""
    word = text.strip().lower()
    if word not in ("records", "1", *_OFF):
        raise ValueError("records or off")
    return word not in _OFF


_LEAST_BYTES, _MOST_BYTES = 1 << 16, 1 << 40
"""The first line of a file alone may take some ten thousand; and nobody reads a log of more than a terabyte."""
_LEAST_SECONDS, _MOST_SECONDS = 0.1, 1e9
"""What is done again and again is not done more often: the watcher wakes four times in DDP_PROBE_HANG_AFTER."""


def _size(text: str) -> int:
    """Parse a number of bytes, optionally with the suffix k, m or g."""
    word = text.strip().lower()
    factor = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}.get(word[-1:], 1)
    try:
        value = int(word if factor == 1 else word[:-1]) * factor
    except ours(ValueError):
        value = 0
    if not _LEAST_BYTES <= value <= _MOST_BYTES:
        raise ValueError("a number of bytes from %d to %d, or one with k, m or g" % (_LEAST_BYTES, _MOST_BYTES))
    return value


def _umask(text: str) -> Optional[int]:
    """Parse a umask, as octal digits."""
    if not text.strip():
        return None
    try:
        value = int(text.strip(), 8)
    except ours(ValueError):
        value = -1
    if not 0 <= value <= 0o777:
        raise ValueError("octal digits such as 027")
    return value


REMEDIES: Tuple[str, ...] = declared.REMEDIES
"""Every remedy, in the order in which they are applied to one call; each declares itself in its file in ddp_probe/traced/remedies."""


def _remedies(text: str) -> Tuple[str, ...]:
    """Parse a comma-separated list of names; auto means all of them."""
    names = [word.strip().lower() for word in text.split(",") if word.strip()]
    if names in ([], ["off"], ["0"]):
        return ()
    if any(name not in REMEDIES and name != "auto" for name in names):
        raise ValueError("auto, or some of " + ", ".join(REMEDIES))
    return REMEDIES if "auto" in names else tuple(name for name in REMEDIES if name in names)


def _seconds(text: str) -> Optional[float]:
    """Parse a number of seconds, optionally with the suffix s, m or h."""
    word = text.strip().lower()
    if not word:
        return None
    factor = {"s": 1.0, "m": 60.0, "h": 3600.0}.get(word[-1:])
    try:
        value = float(word if factor is None else word[:-1]) * (factor or 1.0)
    except ours(ValueError):
        value = 0.0
    if not _LEAST_SECONDS <= value <= _MOST_SECONDS:
        raise ValueError("a number of seconds from %g to %.0f, or one with s, m or h" % (_LEAST_SECONDS, _MOST_SECONDS))
    return value


def _patience(text: str) -> Optional[float]:
    """Parse a number of seconds; None for off."""
    if text.strip().lower() in _OFF:
        return None
    try:
        return _seconds(text)
    except ours(ValueError) as exc:
        raise ValueError("%s; or off" % exc) from None


class Setting:
    """One environment variable, set by the user or by the probe itself."""

    __slots__ = ("default", "doc", "internal", "name", "parse")

    def __init__(self, name: str, default: str, parse: Callable[[str], Any], doc: str, internal: bool = False) -> None:
        self.name = name
        self.default = default
        self.parse = parse
        self.doc = doc
        self.internal = internal


PROBE = Setting(
    "DDP_PROBE",
    "",
    _switch,
    "1 turns the probe on in every Python process with this environment; unset, 0 or off: nothing happens.",
)
DIR = Setting(
    "DDP_PROBE_DIR",
    "",
    _folder,
    "Folder of all runs. Default: ddp_probe_runs in the folder from which the job is launched.",
)
ECHO = Setting(
    "DDP_PROBE_ECHO",
    "warn",
    _choice("off", "warn", "all"),
    "What to print to stderr: off, warn (a placement that is about to fail), or all (one line per event).",
)
REPORT = Setting(
    "DDP_PROBE_REPORT",
    "brief",
    _choice("off", "brief"),
    "What the launcher prints to stderr after a failed launch and while its ranks hang: brief (one line per finding), or off.",
)
STRICT = Setting(
    "DDP_PROBE_STRICT",
    "",
    _switch,
    "1 lets internal faults of the probe raise into the job. For the project's own tests.",
)
MAX_BYTES = Setting(
    "DDP_PROBE_MAX_BYTES",
    "64m",
    _size,
    "Maximum bytes that one process writes; then its file ends with a note. A number, optionally with k, m or g; 64k at least, 1024g at most.",
)
UMASK = Setting(
    "DDP_PROBE_UMASK",
    "",
    _umask,
    "Who else may read the files: a umask such as 027. Default: nobody, or the group if the folder of runs has the set-group-ID bit.",
)
FIX = Setting(
    "DDP_PROBE_FIX",
    "",
    _remedies,
    "Remedies to apply at start-up: auto, or a comma-separated list of names. Unset: nothing is ever changed.",
)
DEVICE = Setting("DDP_PROBE_DEVICE", "", _text, "For the remedies: the device type of the cards, such as gcu or xla. Default: detected.")
BACKEND = Setting(
    "DDP_PROBE_BACKEND",
    "",
    _text,
    "For the remedies: the backend of the process group. Default: the vendor's if it is registered, else gloo.",
)
TIMEOUT = Setting("DDP_PROBE_TIMEOUT", "", _seconds, "For the remedies: the process group's timeout in seconds, or with s, m or h; 0.1 at least.")
LEDGER = Setting(
    "DDP_PROBE_LEDGER",
    "records",
    _ledger,
    "records: each rank keeps a record of every collective in a small file beside its log. off: it keeps none.",
)
HANG_AFTER = Setting(
    "DDP_PROBE_HANG_AFTER",
    "60",
    _patience,
    "If a rank makes no progress for this long, it writes hang.suspected with all stacks; if none does, the launcher says so on stderr. Seconds, or "
    "with s, m or h, 0.1 at least; off: nothing watches. Time in which the host or the process was paused does not count.",
)
SLOW = Setting(
    "DDP_PROBE_SLOW",
    "10",
    _patience,
    "A collective, or the wait for its work, that takes longer than this is written as dist.collective. "
    "Seconds, or with s, m or h, 0.1 at least; off: none for this reason.",
)
VALUES = Setting(
    "DDP_PROBE_VALUES",
    "on",
    _choice("off", "on", "all"),
    "on: process.end after an exception holds plain values of local names in the job's frames: numbers, flags, lengths and shapes. So do "
    "hang.suspected and stacks from Python 3.13 on; all: before it as well, read from the interpreter's memory. report then shows what a condition "
    "that took ranks apart compared. off: none.",
)
WATCH = Setting(
    "DDP_PROBE_WATCH",
    "",
    _line,
    "train.py:23 writes the values of the names in that statement each time a rank reaches the line, as watch.line: the first 1000 times, then the "
    "times that are powers of two. Before Python 3.12 the line must be in a function.",
)
STATE_EVERY = Setting(
    "DDP_PROBE_STATE_EVERY",
    "30",
    _patience,
    "How often each rank writes device.state while nothing else happens, if something has changed; sooner at first. Seconds, or with s, m or h, "
    "0.1 at least; off: no device.state at all.",
)
CARDS = Setting(
    "DDP_PROBE_CARDS",
    "off",
    _patience,
    "How often the launcher asks the vendor's tool (efsmi, nvidia-smi, npu-smi and others) for the load of the cards, once for each host. Seconds, "
    "or with s, m or h, 0.1 at least; off: it starts no such program.",
)
LANG = Setting(
    "DDP_PROBE_LANG",
    "",
    _language,
    "The language that report, explain, watch, checkpoint and doctor print for a person: en or zh. Unset: zh if the first of LC_ALL, "
    "LC_MESSAGES and LANG that is set begins with zh, else en. Logs, JSON and the other forms for programs are in English.",
)
RULES = Setting(
    "DDP_PROBE_RULES",
    "",
    _folder,
    "Folder of a site's own rules: TOML files, as in docs/site-rules.md.",
)
TZ = Setting(
    "DDP_PROBE_TZ",
    "",
    _zone,
    "The time zone of times that are printed for a person: UTC, an offset such as +08:00, or, from "
    "Python 3.9 on, a name such as Asia/Shanghai. Unset: that of the host, which TZ changes. Files, "
    "JSON and the other forms for programs have UTC.",
)
RUN = Setting("DDP_PROBE_RUN", "", _text, "The run's folder. The launcher sets it for its children.", internal=True)
ORIGIN = Setting(
    "DDP_PROBE_ORIGIN",
    "",
    _text,
    "The run's folder for children of multiprocessing. Set by a program without a launcher.",
    internal=True,
)
ARMED = Setting(
    "DDP_PROBE_ARMED",
    "",
    _text,
    "The armed process, as pid:RANK:LOCAL_RANK, so that processes that it starts know that they are helpers.",
    internal=True,
)
HOLDER = Setting(
    "DDP_PROBE_HOLDER",
    "",
    _text,
    "The launcher that holds the memory of its ranks' ledgers, by its pid.",
    internal=True,
)
BROKEN = Setting(
    "DDP_PROBE_BROKEN",
    "",
    _switch,
    "The probe failed to start in a parent process, which reported it; child processes do not report it again.",
    internal=True,
)
HOME = Setting(
    "DDP_PROBE_HOME",
    "",
    _text,
    "The folder of the package, for interpreters in which it is not installed. Set by `run`.",
    internal=True,
)

SETTINGS: Tuple[Setting, ...] = (
    PROBE,
    DIR,
    ECHO,
    REPORT,
    STRICT,
    MAX_BYTES,
    UMASK,
    FIX,
    DEVICE,
    BACKEND,
    TIMEOUT,
    LEDGER,
    HANG_AFTER,
    SLOW,
    VALUES,
    WATCH,
    STATE_EVERY,
    CARDS,
    LANG,
    RULES,
    TZ,
    RUN,
    ORIGIN,
    ARMED,
    HOLDER,
    BROKEN,
    HOME,
)


def get(setting: Setting, environ: Optional[Mapping[str, str]] = None) -> Any:
    """Return the parsed value, or the default if the variable is unset or invalid."""
    text = (os.environ if environ is None else environ).get(setting.name)
    if text is None or not text.strip():
        text = setting.default
    try:
        return setting.parse(text)
    except ours(ValueError):
        return setting.parse(setting.default)


def mistakes(environ: Optional[Mapping[str, str]] = None) -> Dict[str, str]:
    """Return the mistakes in the variables that are set: name to sentence."""
    env = os.environ if environ is None else environ
    known = {setting.name: setting for setting in SETTINGS}
    found = {}
    for name in sorted(n for n in env if n.startswith("DDP_PROBE")):
        if name not in known:
            found[name] = "No setting has this name."
            continue
        try:
            if env[name].strip():
                known[name].parse(env[name])
        except ours(ValueError) as exc:
            found[name] = "The value must be %s." % exc
    return found


_SHOWN = 40


def replaced(environ: Optional[Mapping[str, str]] = None) -> List[str]:
    """Return a sentence for each setting whose value is not used, with the value and what is used instead; FIX has its own."""
    env = os.environ if environ is None else environ
    wrong = mistakes(env)
    return [
        "%s is %s. %s %s is used." % (setting.name, env[setting.name].strip()[:_SHOWN], wrong[setting.name], setting.default or "The default")
        for setting in SETTINGS
        if setting.name in wrong and setting is not FIX
    ]
