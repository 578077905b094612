"""What an interpreter's command line says about its program."""

import subprocess
import sys

import pytest

from ddp_probe.activation.roles import program

CASES = [
    (["python", "train.py", "--lr", "1"], ("script", "train.py", ("--lr", "1"))),
    (["python", "-u", "-W", "ignore", "train.py"], ("script", "train.py", ())),
    (["python", "-Wignore", "-X", "dev", "-m", "torch.distributed.run", "t.py"], ("module", "torch.distributed.run", ("t.py",))),
    (["python", "-um", "pkg.main", "-m", "x"], ("module", "pkg.main", ("-m", "x"))),
    (["python", "-mpkg"], ("module", "pkg", ())),
    (["python", "-c", "print(1)", "a"], ("code", "print(1)", ("a",))),
    (["python", "-Ic", "print(1)"], ("code", "print(1)", ())),
    (["python", "-Xfrozen_modules=off", "s.py"], ("script", "s.py", ())),
    (["python", "--check-hash-based-pycs", "always", "s.py"], ("script", "s.py", ())),
    (["python", "-"], ("none", "-", ())),
    (["python"], ("none", "", ())),
    (["python", "-m"], ("module", "", ())),
]


@pytest.mark.parametrize(("argv", "expected"), CASES, ids=[" ".join(case[0]) for case in CASES])
def test_program(argv, expected):
    """Interpreter options, bundled or with values, are told from the program."""
    found = program(argv)
    assert (found.kind, found.name, found.args) == expected


@pytest.mark.parametrize("options", [["-u", "-m", "probe_me"], ["-W", "ignore", "probe_me.py"], ["-um", "probe_me"]])
def test_command_line_while_site_runs(tmp_path, repo, interpreters, clean_env, options):
    """While site runs, every interpreter knows its program, also the module's name under -m."""
    (tmp_path / "probe_me.py").write_text("")
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nfrom ddp_probe.activation.roles import command_line, program\nfound = program(command_line())\nprint(found.kind, found.name)\n"
    )
    asked = 0
    for python in (each.path for each in interpreters):
        if subprocess.run([python, "-c", "import sitecustomize"], env=clean_env(), check=False, stderr=subprocess.DEVNULL).returncode == 0:
            continue  # this interpreter's distribution has its own, which comes first
        env = clean_env(PYTHONPATH="%s:%s" % (tmp_path, repo))
        done = subprocess.run([python, *options], cwd=tmp_path, env=env, stdout=subprocess.PIPE, check=True, timeout=60)
        kind = "script" if options[-1].endswith(".py") else "module"
        assert done.stdout.decode().split() == [kind, options[-1]], python
        asked += 1
    assert asked > 0


def test_orig_argv_is_what_proc_says():
    """sys.orig_argv, where there is one, and /proc/self/cmdline agree."""
    code = (
        "import sys; from ddp_probe.activation import roles\n"
        "first = roles.command_line()\n"
        "if hasattr(sys, 'orig_argv'): del sys.orig_argv\n"
        "assert roles.command_line() == first, first\n"
    )
    subprocess.run([sys.executable, "-B", "-c", code, "a", ""], check=True, timeout=60)
