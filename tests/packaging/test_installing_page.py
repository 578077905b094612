"""The blocks of docs/installing.md, run word for word: the probe in a Python that was made so, a job under it, and nothing left after uninstall."""

import contextlib
import functools
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple

import pytest

pytestmark = pytest.mark.skipif(sys.version_info < (3, 10), reason="uv and Poetry are installed for newer Pythons; what they do is the same.")
_PAGE = Path(__file__).resolve().parents[2] / "docs" / "installing.md"
_TORCH = "def load(f, map_location=None):\n    return f\n"  # Stands for torch: the one function that the probe watches here.
_TRAIN = "from torch.serialization import load\nload('weights.pth', map_location='cpu')\n"
_POETRY = "import sys; sys.path.insert(0, %r); sys.argv[0] = 'poetry'; from poetry.console.application import main; sys.exit(main())"
_STANDARD = shutil.ignore_patterns("test", "tests", "site-packages", "__pycache__", "config-*", "idlelib", "turtledemo", "lib2to3", "tkinter")
_GUEST = 65534


class Way(NamedTuple):
    """How a Python is made, and how the one that runs the job is then called."""

    python: str
    first: str = "true"  # What the reader has already.
    owner: int = 0  # Who installs; the job is run by the guest if these differ.
    job: int = 0


_INSIDE = ".venv/bin/python"
_WAYS = {
    "venv": Way(_INSIDE),
    "system-site-packages": Way(_INSIDE),
    "user": Way("python", owner=_GUEST, job=_GUEST),
    "uv": Way(_INSIDE),
    "uv-project": Way("uv run --offline python", "uv init -q --bare --name train"),
    "poetry": Way(
        "poetry run python",
        "poetry init -q -n --python '>=%d.%d'; poetry source add -q --priority=primary here $PIP_INDEX_URL" % sys.version_info[:2],
    ),
    "image": Way("python", job=_GUEST),
}


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *words: Any) -> None:
        """Print nothing."""


def _blocks() -> Dict[str, str]:
    """Return the blocks of the page by their names; of an image, what RUN runs."""
    found: Dict[str, str] = {}
    for part in _PAGE.read_text(encoding="utf-8").split("```")[1::2]:
        language, text = part.split("\n", 1)
        found[language.split()[1]] = text.replace("RUN ", "") if language.startswith("dockerfile") else text
    return found


