# ddp_probe activator, version 2: written by 'python -m ddp_probe install', removed by 'python -m ddp_probe uninstall'.
"""Starts ddp_probe where DDP_PROBE is set, and lets no fault of it reach the program.

If the package is gone, 'python -m ddp_probe_activator uninstall' removes this file and those written with it.
"""

import os
import sys

MARKER = "# ddp_probe activator, version "
HOME = ""

# What starts us goes first, so that a removal cut short leaves nothing that runs.
NAMES = ("ddp_probe.start", "ddp_probe.pth", "sitecustomize.py", "ddp_probe_activator.py")
TEMPORARY = (".ddp_probe-", ".tmp")

calls = []  # the forms that have found the probe, in their order; the first one has started it


def activate(form="pth"):
    """Start the probe where DDP_PROBE is on; where both forms are installed, the second one finds it started."""
    if os.environ.get("DDP_PROBE", "").strip().lower() in ("", "0", "off", "false", "no"):
        return
    try:
        if not calls:  # also if an earlier call failed: another .pth file may have brought the package since
            _start(os.environ.get("DDP_PROBE_HOME") or HOME)
        if form not in calls:  # in a virtual environment, site reads each .pth file twice
            calls.append(form)
    except ModuleNotFoundError as exc:
        if exc.name != "ddp_probe":  # the package itself is gone: nothing to say
            _say(exc)
    except (Exception, SystemExit) as exc:  # SystemExit while site runs ends the interpreter
        _say(exc)


def _start(home):
    """Import the package, from its home where it is not installed; the home leaves sys.path again."""
    lend = bool(home) and home not in sys.path
    if lend:
        sys.path.append(home)
    try:
        from ddp_probe.activation import start

        start()
    finally:
        if lend and home in sys.path:
            sys.path.remove(home)


def _say(exc):
    """Write one line, once for everything that is started below this process."""
    if os.environ.get("DDP_PROBE_BROKEN"):
        return
    os.environ["DDP_PROBE_BROKEN"] = "1"
    try:
        text = " ".join(("%s: %s" % (type(exc).__name__, exc)).split())
        sys.stderr.write("ddp_probe: not active: %s\n" % text[:300])
    except Exception:  # no stderr, or one that is closed
        pass


def is_ours(path):
    """Tell whether install wrote this file."""
    try:
        with open(path, "rb") as file:
            return file.readline(200).startswith(MARKER.encode())
    except OSError:
        return False


def remove(folder):
    """Remove what install wrote into a folder and what Python made of it; return the files that went."""
    gone = []
    if os.path.exists(os.path.join(folder, "__init__.py")):  # the templates themselves, as `run` puts them on the path
        return gone
    for name in NAMES:
        path = os.path.join(folder, name)
        stem, suffix = os.path.splitext(name)
        ours = is_ours(path)
        caches = suffix == ".py" and (ours or stem == "ddp_probe_activator")
        if caches:
            remove_caches(folder, stem)
        if ours:
            _unlink(path)
            gone.append(path)
        if caches:  # an interpreter that started meanwhile has written them again
            remove_caches(folder, stem)
    return gone + remove_temporary(folder)


def remove_temporary(folder):
    """Remove what an interrupted install left half-written, and nothing that another one is writing."""
    first, last = TEMPORARY
    names = [name for name in _list(folder) if name.startswith(first) and name.endswith(last) and not _runs(name[len(first) : -len(last)])]
    gone = [os.path.join(folder, name) for name in sorted(names)]
    for path in gone:
        _unlink(path)
    return gone


def _runs(pid):
    try:
        os.kill(int(pid), 0)
    except (ValueError, OSError):
        return False
    return int(pid) != os.getpid()


def remove_caches(folder, stem):
    """Remove what was compiled from a file, by this interpreter or another."""
    cache = os.path.join(folder, "__pycache__")
    names = [name for name in _list(cache) if name.startswith(stem + ".") and ".pyc" in name]
    for name in names:
        _unlink(os.path.join(cache, name))
    if names and not _list(cache):
        try:  # noqa: SIM105  # contextlib is not loaded at each start
            os.rmdir(cache)
        except OSError:  # another interpreter has filled it
            pass


def _list(folder):
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _unlink(path):
    try:  # noqa: SIM105  # contextlib is not loaded at each start
        os.unlink(path)
    except FileNotFoundError:
        pass


def _main(arguments):
    if arguments != ["uninstall"]:
        sys.stderr.write("This file starts ddp_probe; nothing is done.\n  what to do: python -m ddp_probe_activator uninstall removes it.\n")
        return 2
    for path in remove(os.path.dirname(os.path.abspath(__file__))):
        sys.stdout.write("removed  %s\n" % path)
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
