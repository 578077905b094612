"""Finds modules, and names in them, by reading files without importing them."""

import ast
import contextlib
import importlib.util
import os
import re
import sys
from functools import lru_cache
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from ddp_probe.shared.regular_files import open_bytes, open_text
from ddp_probe.wording.text import say

PATCHED, MISSING, ABSENT, UNREADABLE = "would be patched", "not installed", "absent", "unreadable"
_METADATA = (".dist-info", ".egg-info")
_BEGINS = r"^%s(?:async def|def|class) %s\b"
_Trees = Dict[str, Optional[ast.Module]]


class Verdict(NamedTuple):
    """What would happen to a target."""

    state: str
    why: str


def version(distribution: str) -> Optional[str]:
    """Return a distribution's version, or None if it is not installed: what importlib.metadata returns, which loads email and much more."""
    wanted = _normal(distribution)
    return next((_version(path) for name, path in _metadata(tuple(sys.path)) if name == wanted), None)


@lru_cache(maxsize=1)
def _metadata(folders: Tuple[str, ...]) -> List[Tuple[str, str]]:
    """Return each folder of metadata with the name of its distribution, in the order of the path."""
    pairs = []
    for folder in folders:
        with contextlib.suppress(OSError):  # A zip file, or a folder that is not there.
            names = [name for name in os.listdir(folder or ".") if name.endswith(_METADATA)]
            pairs += [(_normal(name.rpartition(".")[0].partition("-")[0]), os.path.join(folder, name)) for name in names]
    return pairs


def _version(path: str) -> Optional[str]:
    for file in (os.path.join(path, "METADATA"), os.path.join(path, "PKG-INFO"), path):
        with contextlib.suppress(OSError), open_text(file, "replace") as lines:
            return next((line.partition(":")[2].strip() for line in lines if line.lower().startswith("version:")), None)
    return None


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name).lower()


def module_file(name: str) -> Optional[str]:
    """Return the file that defines a module, or None; only the top-level package is located, and nothing is imported."""
    top, *rest = name.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    if not rest:
        return spec.origin
    for folder in spec.submodule_search_locations or ():
        stem = os.path.join(folder, *rest)
        for path in (os.path.join(stem, "__init__.py"), stem + ".py"):
            if os.path.isfile(path):
                return path
    return None


def judge(module: str, qualname: str, trees: _Trees) -> Verdict:
    """Return whether a target exists; ``trees`` caches parsed files."""
    path = module_file(module)
    if path is None:
        return _no_module(module)
    if _stands(path, qualname):
        return Verdict(PATCHED, "")
    if path not in trees:
        trees[path] = _parse(path)
    tree = trees[path]
    if tree is None:
        return Verdict(UNREADABLE, say("{path} cannot be parsed.", path=path))
    owner, _, name = qualname.rpartition(".")
    if not owner:
        return Verdict(PATCHED, "") if _holds(tree.body, name) else _no_name(module, qualname)
    kind = _class(tree.body, owner)
    if kind is None:
        return _no_name(module, qualname)
    if _holds(kind.body, name):
        return Verdict(PATCHED, "")
    if kind.bases:
        return Verdict(PATCHED, say("{owner} inherits it.", owner=owner))
    return _no_name(module, qualname)


def _no_module(module: str) -> Verdict:
    top = module.split(".", maxsplit=1)[0]
    if module_file(top) is None:
        return Verdict(MISSING, say("{package} is not installed.", package=top))
    return Verdict(ABSENT, say("This version has no module {module}.", module=module))


def _no_name(module: str, qualname: str) -> Verdict:
    return Verdict(ABSENT, say("This version's {module} has no {name}.", module=module, name=qualname))


def _stands(path: str, qualname: str) -> bool:
    """Return whether a line of the file begins this definition: most do, and parsing a module of torch takes ten times as long."""
    try:
        with open_text(path, "replace") as file:
            text = file.read()
    except OSError:
        return False
    owner, _, name = qualname.rpartition(".")
    if not owner:
        return re.search(_BEGINS % ("", name), text, re.MULTILINE) is not None
    kind = re.search(r"^class %s\b.*\n(?:(?:[ \t)].*)?\n)*" % owner, text, re.MULTILINE)
    return kind is not None and re.search(_BEGINS % ("    ", name), kind[0], re.MULTILINE) is not None


def _parse(path: str) -> Optional[ast.Module]:
    try:
        with open_bytes(path) as file:
            return ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):  # a compiled module, or one of another Python
        return None


def _statements(body: List[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module or a class, including those under if, try and with."""
    for node in body:
        yield node
        for field in ("body", "orelse", "finalbody", "handlers"):
            inner = [] if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) else getattr(node, field, [])
            for part in inner:
                yield from _statements(part.body if isinstance(part, ast.ExceptHandler) else [part])


def _class(body: List[ast.stmt], name: str) -> Optional[ast.ClassDef]:
    return next((node for node in _statements(body) if isinstance(node, ast.ClassDef) and node.name == name), None)


def _holds(body: List[ast.stmt], name: str) -> bool:
    return any(name in _bound(node) for node in _statements(body))


def _bound(node: ast.stmt) -> List[str]:
    """Return the names bound by a statement."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [alias.asname or alias.name for alias in node.names]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []
