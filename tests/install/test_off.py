"""Off means off: without DDP_PROBE an interpreter starts as if nothing were installed."""

from pathlib import Path

import pytest

_MODULES = "import sys; print(sorted(sys.modules))"
_WAYS = [("oldest", "sitecustomize"), ("oldest", "pth"), ("newest", "sitecustomize"), ("newest", "pth"), ("debian", "pth")]


@pytest.mark.parametrize(("which", "via"), _WAYS)
def test_off_start_loads_the_same_modules(make_venv, which, via):
    """Without DDP_PROBE, sys.modules after start is the same with and without the activator."""
    venv = make_venv(which)
    before = venv.run(_MODULES)
    venv.install(via)
    for value in (None, ""):
        after = venv.run(_MODULES, DDP_PROBE=value)
        assert (after.returncode, after.stdout, after.stderr) == (before.returncode, before.stdout, before.stderr)


@pytest.mark.parametrize("via", ["sitecustomize", "pth"])
@pytest.mark.parametrize("value", ["0", "off", "FALSE", " no "])
def test_off_by_a_word_loads_nothing_of_the_package(make_venv, via, value):
    """With DDP_PROBE=0, off, false or no the package is not imported."""
    venv = make_venv()
    venv.install(via)
    done = venv.run("import sys; print([name for name in sys.modules if name.split('.')[0] == 'ddp_probe'])", DDP_PROBE=value)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")


def test_the_activator_line_is_one_readable_line(repo: Path):
    """The .pth file holds one line of code, without exec, eval, compile or an encoded text."""
    text = (repo / "sitecustomize_templates" / "ddp_probe.pth").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert len(lines) == 1
    assert lines[0].startswith("import os; ")
    assert not any(word in lines[0] for word in ("exec", "eval", "compile", "base64", "decode"))


def test_every_file_names_who_removes_it(repo: Path):
    """The first line of each file that install writes says what wrote it and what removes it."""
    for name in ("ddp_probe.pth", "ddp_probe.start", "ddp_probe_activator.py", "sitecustomize.py"):
        first = (repo / "sitecustomize_templates" / name).read_text().split("\n", 1)[0]
        assert first.startswith("# ddp_probe activator, version ")
        assert "python -m ddp_probe uninstall" in first


@pytest.mark.parametrize("via", ["sitecustomize", "pth"])
def test_without_site_nothing_starts(make_venv, via):
    """With -S an installed activator is not read, and nothing is said."""
    venv = make_venv()
    venv.install(via)
    assert venv.started("-S") == "False"
