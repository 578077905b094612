"""A user's own sitecustomize and usercustomize run once and as ever, whichever way the probe came in."""

import zipfile

import pytest

_WRITE = "import os\nwith open(os.environ['CHAIN_LOG'], 'a') as file:\n    file.write(__name__ + '\\n')\n"
_WAYS = [
    ("oldest", "sitecustomize"),
    ("newest", "sitecustomize"),
    ("oldest", "pth"),
    ("newest", "pth"),
    ("newest", "auto"),
    ("debian", "pth"),
    ("oldest", "run"),
    ("newest", "run"),
    ("debian", "run"),
]
_RAISING = {
    "an error": "raise ValueError('boom')",
    "a missing module": "import no_such_module",
    "an ImportError of its own name": "raise ImportError('no', name='sitecustomize')",
    "a syntax error": "def",
    "an exit": "raise SystemExit(3)",
    "an interrupt": "raise KeyboardInterrupt",
}


class Chain:
    """A venv with a sitecustomize and a usercustomize of the user's, and the probe in one of three ways."""

    def __init__(self, venv, via, folder, theirs):
        self.venv, self.via, self.log, self.theirs = venv, via, folder / "log", folder / "theirs"
        self.theirs.mkdir()
        (self.theirs / "sitecustomize.py").write_text(_WRITE + theirs)
        (self.theirs / "usercustomize.py").write_text(_WRITE)
        self.extra = {"CHAIN_LOG": str(self.log), "PYTHONUSERBASE": str(folder)}
        if via == "sitecustomize":  # ours wins only over what comes after it on the path
            (venv.site / "z_theirs.pth").write_text("%s\n" % self.theirs)
        else:
            self.extra["PYTHONPATH"] = str(self.theirs)

    def native(self, code):
        """Run code without the probe."""
        return self._run([self.venv.python, "-c", code])

    def ours(self, code):
        """Run code with the probe on, in this way."""
        if self.via != "run":
            self.venv.install(self.via)
            return self._run([self.venv.python, "-c", code], DDP_PROBE="1")
        # The command that starts the run is an interpreter of its own: it may not meet theirs.
        return self._run(["-m", "ddp_probe", "run", "--", "env", *("%s=%s" % pair for pair in self.extra.items() if pair[0] != "PYTHONPATH")], code)

    def _run(self, args, code=None, **more):
        if code is None:
            return self.venv.run(args[1:], **{**self.extra, **more})
        script = 'export PYTHONPATH="$PYTHONPATH:%s"; exec "$0" -c "$1"' % self.theirs
        return self.venv.run([*args, "sh", "-c", script, self.venv.python, code])

    def said(self):
        """Return which of the user's two have run."""
        return self.log.read_text().split() if self.log.exists() else []


@pytest.mark.parametrize(("which", "via"), _WAYS)
def test_theirs_run_once(make_venv, tmp_path, which, via):
    """The user's sitecustomize and usercustomize run once each, in their order, and the probe is started."""
    chain = Chain(make_venv(which, system=True), via, tmp_path, "answer = 42\n")
    code = "import sys; print(sys.modules['sitecustomize'].answer, sys.modules['sitecustomize'].__spec__.origin, 'usercustomize' in sys.modules)"
    native = chain.native(code)
    said = chain.said()
    assert said == ["sitecustomize", "usercustomize"]
    chain.log.unlink()
    ours = chain.ours(code + "; assert sys.modules['ddp_probe.activation'].state() != 'off'")
    assert (ours.returncode, ours.stdout, ours.stderr) == (0, native.stdout, native.stderr)
    assert chain.said() == said


@pytest.mark.sample(8)
@pytest.mark.parametrize("fault", sorted(_RAISING))
@pytest.mark.parametrize(("which", "via"), _WAYS)
def test_theirs_raises_as_ever(make_venv, tmp_path, which, via, fault):
    """Where the user's sitecustomize raises, exit code, stdout and the last line of stderr are those of a start without the probe."""
    chain = Chain(make_venv(which, system=True), via, tmp_path, _RAISING[fault] + "\n")
    code = "import sys; print('sitecustomize' in sys.modules)"
    native, said = chain.native(code), chain.said()
    if chain.log.exists():
        chain.log.unlink()
    ours = chain.ours(code)
    assert (ours.returncode, ours.stdout, ours.stderr.splitlines()[-1:]) == (native.returncode, native.stdout, native.stderr.splitlines()[-1:])
    if native.returncode == 0:  # an interrupt shows a traceback, and ours has one frame more
        assert ours.stderr == native.stderr
        assert "True" in chain.ours("import sys; print(sys.modules['ddp_probe.activation'].state() != 'off')").stdout
    assert chain.said()[: len(said)] == said


