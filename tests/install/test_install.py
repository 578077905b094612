"""install and uninstall: what they write, refuse, upgrade and take away again."""

import os
import shutil
import subprocess
import tempfile

import pytest

_WAYS = [
    ("oldest", "sitecustomize"),
    ("oldest", "auto"),
    ("own", "sitecustomize"),
    ("own", "pth"),
    ("own", "auto"),
    ("debian", "pth"),
    ("debian", "auto"),
]


@pytest.mark.parametrize(("which", "via"), _WAYS)
def test_uninstall_leaves_the_tree_as_it_was(make_venv, which, via):
    """After install, use and uninstall every file of site-packages is what it was; twice in a row is harmless."""
    venv = make_venv(which)
    before = venv.tree()
    for _ in range(2):
        for _ in range(2):
            venv.install(via)
            assert venv.started() == "True"
        assert venv.tree() != before
        for words in ("removed  ", "Nothing to remove."):
            done = venv.probe("uninstall")
            assert (done.returncode, done.stderr) == (0, "")
            assert done.stdout.startswith(words)
            assert venv.tree() == before


def test_a_second_install_changes_nothing(make_venv):
    """A second install says that it was already there, and leaves every file alone."""
    venv = make_venv()
    venv.install()
    before = {path: path.stat().st_mtime_ns for path in venv.site.glob("*.py")}
    done = venv.probe("install")
    assert "already installed" in done.stdout
    assert {path: path.stat().st_mtime_ns for path in venv.site.glob("*.py")} == before


def test_another_way_replaces_the_first(make_venv):
    """Installing by one form takes the other's file out, and without --via both are there, from whichever form one comes."""
    venv = make_venv()
    slot, line = venv.site / "sitecustomize.py", venv.site / "ddp_probe.pth"
    ways = (("sitecustomize", [slot]), ("pth", [line]), ("auto", [slot, line]), ("sitecustomize", [slot]), ("auto", [slot, line]), ("pth", [line]))
    for via, there in ways:
        venv.install(via)
        assert [path for path in (slot, line) if path.exists()] == there
        assert venv.started() == "True"


_HOOKS = (
    "import sys; activator = sys.modules.get('ddp_probe_activator'); "
    "print(*getattr(activator, 'calls', []), sum(type(one).__name__ == 'ImportHook' for one in sys.meta_path))"
)


def test_both_forms_arm_once(make_venv):
    """Of the two forms the line runs first and arms; sitecustomize.py finds the probe armed; one import hook is there, under -I as well."""
    venv = make_venv()
    venv.install()
    for options in ([], ["-I"], ["-E"], ["-B"]):
        assert venv.run([*options, "-c", _HOOKS], DDP_PROBE="1").stdout == "pth sitecustomize 1\n"
    assert venv.run(["-S", "-c", _HOOKS], DDP_PROBE="1").stdout == "0\n"
    assert venv.run(_HOOKS).stdout == "0\n"
    status = venv.probe("status").stdout
    assert "activator    active, by sitecustomize and pth; a child interpreter proves it\n" in status
    assert str(venv.site / "sitecustomize.py") in status
    assert str(venv.site / "ddp_probe.pth") in status


@pytest.mark.parametrize("via", ["auto", "sitecustomize", "pth"])
def test_a_tool_with_a_sitecustomize_of_its_own(make_venv, tmp_path, via):
    """Behind a sitecustomize first on PYTHONPATH, as opentelemetry-instrument brings one, the line arms once; sitecustomize.py cannot run."""
    venv = make_venv()
    venv.install(via)
    (tmp_path / "sitecustomize.py").write_text("import os; os.environ['THEIRS'] = 'ran'\n")
    done = venv.run("import os; print(os.environ.get('THEIRS'), end=' '); " + _HOOKS, DDP_PROBE="1", PYTHONPATH=str(tmp_path))
    assert done.stdout == ("ran 0\n" if via == "sitecustomize" else "ran pth 1\n")
    status = venv.probe("status", PYTHONPATH=str(tmp_path)).stdout
    assert ("Of the two forms the .pth line works: %s comes first on the path" % (tmp_path / "sitecustomize.py") in status) is (via == "auto")


