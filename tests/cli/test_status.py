"""status reads files; it imports nothing of what it reports on."""

import json

import pytest

from ddp_probe.cli import _static

_KEYS = {"interpreter", "ddp_probe", "variable", "activator", "versions", "targets", "mistakes", "unarmed"}


def test_json_is_one_object_with_the_documented_keys(run_python, python):
    """status --json prints one object whose keys are those of the command's page."""
    done = run_python(["-m", "ddp_probe", "status", "--json"])
    found = json.loads(done.stdout)
    assert set(found) == _KEYS
    assert found["interpreter"]["executable"] == python
    assert set(found["activator"]) == {
        "state",
        "because",
        "files",
        "via",
        "version",
        "shadowed_by",
        "package",
        "installable",
        "missing",
        "uncompiled",
        "shared",
        "changed",
    }
    page = run_python(["-m", "ddp_probe", "status", "--help"]).stdout
    assert all(key in page for key in _KEYS | set(found["activator"]))


def test_one_child_answers_if_nothing_is_installed(run_python, clean_env):
    """Without an installation, status starts one child, which says the same as one for each question would."""
    code = (
        "import subprocess; from ddp_probe.activation.installer import child, state\n"
        "started = []; plain = subprocess.Popen\n"
        "subprocess.Popen = lambda *words, **more: started.append(1) or plain(*words, **more)\n"
        "found = state.state(); print(found.name, found.installable, len(started))\n"
        "print(child.proof_and_surroundings(child.ask_all()) == (child.proof(), child.surroundings()))\n"
    )
    done = run_python(code, env=clean_env(PYTHONPATH=None))
    assert done.stdout == "absent True 1\nTrue\n", done.stderr


def test_nothing_heavy_is_imported(run_python):
    """If no job runs on the host, status imports neither what reads logs nor email, which importlib.metadata needs."""
    code = (
        "import sys; from ddp_probe.reading import proc_files; proc_files.ROOT = 'nowhere'\n"
        "from ddp_probe.cli import status; status.collect()\n"
        "print(sorted({'msgspec', 'email', 'ddp_probe.shared.schema', 'ddp_probe.reading.find'} & set(sys.modules)))\n"
    )
    assert run_python(code).stdout == "[]\n"


def test_versions_are_those_of_the_metadata():
    """Of every distribution that is installed here, the version is the one that importlib.metadata returns."""
    metadata = pytest.importorskip("importlib.metadata")
    names = {each.metadata["Name"] for each in metadata.distributions()}
    assert len(names) > 10
    assert {name: _static.version(name) for name in names} == {name: metadata.version(name) for name in names}
    assert _static.version("no-such-distribution") is None


def test_targets_are_counted_and_listed_if_asked_for(run_python):
    """Without -v there is a line for each state; what is needed and would not be patched is named in any case."""
    short, long = (run_python(["-m", "ddp_probe", "status", *words]).stdout for words in ([], ["-v"]))
    assert len(short.splitlines()) < 24
    assert "torch.serialization.load" not in short
    assert "  would be patched torch.serialization.load\n" in long
    (count,) = [int(line.split()[-1]) for line in short.splitlines() if line.startswith("  would be patched")]
    assert count == sum(line.startswith("  would be patched ") for line in long.splitlines())


def test_a_target_that_is_needed_and_gone_is_named(monkeypatch, capsys):
    """The page without -v names it with the reason."""
    from ddp_probe.cli import main

    judge = _static.judge
    gone = _static.Verdict(_static.ABSENT, "It was renamed.")
    monkeypatch.setattr(_static, "judge", lambda module, name, trees: gone if name == "load" else judge(module, name, trees))
    main(["status"])
    page = capsys.readouterr().out
    assert "  absent           torch.serialization.load\n                     It was renamed.\n" in page


def test_the_targets_are_judged_without_importing_them(run_python):
    """Every target is judged by reading its file; torch and mmengine are not imported."""
    code = (
        "import json, sys; from ddp_probe.cli import status; targets = status.collect()['targets']\n"
        "print(json.dumps([targets, [name for name in ('torch', 'mmengine') if name in sys.modules]]))"
    )
    targets, imported = json.loads(run_python(code).stdout)
    assert imported == []
    assert targets
    assert all(row["state"] == _static.PATCHED for row in targets if not row["optional"]), targets


@pytest.mark.slow
def test_what_is_judged_is_what_an_import_finds(run_python):
    """Each target said to be there is there once its module can be imported, and each one said to be absent is not."""
    code = (
        "import functools, importlib\n"
        "from ddp_probe.activation.targets import TARGETS\n"
        "from ddp_probe.cli import _static\n"
        "trees = {}\n"
        "for row in TARGETS:\n"
        "    said = _static.judge(row.module, row.qualname, trees).state == _static.PATCHED\n"
        "    try:\n"
        "        functools.reduce(getattr, row.qualname.split('.'), importlib.import_module(row.module))\n"
        "        there = True\n"
        "    except AttributeError:\n"
        "        there = False\n"
        "    except ImportError:\n"  # a module that is there and needs a newer torch: mmengine's FSDP strategy under torch 1.12.1
        "        there = said and _static.module_file(row.module) is not None\n"
        "    if said != there:\n"
        "        print(row.module, row.qualname, said, there)\n"
    )
    done = run_python(code, timeout=120)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


@pytest.mark.parametrize(
    ("text", "qualname", "state", "why"),
    [
        ("def f(): pass", "f", _static.PATCHED, ""),
        ("try:\n    from x import f\nexcept ImportError:\n    f = None", "f", _static.PATCHED, ""),
        ("if True:\n    pass\nelse:\n    async def f(): pass", "f", _static.PATCHED, ""),
        ("def g():\n    f = 1", "f", _static.ABSENT, "This version's sample has no f."),
        ("class A:\n    def m(self): pass", "A.m", _static.PATCHED, ""),
        ("class A(B): pass", "A.m", _static.PATCHED, "A inherits it."),
        ("class A: pass", "A.m", _static.ABSENT, "This version's sample has no A.m."),
        ("def", "f", _static.UNREADABLE, ""),
    ],
)
def test_a_name_is_found_where_python_binds_it(tmp_path, monkeypatch, text, qualname, state, why):
    """Definitions, aliases and both branches of a condition count; names inside functions do not."""
    (tmp_path / "sample.py").write_text(text + "\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    verdict = _static.judge("sample", qualname, {})
    assert verdict.state == state
    assert verdict.why == why or state == _static.UNREADABLE


def test_a_missing_package_is_not_installed(run_python):
    """A target whose package is missing is not installed; one whose module is missing is absent."""
    assert _static.judge("no_such_package.module", "f", {}) == (_static.MISSING, "no_such_package is not installed.")
    assert _static.judge("json.no_such_module", "f", {}) == (_static.ABSENT, "This version has no module json.no_such_module.")


def test_a_mistyped_variable_is_named(run_python, clean_env):
    """A DDP_PROBE_ variable that does not exist, or holds what it may not hold, is named."""
    done = run_python(["-m", "ddp_probe", "status"], env=clean_env(DDP_PROBE_EHCO="1", DDP_PROBE_MAX_BYTES="many"))
    assert "mistake      DDP_PROBE_EHCO: " in done.stdout
    assert "mistake      DDP_PROBE_MAX_BYTES: " in done.stdout