def test_theirs_run_once_where_run_meets_an_installed_activator(make_venv, tmp_path):
    """run over an installed activator passes that one over: theirs runs once and nothing loops."""
    chain = Chain(make_venv(system=True), "sitecustomize", tmp_path, "")
    chain.venv.install("sitecustomize")
    done = chain.venv.probe("run", "--", chain.venv.python, "-c", "import sys; print(sys.modules['sitecustomize'].__spec__.origin)", **chain.extra)
    assert (done.returncode, done.stdout, done.stderr) == (0, "%s\n" % (chain.theirs / "sitecustomize.py"), "")
    assert chain.said() == ["sitecustomize", "usercustomize"] * 3  # in the command, in the interpreter that proves it, and in what it runs


@pytest.mark.parametrize("which", ["oldest", "newest"])
def test_theirs_may_be_zipped(make_venv, tmp_path, which):
    """A sitecustomize inside a zip file on the path is found and run, also where zipimport is of the old kind."""
    venv = make_venv(which)
    with zipfile.ZipFile(tmp_path / "theirs.zip", "w") as archive:
        archive.writestr("sitecustomize.py", "answer = 42\n")
    (venv.site / "z_theirs.pth").write_text("%s\n" % (tmp_path / "theirs.zip"))
    venv.install("sitecustomize")
    done = venv.run("import sys; print(sys.modules['sitecustomize'].answer, sys.modules['ddp_probe.activation'].state() != 'off')", DDP_PROBE="1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "42 True\n", "")


@pytest.mark.parametrize("via", ["pth", "run"])
def test_the_distributions_own_still_runs(make_venv, via):
    """Debian's own sitecustomize is the one in sys.modules, as without the probe."""
    venv = make_venv("debian")
    code = "import sys; print(getattr(sys.modules.get('sitecustomize'), '__file__', None))"
    native = venv.run(code)
    if via == "pth":
        venv.install("auto")
        ours = venv.run(code, DDP_PROBE="1")
    else:
        ours = venv.probe("run", "--", venv.python, "-c", code)
    assert (ours.returncode, ours.stdout, ours.stderr) == (0, native.stdout, native.stderr)


def test_an_empty_entry_on_pythonpath_still_means_the_working_folder(make_venv, tmp_path):
    """A PYTHONPATH that ends in a colon finds the sitecustomize of the working folder, under run as without it."""
    venv = make_venv()
    (tmp_path / "sitecustomize.py").write_text("answer = 42\n")
    code = "import sys; print(sys.modules['sitecustomize'].answer)"
    for args in (["-c", code], ["-m", "ddp_probe", "run", "--", venv.python, "-c", code]):
        done = venv.run(args, cwd=tmp_path, PYTHONPATH="/nowhere:")
        assert (done.returncode, done.stdout, done.stderr) == (0, "42\n", "")


def test_one_that_hands_over_to_ours_runs_once(make_venv, tmp_path):
    """A sitecustomize that comes first on the path, stays on it and runs the next one, which is ours, is not run again by ours."""
    venv = make_venv()
    venv.install("sitecustomize")
    (tmp_path / "sitecustomize.py").write_text(
        _WRITE + "import importlib.util, sys\n"
        "from importlib.machinery import PathFinder\n"
        "spec = PathFinder.find_spec('sitecustomize', [entry for entry in sys.path if entry != os.path.dirname(__file__)])\n"
        "try:\n    spec.loader.exec_module(importlib.util.module_from_spec(spec))\nexcept ImportError:\n    pass\n"
    )
    log = tmp_path / "log"
    done = venv.run(
        "import sys; print(sys.modules['ddp_probe.activation'].state() != 'off')", DDP_PROBE="1", PYTHONPATH=str(tmp_path), CHAIN_LOG=str(log)
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
    assert log.read_text().split() == ["sitecustomize"]
