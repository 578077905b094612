# ddp_probe activator, version 4: written by 'python -m ddp_probe install', removed by 'python -m ddp_probe uninstall'.
"""Starts ddp_probe where DDP_PROBE is set, and lets no fault of it reach the program.

If the package is gone, 'python -m ddp_probe_activator uninstall' removes this file and those written with it.
"""

import os
import sys

MARKER = "# ddp_probe activator, version "
END = "# ddp_probe activator, end"  # Begins our last line; in an installed file, the digest of the lines above follows.
HOME = ""

# What starts us goes first, so that a removal cut short leaves nothing that runs.
NAMES = ("ddp_probe.start", "ddp_probe.pth", "sitecustomize.py", "ddp_probe_activator.py")
TEMPORARY = (".ddp_probe-", ".tmp")

_GONE, _LEFT = "removed  %s%s", "left     %s: %s"
_KEPT = ": our lines; what others wrote into it stays"
CHANGED = "it has been changed since install wrote it. Look at it and remove it yourself."

_REMOVED = (
    "The package is gone, and %s is still there. Delete that file, or run 'python -m ddp_probe_activator uninstall',"
    " which removes what starts it, too."
)

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
    except (Exception, SystemExit) as exc:  # SystemExit while site runs ends the interpreter
        _say(_REMOVED % os.path.abspath(__file__) if _is_removed(exc) else ("%s: %s" % (type(exc).__name__, exc))[:300])


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


def _is_removed(exc):
    """Tell whether the package is gone. pip leaves folders with compiled files behind: Python imports them, and finds nothing in them."""
    package = sys.modules.get("ddp_probe")
    if package is None:
        return getattr(exc, "name", None) == "ddp_probe"
    return getattr(package, "__file__", None) is None and all(os.access(folder, os.R_OK | os.X_OK) for folder in package.__path__)


def _say(text):
    """Write one line, once for everything that is started below this process."""
    if os.environ.get("DDP_PROBE_BROKEN"):
        return
    os.environ["DDP_PROBE_BROKEN"] = "1"
    try:  # noqa: SIM105  # contextlib is not loaded at each start
        sys.stderr.write("ddp_probe: not active: %s\n" % " ".join(text.split()))
    except Exception:  # no stderr, or one that is closed
        pass


def sealed(text):
    """Return a template's text with the digest of it in its last line, as it is installed."""
    above = text[: text.rindex(END.encode())]
    return above + b"%s %s\n" % (END.encode(), _digest(above))


def _digest(text):
    import hashlib  # It is not loaded at each start.

    return hashlib.sha256(text).hexdigest()[:16].encode()


def parts(data):
    """Return what stands before our text, our text, and what follows it; None unless our text is byte for byte as install wrote it."""
    start = data.find(MARKER.encode())
    if start < 0 or data[start - 1 : start] not in (b"", b"\n"):
        return None
    number = data[start + len(MARKER) :].split(b":", 1)[0]
    end = data.find(b"\n" + END.encode(), start) + 1
    if end:
        stop = data.find(b"\n", end) + 1
        known = data[end:stop] == b"%s %s\n" % (END.encode(), _digest(data[start:end]))
        return (data[:start], data[start:stop], data[stop:]) if known or number in _WITHOUT_DIGEST else None
    if number not in _WITHOUT_DIGEST:
        return None
    ends = [data.find(last, start) + len(last) for last in _LAST if data.find(last, start) >= 0]
    stop = ends[0] if ends else len(data)
    return data[:start], data[start:stop], data[stop:]


_WITHOUT_DIGEST = (b"0", b"1", b"2")
_LAST = (b"\n_hand_over()\n", b'__import__("ddp_probe_activator").activate()\n')  # Of the two files that others may add to, in these versions.


def _read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def is_ours(path):
    """Tell whether there is a text in this file that install wrote, and that nobody has changed."""
    return parts(_read(path)) is not None


def is_changed(path):
    """Tell whether somebody has changed the text that install wrote into this file."""
    data = _read(path)
    return MARKER.encode() in data and parts(data) is None


def take_out(path):
    """Take our text out of a file. What others wrote into it stays, and if that is nothing, no file does."""
    before, _, after = parts(_read(path)) or (b"", b"", b"")
    if not (before + after).strip():
        _unlink(path)
        return
    place = os.path.realpath(path)
    draft = os.path.join(os.path.dirname(place), "%s%d%s" % (TEMPORARY[0], os.getpid(), TEMPORARY[1]))
    try:
        with open(draft, "xb") as file:
            os.chmod(draft, os.stat(place).st_mode & 0o7777)
            file.write(before + after)
        os.replace(draft, place)
    except BaseException:
        _unlink(draft)
        raise


def remove(folder):
    """Remove what install wrote into a folder and what Python made of it; return the files that went, or that hold nothing of ours now."""
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
            take_out(path)
            gone.append(path)
        if caches:  # an interpreter that started meanwhile has written them again
            remove_caches(folder, stem)
    return gone + remove_temporary(folder)


def said(gone, folders, say=str):
    """Return a line for each file that remove() named, and for each one that it could not know any more."""
    lines = [say(_GONE) % (path, say(_KEPT) if os.path.lexists(path) else "") for path in gone]
    left = [os.path.join(folder, name) for folder in folders for name in NAMES]
    templates = [path for path in left if os.path.exists(os.path.join(os.path.dirname(path), "__init__.py"))]
    changed = [path for path in left if path not in templates and is_changed(path)]
    return lines + [say(_LEFT) % (path, say(CHANGED)) for path in changed]


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
    folder = os.path.dirname(os.path.abspath(__file__))
    gone = remove(folder)
    for line in said(gone, [folder]):
        sys.stdout.write(line + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
# ddp_probe activator, end
