"""Imports the probe's modules and what they need from where that is installed, whatever lies beside the script.

The folder of the script, the working directory and PYTHONPATH come first for a program, and a wrapt.py there is the job's affair: it is never
executed by us. What we loaded stays out of the job's way as well, wherever the job's import of that name would find something else.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys
import threading

from ddp_probe.shared.ours import ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import FrameType, ModuleType
    from typing import Any, Dict, List, Optional, Sequence, Set

_NEEDED = ("wrapt", "msgspec", "typing_extensions")
_HOME = os.path.dirname(os.path.dirname(os.path.dirname((lambda: None).__code__.co_filename)))
_STANDARD = os.path.dirname(os.__file__)
_METADATA = (".dist-info", ".egg-info")

_open: Dict[int, FrameType] = {}  # by thread: the frame that our imports are made in
_served: Set[str] = set()  # top-level names that were found for us and have not been looked at since
_kept: Dict[str, ModuleType] = {}  # ours that the job would not find under these names
_theirs: Dict[str, Optional[ModuleType]] = {}  # what stands under these names while one of our imports is open
_listed: Dict[str, List[str]] = {}
_vetted: Dict[str, ModuleType] = {}  # under these names: known to come from where it is installed
_site: List[str] = []
_is_site: Dict[str, bool] = {}  # by folder: one of those


class own_modules:  # noqa: N801  # a separate statement: with own_modules():
    """While this is open, what this thread imports comes from where it is installed."""

    def __enter__(self) -> None:
        self._outermost = not _is_open()
        if self._outermost:
            _open[threading.get_ident()] = sys._getframe(1)
            _put_ours_in()
            if _finder not in sys.meta_path:
                sys.meta_path.insert(0, _finder)

    def __exit__(self, *_: object) -> None:
        if self._outermost:
            _open.pop(threading.get_ident(), None)
            if not _open and _finder in sys.meta_path:
                sys.meta_path.remove(_finder)
            _keep_ours_apart()


class jobs_modules:  # noqa: N801  # the same
    """Inside of the other: import as the job does. For what third parties add."""

    def __enter__(self) -> None:
        self._frame = _open.pop(threading.get_ident(), None)

    def __exit__(self, *_: object) -> None:
        if self._frame is not None:
            _open[threading.get_ident()] = self._frame


def _is_open() -> bool:
    """Tell whether this thread is inside; what a signal handler has cut short is known by its frame, which runs no more."""
    wanted = _open.get(threading.get_ident())
    frame: Optional[FrameType] = sys._getframe(1) if wanted is not None else None
    while frame is not None and frame is not wanted:
        frame = frame.f_back
    return frame is not None


def _is_asked_by_us() -> bool:
    """Tell whether an import is ours; a signal handler of the job's may import its own modules in the middle of them."""
    wanted = _open.get(threading.get_ident())
    frame: Optional[FrameType] = sys._getframe(2) if wanted is not None else None
    trusted = (*_site_folders(), _HOME, _STANDARD, "<frozen ")
    while frame is not None and frame is not wanted and frame.f_code.co_filename.startswith(trusted):
        frame = frame.f_back
    return frame is not None and frame is wanted


class _Finder:
    """Answers for top-level modules that our thread asks for, and for nobody else."""

    def find_spec(self, name: str, path: Optional[Sequence[str]] = None, _: Optional[ModuleType] = None) -> Optional[ModuleSpec]:
        """Find it where it is installed, or nowhere."""
        if path is not None or name in sys.builtin_module_names or name == "ddp_probe" or not _is_asked_by_us():
            return None
        spec = _standard(name) or _installed(name) or _by_others(name)
        if spec is None:
            raise ModuleNotFoundError("No module named %r" % name, name=name)
        _served.add(name)
        return spec


_finder: Any = _Finder()


def installed(name: str) -> Optional[ModuleSpec]:
    """Find a top-level module where it is installed, whatever the job has under that name; None if it is not installed."""
    return _installed(name) or _by_others(name)


def _standard(name: str) -> Optional[ModuleSpec]:
    entries = [entry for entry in sys.path if entry in (_STANDARD, os.path.join(_STANDARD, "lib-dynload")) or _is_zip_of_python(entry)]
    return _loadable(importlib.machinery.PathFinder.find_spec(name, entries))


def _is_zip_of_python(entry: Any) -> bool:
    return type(entry) is str and entry.endswith(".zip") and os.path.dirname(entry) == os.path.dirname(_STANDARD)


