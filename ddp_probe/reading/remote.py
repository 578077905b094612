"""Brings files from an object store here, and a file there: any address that fsspec knows, such as s3://, gs://, oss://, hdfs://.

fsspec is imported when an address is named, and by nothing else; the extra `remote` installs it. What is brought here is in a temporary folder,
under its own name, and messages show the address.
"""

import contextlib
import os
import posixpath
import re
from typing import Any, Dict, Iterator, List, Sequence, Set, Tuple

from ddp_probe.reading import find
from ddp_probe.shared.errors import ProbeError, UnusableError
from ddp_probe.shared.masks import mask
from ddp_probe.wording.text import say

_ADDRESS = re.compile(r"[a-z][a-z0-9+.:-]*://")
_MAGIC = re.compile(r"[*?\[]")
_TIMES = ("LastModified", "last_modified", "mtime", "modified", "updated", "created")  # Its names in the file systems of fsspec.
_SHOWN: Dict[str, str] = {}  # Files and folders that were brought here, and their addresses.


def is_address(path: str) -> bool:
    """Return whether a path is an address of another file system."""
    return _ADDRESS.match(path) is not None


def shown(text: str) -> str:
    """Return a text in which what was brought here has its address."""
    for place, address in _SHOWN.items():
        text = text.replace(place, address)
    return text


def brought(paths: Sequence[str], stack: contextlib.ExitStack) -> List[str]:
    """Return the paths, with what is elsewhere brought to a temporary folder that goes when the stack is closed."""
    if not any(map(is_address, paths)):
        return list(paths)
    import tempfile

    scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="ddp_probe-remote-"))
    stack.callback(_forget, scratch)
    here: List[str] = []
    for number, path in enumerate(paths):
        here += _bring(path, os.path.join(scratch, str(number))) if is_address(path) else [path]
    return here


def _forget(scratch: str) -> None:
    for place in [place for place in _SHOWN if place.startswith(scratch)]:
        del _SHOWN[place]


def put(place: str, address: str) -> None:
    """Copy a file there, in one step as a store does it: nobody reads half of it."""
    with _explained(address):
        system, there = _system(address)
        system.put_file(place, there)


def _bring(address: str, folder: str) -> List[str]:
    """Copy a file, a folder, or what matches a pattern; return the places. With a log come its ledger and stacks, and the models of its folder."""
    with _explained(address):
        system, there = _system(address)
        matches = sorted(system.glob(there)) if _MAGIC.search(there) else [there.rstrip("/")]
        parents = list(dict.fromkeys(map(posixpath.dirname, matches)))
        places = {match: os.path.join(folder, str(parents.index(posixpath.dirname(match))), *_named(match)) for match in matches}
        pairs: List[Tuple[str, str, Any]] = []
        for match, place in places.items():
            pairs += [(path, os.path.join(place, *inner), info) for path, inner, info in _files(system, match)]
        if not pairs:
            raise UnusableError(
                what=say("No such file or folder: {path}.", path=address),
                why="No file or pattern matches.",
                what_to_do="List the folder above it.",
            )
        logs = [match for match in matches if find.is_ours(match)]
        for parent in dict.fromkeys(map(posixpath.dirname, logs)):
            beside = os.path.dirname(next(place for match, place in places.items() if posixpath.dirname(match) == parent))
            pairs += _companions(system, parent, beside, {match[: -len("jsonl")] for match in logs})
        _copy(system, pairs)
    store = address[: address.find(there.strip("/"))]  # The scheme, and of some stores the host.
    for match, place in places.items():
        _SHOWN[place] = mask(store + match.lstrip("/"))  # An address may hold a key: s3://KEY:SECRET@bucket
    for match, place in places.items():  # A file in one of these folders is listed first.
        _SHOWN.setdefault(os.path.dirname(place), mask(store + posixpath.dirname(match).lstrip("/")))
    return list(places.values())


def _named(match: str) -> List[str]:
    """Return the last two names of a path: a run's file lies in the folder of the run."""
    return [name if name not in (".", "..") else "_" for name in (posixpath.basename(posixpath.dirname(match)) or "run", posixpath.basename(match))]


def _companions(system: Any, parent: str, folder: str, stems: Set[str]) -> Iterator[Tuple[str, str, Any]]:
    for path, inner, info in _files(system, parent):
        is_model = inner[:1] == ["models"]
        if is_model or (len(inner) == 1 and not find.is_ours(path) and _stems(path) & stems):
            yield path, os.path.join(folder, *inner), info


def _stems(path: str) -> Set[str]:
    """Return the beginnings of a path that end with a dot."""
    return {path[: match.end()] for match in re.finditer(r"\.", path)}


def _files(system: Any, match: str) -> Iterator[Tuple[str, List[str], Any]]:
    """Yield the files at a path or below it, each with its place there. A name in a store may hold any text: none leads out of the folder."""
    for path, info in system.find(match, detail=True).items():
        inner = [part for part in path[len(match) :].split("/") if part]
        if not {".", ".."} & set(inner) and all(part.isprintable() and "\\" not in part for part in inner):
            yield path, inner, info


def _copy(system: Any, pairs: Sequence[Tuple[str, str, Any]]) -> None:
    for _, place, _ in pairs:
        os.makedirs(os.path.dirname(place), exist_ok=True)
    system.get([path for path, _, _ in pairs], [place for _, place, _ in pairs])
    for _, place, info in pairs:
        changed: Any = next((info[name] for name in _TIMES if info.get(name)), None)
        seconds = changed.timestamp() if hasattr(changed, "timestamp") else changed
        if isinstance(seconds, (int, float)):
            os.utime(place, (seconds, seconds))


def _system(address: str) -> Tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs  # type: ignore[import-untyped,unused-ignore]  # It has no types, and is not always installed.
    except ImportError as exc:
        raise UnusableError(
            what=say("{address} cannot be read.", address=address),
            why="fsspec is not installed.",
            what_to_do="pip install 'ddp-probe[remote]', or copy the files here.",
        ) from exc
    system, there = url_to_fs(address)
    return system, str(there)


@contextlib.contextmanager
def _explained(address: str) -> Iterator[None]:
    """Turn an exception of a store into two lines; each store has other exceptions."""
    try:
        yield
    except (ProbeError, KeyboardInterrupt):
        raise
    except Exception as exc:
        why = " ".join(str(exc).split())[:300] or type(exc).__name__
        raise UnusableError(
            what=say("{address} cannot be reached.", address=address),
            why="%s: %s" % (type(exc).__name__, why),
            what_to_do="Try it with fsspec alone, or copy the files here.",
        ) from exc
