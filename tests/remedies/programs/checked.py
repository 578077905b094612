"""Runs every function check_* of a program in a folder of its own, and prints what came of each; for programs that hold many small checks."""

import glob
import json
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from ddp_probe import activation
from ddp_probe.traced.patching.changes import Plan


class Skipped(Exception):  # noqa: N818  # it is no error
    """What a check needs cannot be had here."""


MADE = []  # the remedy of each change that was made, in order


class _Changes(list):
    """The changes of one call; each is noted here once it has been made."""

    def append(self, made):
        """Note it."""
        MADE.append(made[0].partition(".")[2])
        super().append(made)


def _start(self, *args, plain=Plan.__init__):
    plain(self, *args)
    self._changes = _Changes()


Plan.__init__ = _start


def recorded(*kinds):
    """Return what the remedies of this process have recorded since the last time that somebody asked."""
    events = []
    for path in glob.glob(os.path.join(os.environ["DDP_PROBE_DIR"], "latest", "rank*.jsonl")):
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        first = recorded.read.get(path, 0)
        recorded.read[path] = len(lines)
        events += [json.loads(line) for line in lines[first:]]
    wanted = kinds or ("remedy.applied", "remedy.declined", "probe.fault")
    return [event for event in events if event["event"] in wanted]


recorded.read = {}


def applied():
    """Return the names of the remedies that were applied since the last time that somebody asked; none may have declined or failed."""
    events = recorded()
    assert all(event["event"] == "remedy.applied" for event in events), events
    return [event["remedy"] for event in events]


def declined():
    """Return why remedies did nothing since the last time that somebody asked; none may have been applied or failed."""
    events = recorded()
    assert all(event["event"] == "remedy.declined" for event in events), events
    return [event["because"] for event in events]


def failure(call, *args, **kwargs):
    """Return the type and the text of what a call raises."""
    try:
        call(*args, **kwargs)
    except BaseException as exc:
        return type(exc), str(exc), exc.__cause__, type(exc.__context__)
    raise AssertionError("%s has not failed." % call)


def same_failure(wrapped, *args, **kwargs):
    """Make a call with and without remedies; both have to fail alike. Returns the text."""
    plain = failure(wrapped._self_original, *args, **kwargs)
    overridden = failure(wrapped, *args, **kwargs)
    assert plain == overridden, (plain, overridden)
    return overridden[1]


def saved_elsewhere(state, path, location="cuda:0"):
    """Save what torch.save writes where the tensors live on another device."""
    serialization = sys.modules["torch.serialization"]
    serialization.register_package(0, lambda storage: location, lambda storage, location: None)
    try:
        serialization.save(state, path)
    finally:
        del serialization._package_registry[0]


def aged(path, by=3600):
    """Make a file look as if nobody had written it for a while."""
    os.utime(str(path), (time.time() - by, time.time() - by))


def _applied_lines():
    paths = sorted(glob.glob(os.path.join(os.environ["DDP_PROBE_DIR"], "latest", "rank*.jsonl")))
    lines = [line for path in paths for line in Path(path).read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if '"event":"remedy.applied"' in line]


def _compare(events, made):
    """Each change has an event; from the 21st of one call on only some have."""
    assert set(events) == set(made), (events, made)
    assert all(events[name] == count for name, count in made.items() if count <= 20), (events, made)


def _outcome(check):
    folder = tempfile.mkdtemp()  # not below pytest's own, where nobody but its user may go
    os.chmod(folder, 0o755)
    if not os.geteuid():
        os.chown(folder, 65534, 65534)
    os.chdir(folder)
    recorded()
    session, first = activation.lifecycle.lifecycle.session, len(_applied_lines())
    user = os.geteuid()  # A check may drop its privileges, and can then not read the log.
    MADE.clear()
    # Each check sees everything, even what is said once or, if it happens often, rarely.
    for probe in session._probes.values() if session is not None else ():
        getattr(probe, "_said", set()).clear()
        getattr(probe, "_times", {}).clear()
    try:
        check()
        if session is not None and session is activation.lifecycle.lifecycle.session and os.geteuid() == user:
            _compare(Counter(json.loads(line)["remedy"] for line in _applied_lines()[first:]), Counter(MADE))
        litter = [name for name in os.listdir(folder) if name.startswith(".ddp_probe")]
        return "left behind: %s" % litter if litter else ""
    except Skipped as exc:
        return "skipped: %s" % exc
    except BaseException:
        return traceback.format_exc()
    finally:
        os.chdir("/")
        shutil.rmtree(folder, ignore_errors=True)


def main(namespace):
    """Run those that are named, or all of them."""
    checks = {name: value for name, value in namespace.items() if name.startswith("check_")}
    print(json.dumps({name: _outcome(check) for name, check in checks.items() if name in sys.argv[1:] or not sys.argv[1:]}))
