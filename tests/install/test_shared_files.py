"""What another tool writes into a file of ours runs, and stays when ours is taken out."""

import subprocess

import pytest

_THEIRS = "import builtins; builtins.theirs = 'ran'\n"
_SAYS = "import builtins; print(getattr(builtins, 'theirs', 'did not run'))"


@pytest.fixture(params=["oldest", "newest"])
def venv(request, make_venv):
    """Return an environment of the oldest Python and of the newest one with sitecustomize.py in place."""
    made = make_venv(request.param)
    made.install("sitecustomize")
    return made


@pytest.mark.parametrize("where", ["before", "after"])
def test_what_another_tool_adds_runs_and_stays(venv, where):
    """A line that another tool adds to sitecustomize.py runs with the probe and without; uninstall leaves it alone in the file, and says so."""
    slot = venv.site / "sitecustomize.py"
    ours = slot.read_text()
    slot.write_text(_THEIRS + ours if where == "before" else ours + _THEIRS)
    slot.chmod(0o640)
    for variables in ({}, {"DDP_PROBE": "1"}):
        done = venv.run(_SAYS, **variables)
        assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")
    assert venv.started() == "True"
    status = venv.probe("status").stdout
    assert "%s (others wrote into it as well: that stays)" % slot in status
    assert "active, by sitecustomize" in status
    assert "removed  %s: our lines; what others wrote into it stays\n" % slot in venv.probe("uninstall").stdout
    assert (slot.read_text(), slot.stat().st_mode & 0o777) == (_THEIRS, 0o640)
    assert venv.run(_SAYS).stdout == "ran\n"
    assert venv.started() == "False"
    assert venv.probe("uninstall").stdout == "Nothing to remove.\n"


def test_a_second_install_keeps_it(venv):
    """install over a file with another tool's line renews our part, keeps the line, and the other form takes out our part alone."""
    slot = venv.site / "sitecustomize.py"
    slot.write_text(slot.read_text().replace("version 4:", "version 1:") + _THEIRS)
    venv.install("sitecustomize")
    assert "version 4:" in slot.read_text()
    assert slot.read_text().endswith("\n" + _THEIRS)
    assert "already installed" in venv.probe("install", "--via", "sitecustomize").stdout
    venv.install("pth")
    assert slot.read_text() == _THEIRS


def test_a_line_in_the_pth_file_stays(make_venv):
    """A folder that another tool adds to ddp_probe.pth is on the path, and stays there after uninstall."""
    venv = make_venv()
    venv.install("pth")
    line = venv.site / "ddp_probe.pth"
    folder = venv.site / "theirs"
    folder.mkdir()
    line.write_text(line.read_text() + "theirs\n")
    code = "import sys; print(%r in sys.path)" % str(folder)
    assert venv.run(code).stdout == "True\n"
    venv.probe("uninstall")
    assert line.read_text() == "theirs\n"
    assert venv.run(code).stdout == "True\n"


@pytest.mark.parametrize("fault", ["raise ValueError('boom')", "import no_such_module", "def", ""])
def test_it_runs_after_the_one_that_ours_shadows(venv, tmp_path, fault):
    """With a line added to ours, the sitecustomize that ours shadows runs first; where that raises, site's words are printed and the line runs."""
    (tmp_path / "sitecustomize.py").write_text("import builtins; builtins.shadowed = True\n%s\n" % fault)
    (venv.site / "z_theirs.pth").write_text("%s\n" % tmp_path)
    slot = venv.site / "sitecustomize.py"
    slot.write_text(slot.read_text() + _THEIRS)
    done = venv.run(_SAYS + "; print(hasattr(builtins, 'shadowed'))")
    assert (done.returncode, done.stdout.split()[0]) == (0, "ran")
    assert ("True" in done.stdout) == (fault != "def")
    native = subprocess.run([venv.python, "-c", "import sitecustomize"], env=venv.env(PYTHONPATH=str(tmp_path)), capture_output=True, check=False)
    assert done.stderr == native.stderr.decode().partition("Traceback")[0]


@pytest.mark.parametrize("name", ["sitecustomize.py", "ddp_probe_activator.py", "ddp_probe.pth"])
def test_a_file_changed_inside_is_left(make_venv, name):
    """A file whose text of ours somebody has changed is not ours any more: uninstall and install leave it, status and uninstall name it."""
    venv = make_venv()
    venv.install()
    path = venv.site / name
    first, rest = path.read_text().split("\n", 1)
    changed = "%s\n# somebody's note\n%s" % (first, rest)
    path.write_text(changed)
    assert "changed      %s: uninstall leaves it as it is\n" % path in venv.probe("status").stdout
    done = venv.probe("install", "--via", "sitecustomize" if name == "sitecustomize.py" else "pth")
    assert done.returncode == 1
    assert "%s is in the way" % path in done.stderr
    assert "It has been changed since install wrote it" in done.stderr
    assert "left     %s: it has been changed since install wrote it" % path in venv.probe("uninstall").stdout
    assert path.read_text() == changed


def test_without_the_package_it_stays_too(make_venv):
    """With the package gone, the activator's own uninstall leaves what others wrote."""
    venv = make_venv()
    venv.install()
    slot = venv.site / "sitecustomize.py"
    slot.write_text(slot.read_text() + _THEIRS)
    (venv.site / "ddp_probe").rename(venv.site / "ddp_probe_gone")
    done = venv.run(["-m", "ddp_probe_activator", "uninstall"])
    assert (done.returncode, done.stderr) == (0, "")
    assert "removed  %s: our lines; what others wrote into it stays\n" % slot in done.stdout
    assert slot.read_text() == _THEIRS


def test_a_file_of_version_2_is_taken_out_of_its_additions(make_venv):
    """A file that version 2 wrote, which had no digest, ends at its last line; what follows stays."""
    venv = make_venv()
    slot = venv.site / "sitecustomize.py"
    slot.write_text(
        "# ddp_probe activator, version 2: written by 'python -m ddp_probe install'.\nimport os\n\n_hand_over = int\n_hand_over()\n" + _THEIRS
    )
    assert venv.probe("uninstall").stdout == "removed  %s: our lines; what others wrote into it stays\n" % slot
    assert slot.read_text() == _THEIRS
