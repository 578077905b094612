"""The command doctor: its forms, exit codes and mistakes."""

import json
import sys

import pytest

_STATIC = (
    "from ddp_probe.cli import main; import sys; code = main(['doctor', '--static', *sys.argv[1:]])\n"
    "print(code, [name for name in ('torch', 'mmengine') if name in sys.modules], file=sys.stderr)"
)


@pytest.fixture(scope="module")
def told(run_python, clean_env):
    """What doctor --static --json prints of this host, with a mistake in a variable."""
    return run_python(["-c", _STATIC, "--json"], env=clean_env(DDP_PROBE_HANG_AFTER="soon"), timeout=120)


def test_json_is_one_object(told):
    """Each check has its fields, as the command's page says; the exit code is that of a check that fails, and nothing of the job is imported."""
    found = json.loads(told.stdout)
    assert found["verdict"] == "found"
    assert told.stderr.splitlines()[-1] == "1 []"
    assert [check["slug"] for check in found["checks"] if check["status"] == "fail"] == ["variable-names"]
    keys = {"id", "slug", "title", "looks_at", "status", "saw", "remedy", "details", "seconds"}
    assert {frozenset(check) for check in found["checks"]} == {frozenset(keys)}
    assert len({check["id"] for check in found["checks"]}) == len(found["checks"])


def test_the_page_begins_with_the_verdict(told):
    """The page names how many fail, then each of them with what to do, and fits 80 columns."""
    from ddp_probe.doctor.check import Answer, Check, Result
    from ddp_probe.showing import doctor_page

    found = json.loads(told.stdout)["checks"]
    results = [
        Result(Check(each["id"], each["slug"], "", "", ""), Answer(each["status"], each["saw"], each["remedy"], tuple(each["details"])), 0.0)
        for each in found
    ]
    page = [line.text for line in doctor_page.lines(results, 80)]
    assert page[0].startswith("1 check fails, ")
    assert page[2] == "DOC404 variable-names fail"
    assert page[3].startswith("    DDP_PROBE_HANG_AFTER: The value must be")
    assert "    do: unset DDP_PROBE_HANG_AFTER" in page
    assert max(map(len, page)) <= 80 or all(len(line.split()) == 1 for line in page if len(line) > 80)


@pytest.mark.parametrize(
    ("words", "said"), [(["--nproc", "0"], "--nproc 0"), (["--time-limit", "0"], "--time-limit 0"), (["torchrun", "x.py"], "two dashes")]
)
def test_a_wrong_command_line(run_python, words, said):
    """A number of ranks or a time that cannot be, and a command without the two dashes, are usage errors."""
    done = run_python(["-m", "ddp_probe", "doctor", *words])
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "what to do:" in done.stderr


def test_explain_knows_the_checks(run_python):
    """explain prints a check's page by id or name, and lists all checks after the rules."""
    by_id, by_name = (run_python(["-m", "ddp_probe", "explain", name]).stdout for name in ("doc301", "shared-memory"))
    assert by_id == by_name
    assert by_id.startswith("DOC301 shared-memory\n")
    listed = run_python(["-m", "ddp_probe", "explain", "--all"]).stdout
    assert "  DOC301  shared-memory\n" in listed
    assert listed.index("DDP101") < listed.index("DOC101")


def test_a_check_that_raises_is_unknown(monkeypatch):
    """A fault of one check is told as such, and the others go on; the verdict is then undecided."""
    from ddp_probe.doctor.check import verdict
    from ddp_probe.doctor.checks import clock, limits
    from ddp_probe.doctor.examine import examine
    from ddp_probe.doctor.host import Host, Request

    monkeypatch.setattr(clock, "check", lambda host: 1 / 0)
    results = list(examine(Host(Request(), {}), [clock, limits]))
    assert [result.answer.status for result in results] == ["unknown", "ok"]
    assert "ZeroDivisionError" in results[0].answer.saw
    assert verdict(results) == "undecided"
    assert sys.modules["ddp_probe.doctor.checks.clock"] is clock


def test_below_torchrun_the_code_is_in_a_line_and_a_file(run_python, clean_env, tmp_path):
    """A check fails, and the rank ends with 0, so that torchrun prints no traceback; with --exit-code it ends with 1."""
    env = clean_env(DDP_PROBE_HANG_AFTER="soon", TORCHELASTIC_RUN_ID="none")
    done = run_python(["-m", "ddp_probe", "doctor", "--static", "--code-file", tmp_path / "code"], env=env, timeout=120)
    assert (done.returncode, (tmp_path / "code").read_text(encoding="ascii")) == (0, "1\n")
    assert done.stderr.endswith("ddp_probe: The exit code is 1; below torchrun the ranks end with 0, unless --exit-code is given.\n")
    assert run_python(["-m", "ddp_probe", "doctor", "--static", "--exit-code"], env=env, timeout=120).returncode == 1
