"""A broken package costs the program nothing but one line."""

import shutil
import subprocess

import pytest

_PROGRAM = "print('result'); raise SystemExit(5)"
_WAYS = ["sitecustomize", "pth"]


def _is_untouched(done, lines):
    assert (done.returncode, done.stdout) == (5, "result\n")
    assert len(done.stderr.splitlines()) == lines, done.stderr
    assert all(line.startswith("ddp_probe: not active: ") for line in done.stderr.splitlines())


@pytest.mark.parametrize("via", [*_WAYS, "auto"])
def test_a_package_that_is_gone_is_one_line(make_venv, via):
    """Where the package has been removed, one line names the file to delete; once that is done, and without DDP_PROBE, nothing is said."""
    venv = make_venv()
    venv.install(via)
    shutil.rmtree(venv.site / "ddp_probe")
    activator = venv.site / "ddp_probe_activator.py"
    done = venv.run(_PROGRAM, DDP_PROBE="1")
    _is_untouched(done, 1)
    assert "The package is gone, and %s is still there. Delete that file, " % activator in done.stderr
    _is_untouched(venv.run(_PROGRAM), 0)
    activator.unlink()
    _is_untouched(venv.run(_PROGRAM, DDP_PROBE="1"), 0)


@pytest.mark.parametrize("via", _WAYS)
def test_a_later_pth_file_brings_the_package(make_venv, via, tmp_path):
    """A package whose folder is put on the path by a .pth file that is read after ours is not taken for gone."""
    venv = make_venv()
    (venv.site / "ddp_probe").rename(tmp_path / "ddp_probe")
    (venv.site / "z_later.pth").write_text("%s\n" % tmp_path)
    venv.install(via)
    assert venv.started() == "True"


def test_a_line_without_its_activator_is_silent(make_venv):
    """A .pth file that has lost the file beside it is silent."""
    venv = make_venv()
    venv.install("pth")
    (venv.site / "ddp_probe_activator.py").unlink()
    _is_untouched(venv.run(_PROGRAM, DDP_PROBE="1"), 0)


def test_a_slot_without_its_activator_is_silent(make_venv):
    """A sitecustomize that has lost the file beside it is silent."""
    venv = make_venv()
    venv.install("sitecustomize")
    (venv.site / "ddp_probe_activator.py").unlink()
    _is_untouched(venv.run(_PROGRAM, DDP_PROBE="1"), 0)


@pytest.mark.parametrize("via", _WAYS)
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("shared/settings.py", "def\n"),
        ("__init__.py", "import no_such_dependency\n"),
        ("__init__.py", "raise SystemExit(3)\n"),
        ("__init__.py", "raise RuntimeError('two\\nlines')\n"),
        ("activation/__init__.py", "state = None\n"),
    ],
)
def test_a_broken_package_says_one_line(make_venv, via, name, text):
    """A syntax error, a missing module, an exit or an error in the package is one line on stderr, and the program runs."""
    venv = make_venv()
    venv.install(via)
    (venv.site / "ddp_probe" / name).write_text(text)
    _is_untouched(venv.run(_PROGRAM, DDP_PROBE="1"), 1)


def test_a_broken_package_under_run_says_one_line(make_venv):
    """What is broken only in the children of run is one line as well."""
    venv = make_venv()
    (venv.site / "ddp_probe" / "activation" / "targets.py").write_text("def\n")
    _is_untouched(venv.probe("run", "--", venv.python, "-c", _PROGRAM), 1)


def test_the_line_is_said_once_in_a_tree(make_venv):
    """Of a launcher and what it starts, the first alone says that the probe is not active."""
    venv = make_venv()
    venv.install()
    (venv.site / "ddp_probe" / "shared" / "settings.py").write_text("def\n")
    code = "import subprocess, sys; [subprocess.call([sys.executable, '-c', 'print(1)']) for _ in range(3)]"
    done = venv.run(code, DDP_PROBE="1")
    assert done.stdout == "1\n1\n1\n"
    assert len(done.stderr.splitlines()) == 1


def test_a_closed_stderr_costs_nothing(make_venv):
    """With stderr closed, a broken package does not stop the program."""
    venv = make_venv()
    venv.install()
    (venv.site / "ddp_probe" / "shared" / "settings.py").write_text("def\n")
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" -c "print(1)" 2>&-', venv.python],
        env=venv.env(DDP_PROBE="1", PYTHONPATH=None),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"1\n")


@pytest.mark.parametrize("via", ["pth", "run"])
@pytest.mark.parametrize("what", ["folder", "file"])
def test_an_unreadable_package_says_one_line(nobodys_venv, via, what):
    """Where the package's folder, or a file of it, may not be read, the program runs and one line says so."""
    venv = nobodys_venv
    home = venv.site / "ddp_probe"
    env = {}
    if via == "pth":
        venv.install("pth")
    else:
        templates = venv.path / "templates"
        shutil.copytree(home / "sitecustomize_templates", templates)
        env = {"PYTHONPATH": str(templates), "DDP_PROBE_HOME": str(venv.site)}
    (home if what == "folder" else home / "shared" / "settings.py").chmod(0)
    if what == "file":  # a bytecode file would not need it
        shutil.rmtree(home / "shared" / "__pycache__")
    try:
        _is_untouched(venv.as_nobody(["-c", _PROGRAM], DDP_PROBE="1", **env), 1)
    finally:
        home.chmod(0o755)