@pytest.fixture(scope="module")
def index(wheel: Path, dependency_wheels: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a package index on this host that has the wheel and those of its dependencies."""
    root = tmp_path_factory.mktemp("index")
    for path in (wheel, *dependency_wheels(sys.executable).glob("*.whl")):
        folder = root / "simple" / path.name.split("-")[0].replace("_", "-").lower()
        folder.mkdir(parents=True)
        shutil.copy(str(path), str(folder))
        (folder / "index.html").write_text('<!DOCTYPE html><a href="%s">%s</a>' % (path.name, path.name), encoding="utf-8")
    handler = functools.partial(_Quiet, directory=str(root))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield "http://127.0.0.1:%d/simple/" % server.server_address[1]
        server.shutdown()


@pytest.fixture(scope="module")
def tools(run_python: Callable[..., Any]) -> Path:
    """A folder with uv and Poetry, installed once per environment of the tests."""
    kept = Path(sys.prefix, "installers")
    if not kept.is_dir():
        partial = kept.with_name("partial-installers-%d" % os.getpid())
        done = run_python(["-m", "pip", "install", "-q", "--target", partial, "uv", "poetry"], timeout=300)
        assert done.returncode == 0, done.stderr
        with contextlib.suppress(OSError):  # Somebody else was faster.
            partial.rename(kept)
    return kept


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that another user may enter, with one for the job."""
    folder = Path(tempfile.mkdtemp(prefix="ddp-probe-installing-"))
    folder.chmod(0o755)
    (folder / "job" / "home").mkdir(parents=True)
    yield folder
    shutil.rmtree(str(folder), ignore_errors=True)


def _system(place: Path) -> Path:
    """Make a copy of this Python that has pip, such as a system has: what is installed into it stays there."""
    base, name = Path(sys.base_prefix), "python%d.%d" % sys.version_info[:2]
    library = place / "lib" / name
    shutil.copytree(str(base / "lib" / name), str(library), ignore=_STANDARD, symlinks=True)
    for path in (base / "lib").glob("libpython*.so*"):
        shutil.copy(str(path), str(place / "lib"), follow_symlinks=False)
    (place / "bin").mkdir()
    shutil.copy(os.path.realpath(sys.executable), str(place / "bin" / name))
    for link in ("python", "python3"):
        (place / "bin" / link).symlink_to(name)
    (library / "site-packages").mkdir()
    pip = Path(next(path for path in sys.path if os.path.isdir(os.path.join(path, "pip"))), "pip")
    shutil.copytree(str(pip), str(library / "site-packages" / "pip"), ignore=shutil.ignore_patterns("__pycache__"))
    _program(place / "bin" / "pip", 'exec "%s" -m pip "$@"' % (place / "bin" / "python"))
    return library


def _program(path: Path, line: str) -> None:
    path.write_text("#!/bin/sh\n%s\n" % line, encoding="utf-8")
    path.chmod(0o755)


def _shell(place: Path, index: str) -> Callable[..., Any]:
    """Return what types lines in the folder of the job, as one user or another, with this Python and the tools on PATH."""
    env = {
        "PATH": "%s:/usr/bin:/bin" % (place / "bin"),
        "LD_LIBRARY_PATH": str(place / "lib"),
        "HOME": str(place / "job" / "home"),
        "LANG": "C.UTF-8",
        "PIP_INDEX_URL": index,
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_COMPILE": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "UV_DEFAULT_INDEX": index,
        "UV_NO_CONFIG": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_PYTHON_PREFERENCE": "only-system",
        "POETRY_VIRTUALENVS_IN_PROJECT": "true",
        "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
    }

    def typed(line: str, user: int = 0, **extra: str) -> Any:
        command: List[str] = ["setpriv", "--reuid=%d" % user, "--regid=%d" % user, "--clear-groups"] if user else []
        given = {name: value for name, value in {**env, **extra}.items() if value}
        command += ["bash", "-euc", line]
        return subprocess.run(command, cwd=place / "job", env=given, capture_output=True, text=True, timeout=200, check=False)

    return typed


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.nightly] if name == "venv" else []) for name in _WAYS])
def test_the_words_of_the_page(name: str, place: Path, index: str, tools: Path) -> None:
    """After the lines of the page a job of that Python is recorded and reported on, and uninstall removes all that install has written."""
    way = _WAYS[name]
    if way.job and (os.getuid() != 0 or not shutil.which("setpriv")):
        pytest.skip("Only root, with setpriv, starts a program as another user.")
    library, shell, folder = _system(place), _shell(place, index), place / "job"
    (place / "bin" / "uv").symlink_to(tools / "bin" / "uv")
    _program(place / "bin" / "poetry", 'exec %s -c "%s" "$@"' % (sys.executable, _POETRY % str(tools)))
    outside = library / "site-packages" if name == "system-site-packages" else folder
    (outside / "torch").mkdir()
    (outside / "torch" / "__init__.py").touch()
    (outside / "torch" / "serialization.py").write_text(_TORCH, encoding="utf-8")
    (folder / "train.py").write_text(_TRAIN, encoding="utf-8")
    if name == "system-site-packages":
        (library / "EXTERNALLY-MANAGED").write_text("[externally-managed]\nError=Ask the system.\n", encoding="utf-8")
        assert "externally-managed-environment" in shell("pip install ddp-probe").stderr
    for each in (folder, folder / "home"):
        os.chown(str(each), way.job or -1, -1)
    done = shell("%s\n%s" % (way.first, _blocks()[name]), user=way.owner)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "proved" in done.stdout
    home = {"HOME": ""} if name == "image" else {}
    job = shell("%s train.py" % way.python, user=way.job, DDP_PROBE="1", RANK="0", WORLD_SIZE="1", **home)
    assert (job.returncode, job.stdout) == (0, ""), job.stderr
    report = shell("%s -m ddp_probe report --json" % way.python, user=way.job, **home)
    assert (report.returncode, report.stderr) == (0, "")
    assert json.loads(report.stdout)["verdict"] == "clear"
    assert '"event":"checkpoint.load","phase":"end"' in shell("%s -m ddp_probe logs --raw" % way.python, user=way.job, **home).stdout
    assert "removed" in shell("%s -m ddp_probe uninstall" % way.python, user=way.owner).stdout
    assert [path for path in place.rglob("*") if path.name in ("sitecustomize.py", "ddp_probe.pth") and path.parent.name == "site-packages"] == []


def test_the_page_says_which_blocks_are_run() -> None:
    """Every block of the page is run here, but for the two that the page calls not tried."""
    assert set(_blocks()) - set(_WAYS) == {"conda", "pixi"}
    rest = _PAGE.read_text(encoding="utf-8").partition("Not tried")[2]
    assert all("```sh %s\n" % name in rest for name in ("conda", "pixi"))
