"""Virtual environments of real interpreters, each holding a copy of the package that a test may break.

make_venv      make_venv(which="own", system=False) -> Venv. which: own, oldest, newest, debian.
nobodys_venv   a Venv that another user can reach, whose as_nobody(args, **extra) runs it as that user.
"""

import fcntl
import hashlib
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Union

import base_python
import pytest

from ddp_probe.activation.installer import child

_DEBIAN = "/usr/bin/python3"
ASK = "import sys; print(getattr(sys.modules.get('ddp_probe.activation'), 'state', lambda: 'off')() != 'off')"


class Venv:
    """A virtual environment with the package in its site-packages, and empty modules in place of its dependencies."""

    def __init__(self, path: Path, env: Callable[..., Dict[str, str]]) -> None:
        self.env = env
        self.path = path
        self.python = str(path / "bin" / "python")
        self.site = next(path.glob("lib/python3.*/site-packages"))

    def run(
        self, code_or_args: Union[str, Sequence[str]], cwd: Optional[Path] = None, stdin: Optional[bytes] = None, **extra: Optional[str]
    ) -> "subprocess.CompletedProcess[str]":
        """Run code or arguments in it, in a clean environment plus extra."""
        args = ["-c", code_or_args] if isinstance(code_or_args, str) else list(code_or_args)
        env = self.env(**{"PYTHONPATH": None, "DDP_PROBE_STRICT": None, **extra})
        return subprocess.run([self.python, *args], env=env, cwd=cwd or os.sep, capture_output=True, text=True, timeout=60, check=False)

    def as_nobody(self, args: Sequence[str], **extra: Optional[str]) -> "subprocess.CompletedProcess[str]":
        """Run it as a user whom permission bits bind: root passes them over."""
        env = self.env(**{"PYTHONPATH": None, "DDP_PROBE_STRICT": None, "HOME": os.sep, **extra})
        command = [self.python, *args]
        return subprocess.run(command, env=env, cwd=os.sep, capture_output=True, text=True, timeout=60, check=False, preexec_fn=_become_nobody)

    def probe(self, *args: str, **extra: Optional[str]) -> "subprocess.CompletedProcess[str]":
        """Run a command of the probe."""
        return self.run(["-m", "ddp_probe", *args], **extra)

    def install(self, via: str = "auto") -> None:
        """Install, and insist."""
        done = self.probe("install", "--via", via)
        assert done.returncode == 0, done.stderr

    def started(self, *options: str, **extra: Optional[str]) -> str:
        """Start an interpreter with the probe on; return whether it was started, after whatever it wrote to stderr."""
        done = self.run([*options, "-c", ASK], **{"DDP_PROBE": "1", **extra})
        assert done.returncode == 0, done.stderr
        return done.stderr + done.stdout.strip()

    def tree(self) -> Dict[str, str]:
        """Return the hash of every file, and every folder."""
        return tree(self.site)


def _become_nobody() -> None:
    if os.getuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.setgroups([])
        os.setgid(nobody.pw_gid)
        os.setuid(nobody.pw_uid)


def tree(folder: Path) -> Dict[str, str]:
    """Return the hash of every file below a folder, and every folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder" for path in folder.rglob("*")
    }


def copy_package(repo: Path, site: Path) -> None:
    """Put the package into a site-packages as a wheel would."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(repo / "ddp_probe", site / "ddp_probe", ignore=ignore)
    shutil.copytree(repo / "sitecustomize_templates", site / "ddp_probe" / "sitecustomize_templates", ignore=ignore)


def _base(which: str, own: str, interpreters: List[Any]) -> str:
    if which == "own":
        return own
    if which == "debian":
        if not os.path.exists("/etc/debian_version") or not os.access(_DEBIAN, os.X_OK):
            pytest.skip("This machine has no Python of Debian's.")
        return _DEBIAN
    others = [found.path for found in interpreters if not found.path.startswith("/usr/bin/")]
    if not others:
        pytest.skip("This machine has no Python besides Debian's.")
    return others[0 if which == "oldest" else -1]


def _build(path: Path, base: str, repo: Path, system: bool) -> None:
    """Make the original: the package is compiled and one inert .pth file is there, so that neither makes a difference later."""
    subprocess.run([base, "-m", "venv", "--without-pip", *(["--system-site-packages"] if system else []), str(path)], check=True, timeout=60)
    site = next(path.glob("lib/python3.*/site-packages"))
    copy_package(repo, site)
    for name in (*child.TO_RECORD, "typing_extensions"):
        (site / (name + ".py")).write_text("# Stands for the package: these interpreters start the probe, and record nothing.\n")
    (site / "a_inert.pth").write_text("# Python 3.8 loads _bootlocale for the first .pth file that it meets, whatever is in it.\n")
    subprocess.run([str(path / "bin" / "python"), "-m", "compileall", "-q", str(site)], check=True, timeout=60)


@pytest.fixture(scope="session")
def _own(tmp_path_factory: pytest.TempPathFactory) -> str:
    """This environment's interpreter, without a sitecustomize.py of Debian's."""
    return base_python.without_sitecustomize(tmp_path_factory.mktemp("own"))


@pytest.fixture(scope="session")
def _original(tmp_path_factory: pytest.TempPathFactory, repo: Path) -> Callable[[str, bool], Path]:
    """One environment of each kind, made by the worker that needs it first, and copied from then on by all of them."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent

    def original(base: str, system: bool) -> Path:
        kind = hashlib.sha256(("%s %s" % (base, system)).encode()).hexdigest()[:12]
        made, done = folder / ("original-" + kind), folder / ("original-%s.done" % kind)
        with open(folder / ("original-%s.lock" % kind), "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                shutil.rmtree(made, ignore_errors=True)  # What a build that failed has left.
                _build(made / "venv", base, repo, system)
                done.touch()
        return made / "venv"

    return original


@pytest.fixture
def make_venv(
    tmp_path: Path, _original: Callable[[str, bool], Path], _own: str, clean_env: Callable[..., Dict[str, str]], interpreters: List[Any]
) -> Callable[..., Venv]:
    """Make a virtual environment that holds a copy of the package: a copy of one that is made once."""

    def make(which: str = "own", system: bool = False) -> Venv:
        path = tmp_path / ("venv-%s-%d" % (which, len(list(tmp_path.glob("venv-*")))))
        shutil.copytree(_original(_base(which, _own, interpreters), system), path, symlinks=True)
        return Venv(path, clean_env)

    return make


@pytest.fixture
def nobodys_venv(clean_env: Callable[..., Dict[str, str]], _original: Callable[[str, bool], Path]) -> Iterator[Venv]:
    """Make a virtual environment that every user can reach: pytest's own folders are closed to others."""
    if not os.access(_DEBIAN, os.X_OK):
        pytest.skip("This machine has no Python that every user can reach.")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = Path(folder, "venv")
        shutil.copytree(_original(_DEBIAN, False), path, symlinks=True)
        venv = Venv(path, clean_env)
        try:
            reached = venv.as_nobody(["-c", "print(1)"]).stdout == "1\n"
        except PermissionError:  # What was made under a umask of 077.
            reached = False
        if not reached:
            pytest.skip("Another user cannot reach %s." % folder)
        yield venv
        venv.site.chmod(0o755)
