"""On: every interpreter below the variable is started once, and loads the standard library only."""

import re
import sys

import pytest

_HEAVY = (
    "import sys; print([name for name in ('wrapt', 'structlog', 'msgspec', 'asyncio', 'logging', 'rich', 'jinja2', 'json') if name in sys.modules])"
)
_WAYS = [("oldest", "sitecustomize"), ("oldest", "pth"), ("newest", "sitecustomize"), ("newest", "pth"), ("debian", "pth")]


@pytest.mark.parametrize(("which", "via"), _WAYS)
def test_installed_starts_the_probe(make_venv, which, via):
    """After install, DDP_PROBE=1 starts the probe, also with -I, -E and -s, and loads nothing heavy."""
    venv = make_venv(which)
    venv.install(via)
    for options in ((), ("-I",), ("-E",), ("-s",)):
        assert venv.started(*options) == "True"
    assert venv.run(_HEAVY, DDP_PROBE="1").stdout == "[]\n"


def test_run_starts_the_probe_without_the_heavy_modules(run_python):
    """Under run, an interpreter that has wrapt and msgspec loads neither of them before torch."""
    done = run_python(["-m", "ddp_probe", "run", "--", sys.executable, "-c", "import ddp_probe.activation as a; print(a.state()); " + _HEAVY])
    assert (done.returncode, done.stdout, done.stderr) == (0, "armed\n[]\n", "")


@pytest.mark.parametrize("option", ["-I", "-E", "-S"])
def test_run_does_not_reach_isolated_interpreters(make_venv, option):
    """Under run, an interpreter with -I, -E or -S is off, and one line on stderr says why and what to do."""
    venv = make_venv()
    done = venv.probe("run", "--", venv.python, option, "-c", "import sys; print('ddp_probe' in sys.modules)")
    assert (done.returncode, done.stdout) == (0, "False\n")
    then = "Start it without -S." if option == "-S" else "'python -m ddp_probe install' works there."
    assert re.match(r"ddp_probe: not active: \S.* %s [\w -]+\. %s Nothing will be recorded\.\n\Z" % (option, re.escape(then)), done.stderr), (
        done.stderr
    )


def test_run_reaches_an_interpreter_with_no_user_site(make_venv):
    """Under run, -s makes no difference."""
    venv = make_venv()
    done = venv.probe("run", "--", venv.python, "-s", "-c", "import sys; print(sys.modules['ddp_probe.activation'].state() != 'off')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


def test_a_line_that_is_read_twice_starts_once(make_venv):
    """site reading the folder a second time starts the probe no second time."""
    venv = make_venv()
    venv.install("pth")
    code = "import sys, site; a = sys.modules['ddp_probe.activation']; life = a.lifecycle.lifecycle; p = life.process; site.addsitedir(%r, set())"
    code += "; print(life.process is p, a.state())"
    done = venv.run(code % str(venv.site), DDP_PROBE="1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "True armed\n", "")


def test_the_path_is_left_as_it_was(make_venv, repo, tmp_path):
    """A package that is loaded from a checkout leaves no entry on sys.path."""
    venv = make_venv()
    for path in (venv.site / "ddp_probe").iterdir():
        path.rename(tmp_path / path.name)
    (venv.site / "ddp_probe").rmdir()
    before = venv.run("import sys; print(sys.path)").stdout
    done = venv.run(["-m", "ddp_probe", "install"], cwd=repo)
    assert done.returncode == 0, done.stderr
    assert "is loaded from %s." % repo in done.stdout
    assert venv.started() == "True"
    assert venv.run("import sys; print(sys.path)", DDP_PROBE="1").stdout == before
