"""What a killed install, a crash or a broken package leaves behind can be installed over, and uninstalled."""

import itertools
import random
import shutil
import signal
import subprocess
import time

import pytest


@pytest.mark.timeout(300)
def test_a_killed_install_is_recoverable(make_venv):
    """Killed at any moment, install leaves an interpreter that starts in silence, and uninstall leaves the tree as it was."""
    venv = make_venv()
    before = venv.tree()
    chance = random.Random(7)
    seen = set()
    begun = time.monotonic()
    venv.install()
    whole = time.monotonic() - begun
    venv.probe("uninstall")
    for number, via in zip(range(21), itertools.cycle(["sitecustomize", "pth", "auto"])):
        env = venv.env(PYTHONPATH=None, PYTHONDONTWRITEBYTECODE="1")
        process = subprocess.Popen([venv.python, "-m", "ddp_probe", "install", "--via", via], env=env, cwd="/", stdout=-3, stderr=-3)
        time.sleep(whole * (number + chance.random()) / 12)
        process.send_signal(signal.SIGKILL)
        process.wait()
        time.sleep(0.05)  # its child may still be on its way out
        seen.add(frozenset(set(venv.tree()) - set(before)))
        assert venv.started() in ("True", "False")
        if number % 4 == 3:
            venv.install(via)
        assert venv.probe("uninstall").returncode == 0
        assert venv.tree() == before
    assert len(seen) > 1, "Every kill came at the same stage."


@pytest.mark.parametrize("left", [".ddp_probe-123.tmp", "ddp_probe_activator.py"])
def test_what_a_crash_leaves_is_removed(make_venv, left):
    """A half-written file, or an activator without what starts it, goes with uninstall and does not disturb install."""
    venv = make_venv()
    before = venv.tree()
    venv.install("pth")
    text = (venv.site / "ddp_probe_activator.py").read_text()  # with the digest, as install moves it into place whole
    assert venv.probe("uninstall").returncode == 0
    for command in ("uninstall", "install"):
        (venv.site / left).write_text(text[: len(text) // 2] if left.endswith(".tmp") else text)
        assert venv.probe(command).returncode == 0
    assert venv.started() == "True"
    assert venv.probe("uninstall").returncode == 0
    assert venv.tree() == before


@pytest.mark.parametrize("via", ["sitecustomize", "pth", "auto"])
def test_the_activator_removes_itself_without_the_package(make_venv, via):
    """With the package gone, python -m ddp_probe_activator uninstall leaves the tree as it was."""
    venv = make_venv()
    before = {name: text for name, text in venv.tree().items() if not name.startswith("ddp_probe")}
    venv.install(via)
    shutil.rmtree(venv.site / "ddp_probe")
    assert venv.run(["-m", "ddp_probe_activator"]).returncode == 2
    assert venv.run(["-m", "ddp_probe_activator", "uninstall"]).returncode == 0
    assert venv.tree() == before


@pytest.mark.parametrize(
    "name", ["activation/__init__.py", "shared/settings.py", "activation/installer/child.py", "shared/schema.py", "cli/status.py"]
)
def test_uninstall_works_with_a_broken_package(make_venv, name):
    """A syntax error in the package does not keep uninstall from removing the activator."""
    venv = make_venv()
    venv.install()
    (venv.site / "ddp_probe" / name).write_text("def\n")
    done = venv.probe("uninstall", DDP_PROBE="1")
    assert done.returncode == 0, done.stderr
    assert not [path for path in venv.site.glob("*.py") if path.name in ("sitecustomize.py", "ddp_probe_activator.py")]


def test_a_broken_package_does_not_remove_its_own_templates(make_venv):
    """Under run, where the templates themselves are on the path, a broken package's uninstall removes none of them."""
    venv = make_venv()
    (venv.site / "ddp_probe" / "activation" / "installer" / "installation.py").write_text("def\n")
    templates = venv.site / "ddp_probe" / "sitecustomize_templates"
    done = venv.probe("run", "--", venv.python, "-m", "ddp_probe", "uninstall")
    assert (done.returncode, done.stdout) == (0, "Nothing to remove.\n")
    assert (templates / "sitecustomize.py").exists()
