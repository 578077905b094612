"""run puts nothing between a command and its caller."""

import os
import signal
import subprocess
import sys

import pytest

_RUN = ["-m", "ddp_probe", "run"]


@pytest.mark.parametrize("code", [0, 1, 2, 7, 255])
def test_the_exit_code_is_the_commands(run_python, code):
    """The exit code of the command comes through, also without a Python in it."""
    assert run_python([*_RUN, "--", "sh", "-c", "exit %d" % code]).returncode == code


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGINT", "SIGPIPE"])
def test_death_by_a_signal_is_the_commands(run_python, name):
    """A command that a signal ends is seen to have ended by that signal."""
    number = getattr(signal, name)
    assert run_python([*_RUN, "--", "sh", "-c", "kill -%d $$" % number]).returncode == -number


def test_a_signal_reaches_the_command(clean_env):
    """The process that run was started as is the command: a signal to it is handled there."""
    command = [sys.executable, *_RUN, "--", "sh", "-c", 'trap "echo caught; exit 9" TERM; echo ready; while :; do sleep 0.1; done']
    process = subprocess.Popen(command, env=clean_env(), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=30)[0] == "caught\n"
    assert process.returncode == 9


def test_bytes_pass_through(clean_env):
    """stdin, stdout and stderr carry the command's own bytes and nothing else."""
    data = bytes(range(256)) * 300
    done = subprocess.run(
        [sys.executable, *_RUN, "--", "sh", "-c", "cat; echo err >&2"], env=clean_env(), input=data, capture_output=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == (data, b"err\n")


def test_the_arguments_pass_through(run_python):
    """Everything after the first two dashes is passed on unchanged, including further dashes and empty words."""
    words = ["--", "-c", "--help", "", "a b", "--dir"]
    done = run_python([*_RUN, "--", sys.executable, "-c", "import sys; print(sys.argv[1:])", *words])
    assert done.stdout == "%r\n" % words


def test_a_broken_pipe_ends_the_command_as_ever(clean_env):
    """The command's SIGPIPE is not ignored: a writer whose reader has gone ends in silence."""
    command = '"$0" -m ddp_probe run -- yes | head -n 1'
    done = subprocess.run(["sh", "-c", command, sys.executable], env=clean_env(), capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("y\n", "")


def test_the_command_is_under_the_probe(run_python, repo, clean_env, tmp_path):
    """The command finds the probe on, the run folder as asked, its own PYTHONPATH behind ours, and every other variable as it was."""
    code = (
        "import ddp_probe.activation, os, sys\n"
        "print(ddp_probe.activation.state() != 'off', os.environ['DDP_PROBE'], os.environ['DDP_PROBE_DIR'], os.environ['DDP_PROBE_ECHO'])\n"
        "print(os.environ['PYTHONPATH'].split(os.pathsep)[1:])"
    )
    env = clean_env(DDP_PROBE_ECHO="all", PYTHONPATH=os.pathsep.join([str(repo), "/else"]))
    done = run_python([*_RUN, "--dir", "runs", "--", sys.executable, "-c", code], env=env, cwd=tmp_path)
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["True 1 %s all" % (tmp_path / "runs"), repr([str(repo), "/else"])]


def test_a_checkout_reaches_children_elsewhere(run_python, repo, clean_env, tmp_path):
    """A package that is found only because run was called in its folder is found by children in other folders."""
    code = "import os, subprocess, sys; os.chdir(%r); subprocess.call([sys.executable, '-c', %r])"
    inner = "import sys; print(sys.modules['ddp_probe.activation'].state() != 'off', %r in sys.path)" % str(repo)
    env = clean_env(PYTHONPATH=None)
    done = run_python([*_RUN, "--", sys.executable, "-c", code % (str(tmp_path), inner)], env=env, cwd=repo)
    assert done.stderr == ""
    assert done.stdout.startswith("True")


def test_a_missing_command_is_127(run_python):
    """A command that does not exist ends with 127 and says what to do."""
    done = run_python([*_RUN, "--", "no-such-command"])
    assert (done.returncode, done.stdout) == (127, "")
    assert [line.strip().split(":")[0] for line in done.stderr.splitlines()][1:] == ["why", "what to do"]


def test_a_command_that_may_not_run_is_126(run_python, tmp_path):
    """A file that is not executable ends with 126."""
    script = tmp_path / "train.py"
    script.write_text("print(1)\n")
    done = run_python([*_RUN, "--", str(script)])
    assert (done.returncode, done.stdout) == (126, "")
    assert "-- python %s" % script in done.stderr


def test_a_missing_first_line_interpreter_is_named(run_python, tmp_path):
    """A script whose interpreter is missing is not taken for a missing command."""
    script = tmp_path / "train"
    script.write_text("#!/no/such/python\n")
    script.chmod(0o755)
    done = run_python([*_RUN, "--", str(script)])
    assert done.returncode == 127
    assert "The interpreter named on its first line does not exist." in done.stderr


def _first_line(python):
    """Write what pip writes at the top of a command."""
    return "#!%s" % python if " " not in python else "#!/bin/sh\n'''exec' \"%s\" \"$0\" \"$@\"\n' '''" % python


@pytest.fixture
def instrumented(tmp_path):
    """A tool laid out as opentelemetry-instrument is: its package's folder holds a sitecustomize, and it puts that first on PYTHONPATH."""
    package = tmp_path / "lib" / "python3.11" / "site-packages" / "tool" / "auto"
    package.mkdir(parents=True)
    (package / "sitecustomize.py").write_text("import os; os.environ['TOOL_RAN'] = 'yes'\n")
    (package / "__init__.py").write_text(
        "import os, shutil, sys\n"
        "def run():\n"
        "    path = os.environ.get('PYTHONPATH', '')\n"
        "    os.environ['PYTHONPATH'] = os.path.dirname(os.path.abspath(__file__)) + os.pathsep + path\n"
        "    os.execv(shutil.which(sys.argv[1]), sys.argv[1:])\n"
    )
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text('#!/bin/sh\nexec "%s" "$@"\n' % sys.executable)
    python.chmod(0o755)
    script = tmp_path / "bin" / "tool-instrument"
    places = (_first_line(sys.executable), str(package.parent.parent))
    script.write_text("%s\nimport sys\nsys.path.insert(0, %r)\nfrom tool.auto import run\nrun()\n" % places)
    script.chmod(0o755)
    return tmp_path


_ASK = "import os, sys; print(os.environ.get('TOOL_RAN'), 'ddp_probe.activation' in sys.modules)"


def test_a_tool_that_shadows_us_is_named(run_python, instrumented, clean_env):
    """Under a tool that puts its own sitecustomize first nothing is recorded; run says so and names the tool, and the command runs as usual."""
    script = instrumented / "bin" / "tool-instrument"
    site = str(instrumented / "lib" / "python3.11" / "site-packages")
    env = clean_env(PYTHONPATH=os.pathsep.join([site, clean_env().get("PYTHONPATH", "")]))
    done = run_python([*_RUN, "--", script, sys.executable, "-c", _ASK], env=env)
    assert (done.returncode, done.stdout) == (0, "yes False\n")
    (line,) = done.stderr.splitlines()
    assert line.startswith("ddp_probe: not active: tool-instrument puts its own sitecustomize first (")
    assert "Nothing will be recorded." in line
    assert "python -m ddp_probe install" in line


def test_a_tool_below_a_folder_with_a_space_is_named(run_python, instrumented, clean_env, tmp_path, repo):
    """The same for a command of an environment whose path has a space, where pip writes a line of the shell in place of #!."""
    python = tmp_path / "my env" / "python"
    python.parent.mkdir()
    python.write_text('#!/bin/sh\nexec "%s" "$@"\n' % sys.executable)
    python.chmod(0o755)
    script = instrumented / "bin" / "tool-instrument"
    script.write_text(_first_line(str(python)) + "\nimport sys" + script.read_text().partition("\nimport sys")[2])
    site = str(instrumented / "lib" / "python3.11" / "site-packages")
    done = run_python([*_RUN, "--", script, sys.executable, "-c", _ASK], env=clean_env(PYTHONPATH=os.pathsep.join([site, str(repo)])))
    assert done.stdout == "yes False\n"
    assert done.stderr.startswith("ddp_probe: not active: tool-instrument puts its own sitecustomize first (")


@pytest.mark.parametrize("flag", ["-I", "-E"])
def test_an_interpreter_that_hears_nothing_is_named(run_python, flag, tmp_path):
    """Options that make Python ignore PYTHONPATH, in the middle of a longer command, are reported before it runs."""
    done = run_python([*_RUN, "--", "env", "A=b", sys.executable, "-u", flag, "-c", "print(1)"], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert done.stderr.startswith("ddp_probe: not active: %s -u %s ignores PYTHONPATH." % (sys.executable, flag))