def _installed(name: str) -> Optional[ModuleSpec]:
    for entry in [*sys.path, _HOME]:
        if type(entry) is str and entry:
            spec = _loadable(importlib.machinery.PathFinder.find_spec(name, [entry]))
            if spec is not None and _is_installed(name, entry):
                return spec
    return None


def _by_others(name: str) -> Optional[ModuleSpec]:
    """Ask what editable installations put on sys.meta_path."""
    for finder in list(sys.meta_path):
        find: Any = getattr(finder, "find_spec", None)
        if finder is not _finder and finder is not importlib.machinery.PathFinder and find is not None:
            spec = _loadable(find(name, None))
            if spec is not None:
                return spec
    return None


def _loadable(spec: Optional[ModuleSpec]) -> Optional[ModuleSpec]:
    return spec if spec is not None and spec.loader is not None else None  # a folder without __init__.py has no loader


def _is_installed(name: str, entry: str) -> bool:
    """Return whether packages have been installed into a folder, rather than somebody working in it: it holds the record of what was installed."""
    if _is_site_folder(entry):
        return True
    if entry not in _listed:
        try:
            _listed[entry] = [each.lower().replace("-", "_") for each in os.listdir(entry) if each.endswith(_METADATA)]
        except ours(OSError):
            _listed[entry] = []
    return any(each.startswith((name.lower() + "_", name.lower() + ".")) for each in _listed[entry])


def _is_site_folder(entry: str) -> bool:
    """Tell whether something is installed into this folder as a whole; asked of the same few folders at each import, so a full path is known."""
    found = _is_site.get(entry)
    if found is None:
        found = os.path.realpath(entry) in _site_folders()
        if _site and os.path.isabs(entry):
            _is_site[entry] = found
    return found


def _site_folders() -> List[str]:
    if _site:
        return _site
    site: Any = sys.modules.get("site")
    found = [_HOME]
    for ask in ("getsitepackages", "getusersitepackages"):
        answer: Any = getattr(site, ask, list)()
        found += [answer] if type(answer) is str else answer
    found = [os.path.realpath(folder) for folder in found]
    if site is not None:  # with python -S it may come later
        _site[:] = found
    return found


def _put_ours_in() -> None:
    """Let our names mean ours: hide what the job has loaded under them from its own folders."""
    for name in _NEEDED:
        module = sys.modules.get(name)
        if module is None or name in _kept or module is _vetted.get(name):
            continue
        if not _comes_from_where_it_is_installed(name, module):
            _hide(name)
        elif type(getattr(module, "__file__", None)) is str:
            _vetted[name] = module
    for name, module in list(_kept.items()):
        if sys.modules.get(name) is not module:
            _theirs[name] = sys.modules.get(name)
            sys.modules[name] = module


def _comes_from_where_it_is_installed(name: str, module: ModuleType) -> bool:
    file: Any = getattr(module, "__file__", None)
    if type(file) is not str:
        return True  # somebody's stand-in, as tests make them; or one that is being imported
    folder = os.path.dirname(file)
    folder = os.path.dirname(folder) if os.path.basename(file).startswith("__init__.") else folder
    return _is_installed(name, folder) or _loadable(importlib.machinery.PathFinder.find_spec(name, [folder])) is None


def _hide(top: str) -> None:
    for name in _below(top):
        _theirs[name] = sys.modules.pop(name)


def _below(top: str) -> List[str]:
    return [name for name in list(sys.modules) if name == top or name.startswith(top + ".")]


def _keep_ours_apart() -> None:
    """Give the job its names back; take out of sys.modules what it would not have found there itself."""
    tops = [name for name in _served if name in sys.modules]
    others = [name for name in tops if not _is_same_for_the_job(name)]
    if others or _theirs:
        # Whoever of ours has loaded another's name has it inside: the job's wrapt is to be made with the job's modules.
        others += [name for name in tops if _standard(name) is None and name not in others]
    for top in others:
        for name in _below(top):
            _kept[name] = sys.modules.pop(name)
    _served.clear()
    for name in list(_kept):
        sys.modules.pop(name, None)
    while _theirs:
        name, module = _theirs.popitem()
        if module is not None:
            sys.modules[name] = module


def _is_same_for_the_job(name: str) -> bool:
    ours: Any = getattr(sys.modules[name], "__spec__", None)
    for finder in list(sys.meta_path):
        find: Any = getattr(finder, "find_spec", None)
        spec = find(name, None) if find is not None and finder is not _finder else None
        if spec is not None:
            return bool(ours is not None and spec.origin == ours.origin)
    return False