def test_a_venv_in_a_venv(make_venv, tmp_path):
    """A venv made by the Python of a venv is an interpreter of its own: nothing runs there until it is installed there, and then once."""
    outer = make_venv()
    outer.install()
    inner = tmp_path / "inner"
    made = outer.run(["-m", "venv", "--without-pip", str(inner)])
    assert made.returncode == 0, made.stderr
    env = outer.env(PYTHONPATH=None, DDP_PROBE="1")
    done = subprocess.run([str(inner / "bin" / "python"), "-c", _HOOKS], env=env, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "0\n"
    site = next(inner.glob("lib/python3.*/site-packages"))
    shutil.copytree(outer.site / "ddp_probe", site / "ddp_probe")
    for stand_in in outer.site.glob("*.py"):
        if stand_in.name not in ("sitecustomize.py", "ddp_probe_activator.py"):
            shutil.copy(stand_in, site)
    for args, said in ((["-m", "ddp_probe", "install"], "via          both"), (["-c", _HOOKS], "pth sitecustomize 1\n")):
        done = subprocess.run([str(inner / "bin" / "python"), *args], env=env, capture_output=True, text=True, timeout=60, cwd="/", check=False)
        assert done.returncode == 0, done.stderr
        assert said in done.stdout


@pytest.mark.parametrize("where", ["in the slot", "later on the path"])
def test_a_users_sitecustomize_leads_to_the_line(make_venv, tmp_path, where):
    """Where the user has a sitecustomize of their own, the line alone is written, and says beside what; theirs stays and runs."""
    venv = make_venv()
    folder = venv.site if where == "in the slot" else tmp_path
    (folder / "sitecustomize.py").write_text("theirs = True\n")
    if where != "in the slot":
        (venv.site / "z_theirs.pth").write_text("%s\n" % tmp_path)
    venv.run("import sitecustomize")  # Python compiles it
    before = venv.tree()
    done = venv.probe("install")
    assert done.returncode == 0, done.stderr
    assert "via          pth: it works beside %s\n" % (folder / "sitecustomize.py") in done.stdout
    assert venv.run("import sitecustomize; print(sitecustomize.theirs, end=' '); " + _HOOKS, DDP_PROBE="1").stdout == "True pth 1\n"
    assert venv.probe("uninstall").returncode == 0
    assert venv.tree() == before


def test_a_user_without_rights_installs_for_themselves(make_venv, nobodys_venv, tmp_path):
    """If site-packages cannot be written to and Python reads the user's own folder, the activator goes there; uninstall empties it again."""
    with tempfile.TemporaryDirectory() as home:
        os.chmod(home, 0o777)
        nobodys_venv.site.chmod(0o555)
        enabled = nobodys_venv.path / "pyvenv.cfg"  # a venv reads no folder of the user's unless it has the system's packages
        enabled.write_text(enabled.read_text().replace("include-system-site-packages = false", "include-system-site-packages = true"))
        where = {"PYTHONUSERBASE": home}
        done = nobodys_venv.as_nobody(["-m", "ddp_probe", "install"], **where)
        assert done.returncode == 0, done.stderr
        assert "which is read for this user alone: site-packages cannot be written to" in done.stdout
        code = "import sys; print(sys.modules['ddp_probe.activation'].state() != 'off')"
        assert nobodys_venv.as_nobody(["-c", code], DDP_PROBE="1", **where).stdout == "True\n"
        assert "activator    active, by " in nobodys_venv.as_nobody(["-m", "ddp_probe", "status"], **where).stdout
        assert nobodys_venv.as_nobody(["-m", "ddp_probe", "uninstall"], **where).returncode == 0
        assert [name for _, _, names in os.walk(home) for name in names] == []


def test_an_older_file_of_ours_is_replaced(make_venv):
    """A file that an older version wrote is named outdated by status and replaced by install."""
    venv = make_venv()
    venv.install("sitecustomize")
    activator = venv.site / "ddp_probe_activator.py"
    current = activator.read_text()
    activator.write_text(current.replace("activator, version 4:", "activator, version 0:"))
    for name in ("sitecustomize.py",):
        path = venv.site / name
        path.write_text(path.read_text().replace("activator, version 4:", "activator, version 0:"))
    assert "It is of version 0, this package writes version 4." in venv.probe("status").stdout
    venv.install("sitecustomize")
    assert activator.read_text() == current


def test_a_dry_run_writes_nothing(make_venv):
    """--dry-run names the files and writes none of them."""
    venv = make_venv()
    before = venv.tree()
    done = venv.probe("install", "--dry-run")
    assert done.returncode == 0
    assert "would write  %s" % (venv.site / "ddp_probe.pth") in done.stdout
    assert venv.tree() == before


@pytest.mark.parametrize(
    ("name", "via"),
    [("sitecustomize.py", "sitecustomize"), ("ddp_probe.pth", "pth"), ("ddp_probe_activator.py", "auto"), ("ddp_probe_activator.py", "pth")],
)
def test_a_file_of_somebody_else_is_not_touched(make_venv, name, via):
    """A file that install did not write is named in the refusal, stays as it is, and survives uninstall."""
    venv = make_venv()
    (venv.site / name).write_text("# theirs\n")
    venv.probe("--version")  # Python compiles their sitecustomize at whatever start comes first
    before = venv.tree()
    done = venv.probe("install", "--via", via)
    assert done.returncode == 1
    assert "%s is in the way." % (venv.site / name) in done.stderr
    assert "python -m ddp_probe run -- COMMAND" in done.stderr
    assert venv.tree() == before
    assert venv.probe("uninstall").stdout == "Nothing to remove.\n"
    assert venv.tree() == before


def test_the_next_commands_are_printed(make_venv):
    """install ends with the commands that follow it: launch, report, uninstall."""
    last = [line.strip() for line in make_venv().probe("install").stdout.splitlines()[-3:]]
    assert last == ["DDP_PROBE=1 torchrun --nproc_per_node=8 train.py config.py", "python -m ddp_probe report", "python -m ddp_probe uninstall"]


def test_a_slot_that_others_may_take_is_told(make_venv):
    """status says of sitecustomize.py alone that a tool may shadow it, and of the line and of both nothing."""
    venv = make_venv()
    for via, told in (("sitecustomize", True), ("pth", False), ("auto", False)):
        venv.install(via)
        done = venv.probe("status")
        assert done.returncode == 0
        assert ("takes its place there, and nothing is recorded" in done.stdout) is told


@pytest.mark.parametrize("missing", [("wrapt",), ("structlog",), ("wrapt", "msgspec")])
def test_a_missing_dependency_is_not_proved(make_venv, missing):
    """Where a package is missing that recording needs, install ends with 2, names it, and leaves nothing; run says so in one line."""
    venv = make_venv()
    venv.install()
    for name in missing:
        (venv.site / (name + ".py")).unlink()
        for file in (venv.site / "__pycache__").glob(name + ".*"):
            file.unlink()
    told = "%s %s not installed." % (", ".join(missing), "is" if len(missing) == 1 else "are")
    done = venv.probe("status")
    assert done.returncode == 2
    assert told in done.stdout
    assert "active, by" not in done.stdout
    done = venv.probe("runs")
    assert ("msgspec" in missing) is (done.returncode == 2 and "why: msgspec is not installed." in done.stderr)
    venv.probe("uninstall")
    before = venv.tree()
    done = venv.probe("install")
    assert done.returncode == 2
    assert "why: " + told in done.stderr
    assert "-m pip install " + " ".join(missing) in done.stderr
    assert "proved" not in done.stdout
    assert venv.tree() == before
    done = venv.probe("run", "--", venv.python, "-c", "print(1)")
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (0, "1\n", 1)
    assert told.rstrip(".") in done.stderr
    done = venv.probe("status")
    assert done.returncode == 2
    assert told in done.stdout


def test_the_distributions_own_leads_to_the_line(make_venv):
    """Where Debian's own sitecustomize wins, sitecustomize is refused by the winner's name, and the .pth file is taken without --via."""
    venv = make_venv("debian")
    winner = venv.run("import sys; print(getattr(sys.modules.get('sitecustomize'), '__file__', ''))").stdout.strip()
    if not winner:
        pytest.skip("This Debian has no sitecustomize of its own.")
    before = venv.tree()
    done = venv.probe("install", "--via", "sitecustomize")
    assert done.returncode == 1
    assert "%s comes first on its path and wins." % winner in done.stderr
    assert venv.tree() == before
    venv.install()
    assert (venv.site / "ddp_probe.pth").exists()
    assert not (venv.site / "sitecustomize.py").exists()


def test_what_is_not_proved_is_taken_back(make_venv):
    """Where the child is not started by what was written, install goes back and says what the child said."""
    venv = make_venv()
    (venv.site / "ddp_probe" / "activation" / "targets.py").write_text("def\n")
    before = venv.tree()
    done = venv.probe("install")
    assert done.returncode == 1
    assert "SyntaxError" in done.stderr
    assert set(venv.tree()) == set(before)


def test_a_read_only_folder_is_refused(nobodys_venv):
    """A user who may not write to site-packages is told so, and what works without writing."""
    nobodys_venv.site.chmod(0o555)  # for tests that are not run by root; undone by the fixture
    done = nobodys_venv.as_nobody(["-m", "ddp_probe", "install"])
    assert done.returncode == 1
    assert "%s cannot be written to." % nobodys_venv.site in done.stderr
    assert "python -m ddp_probe run -- COMMAND" in done.stderr


def test_a_user_who_may_not_remove_it_is_told(nobodys_venv):
    """uninstall by a user who may not write says which file is still there."""
    nobodys_venv.install()
    nobodys_venv.site.chmod(0o555)
    done = nobodys_venv.as_nobody(["-m", "ddp_probe", "uninstall"])
    assert done.returncode == 1
    assert "The activator is still in place: %s" % nobodys_venv.site in done.stderr


def test_other_users_can_read_what_was_installed(nobodys_venv):
    """An activator that root installs under a narrow umask starts for other users too."""
    done = subprocess.run(
        ["sh", "-c", 'umask 077; exec "$0" -m ddp_probe install', nobodys_venv.python],
        env=nobodys_venv.env(PYTHONPATH=None, PYTHONDONTWRITEBYTECODE="1"),
        cwd="/",
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    code = "import sys; print(sys.modules['ddp_probe.activation'].state() != 'off')"
    assert nobodys_venv.as_nobody(["-c", code], DDP_PROBE="1").stdout == "True\n"


def test_a_shadowed_activator_is_named_by_status(make_venv, tmp_path):
    """status says which file wins over an installed sitecustomize."""
    venv = make_venv()
    venv.install("sitecustomize")
    (tmp_path / "sitecustomize.py").write_text("# theirs\n")
    done = venv.probe("status", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert "shadowed. %s comes first on the path and wins." % (tmp_path / "sitecustomize.py") in done.stdout


def test_installs_at_the_same_time(make_venv):
    """Of ten installs at once, by both ways, each one succeeds, and what they leave is one whole installation."""
    venv = make_venv()
    before = venv.tree()
    env = venv.env(PYTHONPATH=None, PYTHONDONTWRITEBYTECODE="1")
    installs = [
        subprocess.Popen([venv.python, "-m", "ddp_probe", "install", "--via", via], env=env, cwd="/", stdout=-3, stderr=subprocess.PIPE, text=True)
        for via in ["sitecustomize", "pth", "auto", "pth", "sitecustomize"] * 2
    ]
    said = [install.communicate(timeout=120)[1] for install in installs]
    assert said == [""] * 10
    assert venv.started() == "True"
    assert "activator    active, by " in venv.probe("status").stdout
    assert venv.probe("uninstall").returncode == 0
    assert venv.tree() == before
