"""Compiles device.cpp once per machine, torch and source, and loads it."""

import ctypes
import fcntl
import hashlib
import os
import subprocess
import tempfile
from pathlib import Path
from typing import List

import torch

_SOURCE = Path(__file__).with_name("device.cpp")
_OLD = torch.__version__.startswith("1.")
# -O1: the code only passes calls on, and more costs seconds of compiling. -w: torch's headers warn by the page.
_FLAGS = ["-O1", "-shared", "-fPIC", "-w", *(["-std=c++14", "-DOLD_TORCH"] if _OLD else ["-std=c++20"])]


def _folder() -> Path:
    """Outside the source tree, which may be read-only; kept over runs where there is a home to keep it in."""
    for base in [os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), tempfile.gettempdir()]:
        folder = Path(base, "ddp_probe_tests")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(str(folder), os.W_OK):
            return folder
    raise OSError("No folder for the compiled device is writable: set XDG_CACHE_HOME or TMPDIR")


def _command(target: str) -> List[str]:
    root = Path(torch.__file__).parent
    abi = "-D_GLIBCXX_USE_CXX11_ABI=%d" % torch._C._GLIBCXX_USE_CXX11_ABI
    where = ["-I%s" % (root / "include"), "-L%s" % (root / "lib")]
    return ["g++", *_FLAGS, abi, *where, str(_SOURCE), "-o", target, "-ltorch_cpu", "-lc10"]


def path() -> Path:
    """Where the compiled library of this torch and this source is, or will be."""
    digest = hashlib.sha256(_SOURCE.read_bytes() + " ".join(_FLAGS).encode()).hexdigest()[:16]
    return _folder() / ("gcu-torch-%s-%s.so" % (torch.__version__, digest))


def build() -> Path:
    """Compile where that has not been done. Ranks that start together wait for the first of them; a torn file is never seen."""
    target = path()
    if target.exists():
        return target
    with open(str(target) + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            part = "%s.%d.part" % (target, os.getpid())
            done = subprocess.run(_command(part), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            if done.returncode:
                raise RuntimeError("The simulated accelerator does not compile:\n" + done.stdout)
            os.replace(part, str(target))
    return target


library = ctypes.CDLL(str(build()))
library.gcu_memory_allocated.restype = ctypes.c_int64
library.gcu_max_memory_allocated.restype = ctypes.c_int64
