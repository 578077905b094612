"""What docs/schedulers.md says can be done in a job script, an epilog and a pipeline is run as it is printed, over recorded jobs."""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import pytest
import yaml
from ports import free_port
from restarts.attempt_files import BROKEN, NOON, Launch

from ddp_probe.cli import doctor, report
from ddp_probe.judging.causes import GROUPS
from ddp_probe.judging.rules import modules, rule_of
from ddp_probe.showing import exit_codes

REPO = Path(__file__).resolve().parent.parent.parent
RECORDED = REPO / "tests" / "recorded" / "new"
FOUND, CLEAR, KILLED, DISK = "03_submodule_left_behind", "00_healthy_ddp", "12_killed_by_sigkill", "06_disk_full_while_saving"
TAKEN = "10_launch_on_taken_port"
_BLOCKS = re.findall(r"```(bash|yaml)\n(.*?)```", (REPO / "docs" / "schedulers.md").read_text(encoding="utf-8"), re.DOTALL)


def _block(kind: str, holds: str) -> str:
    """Return the one block of the page that holds a text."""
    (found,) = [text for language, text in _BLOCKS if language == kind and holds in text]
    return str(found)


class Done(NamedTuple):
    """How a script ended."""

    code: int
    out: str
    err: str
    called: List[str]  # Commands of the scheduler, with their arguments.


Shell = Callable[..., Done]


@pytest.fixture
def shell(tmp_path: Path, clean_env: Callable[..., Dict[str, str]]) -> Shell:
    """Run a script with this Python, and with stand-ins for commands that are not here: each writes down its call and ends with a code."""
    programs, calls = tmp_path / "programs", tmp_path / "calls"
    programs.mkdir()
    calls.touch()
    (programs / "python").write_text('#!/bin/sh\nexec "%s" "$@"\n' % sys.executable, encoding="utf-8")
    (programs / "python").chmod(0o755)

    def run(script: str, codes: Dict[str, int], runs: Path, **extra: str) -> Done:
        for name, code in codes.items():
            (programs / name).write_text('#!/bin/sh\necho "%s $*" >> %s\nexit %d\n' % (name, shlex.quote(str(calls)), code), encoding="utf-8")
            (programs / name).chmod(0o755)
        env = clean_env(PATH="%s:%s" % (programs, os.environ["PATH"]), DDP_PROBE_DIR=str(runs), **extra)
        done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=600, check=False)
        return Done(done.returncode, done.stdout, done.stderr, calls.read_text(encoding="utf-8").splitlines())

    return run


@pytest.fixture
def runs(tmp_path: Path) -> Callable[..., Path]:
    """Make a folder whose only run is a recorded job, or a rank of which nothing more is known."""

    def make(job: str, below: str = "runs") -> Path:
        folder = tmp_path / below
        folder.mkdir(parents=True)
        if job:
            shutil.copytree(str(RECORDED / job), str(folder / job))
        else:
            (folder / "open").mkdir()
            line = '{"event":"process.start","phase":"point","rank":0,"world_size":1}\n'
            (folder / "open" / "rank00000.node1.1.jsonl").write_text(line, encoding="utf-8")
        return folder

    return make


@pytest.mark.parametrize(
    ("job", "restarts", "requeued"),
    [(FOUND, "0", []), ("", "0", ["scontrol requeue 7"]), ("", "1", [])],
    ids=["found", "undecided", "undecided again"],
)
def test_a_job_script_requeues_once_what_is_undecided(shell: Shell, runs: Any, job: str, restarts: str, requeued: List[str]) -> None:
    """The script of the page ends with the job's own code; it requeues an undecided job the first time, and never one with a cause."""
    runs(job, "ddp_probe_runs/7")
    script = _block("bash", "#SBATCH")
    done = shell(script, {"srun": 5, "scontrol": 0}, Path("elsewhere"), SLURM_JOB_ID="7", SLURM_RESTART_COUNT=restarts)
    assert (done.code, done.err) == (5, "")
    assert done.called == ["srun python train.py", *requeued]
    assert done.out.startswith("DDP104 " if job else "undecided because: ")


@pytest.mark.skipif(shutil.which("jq") is None, reason="the lines of the page need jq")
@pytest.mark.parametrize(
    ("job", "what", "hosts"),
    [(FOUND, "fix-the-job", "node1"), (CLEAR, "nothing", ""), (KILLED, "requeue", "node1"), (DISK, "check-host", "node1")],
)
def test_the_cause_tells_the_job_from_the_host(shell: Shell, runs: Any, job: str, what: str, hosts: str) -> None:
    """The lines with jq print what to do about the first finding, and the hosts of its ranks."""
    script = _block("bash", "case $(jq") + _block("bash", "$guilty")
    assert shell(script, {}, runs(job)).out.split() == [what, *hosts.split()]


def test_every_cause_on_the_page_is_one_of_the_vocabulary() -> None:
    """The patterns name causes of the vocabulary and names of rules, each once."""
    named = re.findall(r"([\w*]+)/([\w*-]+)", " ".join(re.findall(r"^    (.*)\) echo", _block("bash", "case $(jq"), re.MULTILINE)))
    causes = [cause for cause, _ in named if cause != "*"]
    slugs = [slug for _, slug in named if slug != "*"]
    assert len(causes) > 8
    assert len(set(causes)) == len(causes)
    assert set(causes) <= {cause for group in GROUPS.values() for cause in group}
    assert set(slugs) <= {rule_of(module).slug for module in modules()}


@pytest.mark.parametrize("verdict", ["found", "clear", "undecided", "broken"])
def test_a_prolog_lets_only_a_failed_check_through(shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str], verdict: str) -> None:
    """The prolog of the page ends with 1, and keeps what doctor said, only if a check failed: not if it could not look or did not start."""
    stand_in = tmp_path / "stand_in"
    stand_in.write_text("#!/bin/sh\ncat said\nexit 1\n", encoding="utf-8")
    stand_in.chmod(0o755)
    if verdict != "broken":
        doctor._print(argparse.Namespace(json=True), verdict, [], {}, lambda width: [])  # A run of all checks would take seconds.
        (tmp_path / "said").write_text(capsys.readouterr().out, encoding="utf-8")
    done = shell(_block("bash", "doctor --static"), {}, tmp_path, PYTHON=str(stand_in), LOGS=str(tmp_path), SLURM_JOB_ID="7")
    kept = tmp_path / "doctor.7"
    assert (done.code, kept.exists()) == ((1, True) if verdict == "found" else (0, False))
    assert verdict != "found" or json.loads(kept.read_text(encoding="utf-8"))["verdict"] == "found"


@pytest.mark.parametrize(("job", "torchrun", "action"), [(FOUND, 1, "FailJob"), ("", 1, "Count"), (CLEAR, 0, "")], ids=["found", "undecided", "well"])
def test_a_pod_ends_with_the_code_that_its_policy_names(shell: Shell, runs: Any, job: str, torchrun: int, action: str) -> None:
    """The container of the page ends with a code for which the policy has one action, or with 0 if the job did."""
    spec = yaml.safe_load(_block("yaml", "kind: Job"))["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["restartPolicy"] == "Never"
    assert container["command"] == ["bash", "-c"]
    done = shell(container["args"][0], {"torchrun": torchrun}, runs(job))
    rules = [rule for rule in spec["podFailurePolicy"]["rules"] if "onExitCodes" in rule]
    assert {rule["onExitCodes"]["containerName"] for rule in rules} == {container["name"]}
    assert [rule["action"] for rule in rules if done.code in rule["onExitCodes"]["values"]] == ([action] if action else [])
    assert done.called == ["torchrun --nproc_per_node=8 train.py"]
    assert bool(done.code) == bool(action)


def test_a_pod_passes_a_signal_on(shell: Shell, runs: Any, tmp_path: Path) -> None:
    """If Kubernetes stops the pod, torchrun receives the signal, and the container waits for it to end before it reports."""
    (container,) = yaml.safe_load(_block("yaml", "kind: Job"))["spec"]["template"]["spec"]["containers"]
    torchrun = tmp_path / "programs" / "torchrun"
    stop = "trap 'echo stopped >> \"%s\"; exit 7' TERM\nwhile :; do kill -TERM $PPID; sleep 0.1; done\n" % (tmp_path / "calls")
    torchrun.write_text("#!/bin/sh\n" + stop, encoding="utf-8")  # It signals the shell that waits for it, as Kubernetes does.
    torchrun.chmod(0o755)
    done = shell(container["args"][0], {}, runs(FOUND))
    assert (done.code, done.called) == (11, ["stopped"])


def test_the_step_for_github_prints_annotations(shell: Shell, runs: Any, tmp_path: Path) -> None:
    """The last step of the workflow runs even if the training failed, prints an error and fails, and appends to the summary."""
    steps = yaml.safe_load(_block("yaml", "runs-on"))["jobs"]["train"]["steps"]
    done = shell(steps[-1]["run"], {}, runs(FOUND), GITHUB_WORKSPACE="/train", GITHUB_STEP_SUMMARY=str(tmp_path / "summary.md"))
    assert done.code == 1
    assert done.out.startswith("::error file=03_submodule_left_behind.py,line=24,title=DDP104 submodule-left-behind%2C ranks 0-1::")
    assert (tmp_path / "summary.md").read_text(encoding="utf-8").startswith("### ddp_probe: found\n")
    assert steps[-1]["if"] == "${{ !cancelled() }}"


def test_the_lines_for_gitlab_write_the_report_that_it_collects(shell: Shell, runs: Any, tmp_path: Path) -> None:
    """after_script writes the file that artifacts name, whatever the job's result is."""
    job = yaml.safe_load(_block("yaml", "after_script"))["train"]
    shell("\n".join(job["after_script"]), {}, runs(FOUND))
    assert job["artifacts"]["when"] == "always"
    assert (tmp_path / job["artifacts"]["reports"]["junit"]).read_text(encoding="utf-8").startswith("<?xml ")


def test_the_codes_on_the_page_are_those_of_the_commands() -> None:
    """The table has the codes of report and of doctor."""
    page = (REPO / "docs" / "schedulers.md").read_text(encoding="utf-8")
    rows = {int(code): verdict for code, verdict in re.findall(r"^\| (\d) \| (\w+):", page, re.MULTILINE)}
    assert {rows[code]: code for code in rows if code != 2} == doctor.CODES
    assert json.dumps(sorted(rows)) == "[0, 1, 2, 3]"


def _torchrun(tmp_path: Path, *codes: int) -> None:
    """Write a stand-in that ends with one code after the other."""
    (tmp_path / "codes").write_text("".join("%d\n" % code for code in codes), encoding="utf-8")
    program = tmp_path / "programs" / "torchrun"
    lines = ("echo torchrun >> calls", "code=$(head -n 1 codes)", "sed -i 1d codes", 'exit "$code"')
    program.write_text("#!/bin/sh\n%s\n" % "\n".join(lines), encoding="utf-8")
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("job", "ends", "code", "starts"),
    [
        (TAKEN, (1, 1, 0), 0, 3),
        ("", (1, 1, 1), 3, 2),
        (FOUND, (1, 0), 1, 1),
        (DISK, (1, 0), 1, 1),
        (CLEAR, (0,), 0, 1),
    ],
    ids=["yes", "unknown", "no", "after", "well"],
)
def test_a_loop_starts_again_what_failed_by_chance(
    shell: Shell, runs: Any, tmp_path: Path, job: str, ends: Tuple[int, ...], code: int, starts: int
) -> None:
    """The loop of the page goes on after chance, once more if nothing is known, and otherwise ends."""
    _torchrun(tmp_path, *ends)
    done = shell(_block("bash", "until torchrun"), {}, runs(job), PAUSE="0")
    assert (done.code, done.called, done.err) == (code, ["torchrun"] * starts, "")


def test_a_loop_ends_a_real_job_that_fails_in_its_code(shell: Shell, tmp_path: Path) -> None:
    """The loop of the page, around a real torchrun, ends after one start of a job whose code raises."""
    shutil.copy(str(REPO / "tests" / "restarts" / "train.py"), str(tmp_path))
    program = tmp_path / "programs" / "torchrun"
    launch = "exec python -m torch.distributed.run --nproc_per_node=1 --master_port=%d train.py" % free_port()
    program.write_text("#!/bin/sh\necho torchrun >> calls\n%s\n" % launch, encoding="utf-8")
    program.chmod(0o755)
    path = "%s:%s" % (REPO / "sitecustomize_templates", REPO)
    job = json.dumps({"does": "raises", "at": 2})
    done = shell(_block("bash", "until torchrun"), {}, tmp_path / "runs", PYTHONPATH=path, JOB=job, PAUSE="0")
    assert (done.code, done.called) == (1, ["torchrun"])
    assert "loss is nan" in done.out


@pytest.mark.parametrize(("job", "code"), [(TAKEN, 10), (FOUND, 13)])
def test_after_its_own_restarts_a_launch_gives_advice(shell: Shell, runs: Any, job: str, code: int) -> None:
    """The lines after torchrun's own restarts end with the code of the advice."""
    done = shell(_block("bash", "--max-restarts"), {"torchrun": 1}, runs(job))
    assert (done.code, done.called) == (code, ["torchrun --max-restarts=3 --nproc_per_node=8 train.py"])


@pytest.mark.parametrize(
    ("job", "restarts", "called"),
    [
        (TAKEN, "3", ["scontrol requeue 7"]),
        ("", "0", ["scontrol requeue 7"]),
        ("", "1", []),
        (FOUND, "0", []),
        (DISK, "0", []),
    ],
    ids=["yes", "unknown", "unknown again", "no", "after"],
)
def test_a_job_of_slurm_requeues_what_failed_by_chance(
    shell: Shell,
    runs: Any,
    job: str,
    restarts: str,
    called: List[str],
) -> None:
    """The job script requeues chance each time and an unknown cause once, and leaves the rest to a person."""
    runs(job, "ddp_probe_runs")
    script = _block("bash", "sbatch --exclude")
    variables = {"SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": restarts}
    done = shell(script, {"srun": 5, "scontrol": 0, "sbatch": 0}, Path("elsewhere"), **variables)
    assert (done.code, done.called) == (1, ["srun python train.py", *called])


@pytest.mark.skipif(shutil.which("jq") is None, reason="the lines of the page need jq")
def test_a_job_of_slurm_leaves_a_host_out(shell: Shell, tmp_path: Path) -> None:
    """If one host's card is broken, the job script submits the job again without that host."""
    Launch(tmp_path / "ddp_probe_runs", NOON, ("node1", "node7")).rank(0).rank(1, failure=BROKEN)
    script = _block("bash", "sbatch --exclude")
    done = shell(script, {"srun": 5, "scontrol": 0, "sbatch": 0}, Path("elsewhere"), SLURM_JOB_ID="7")
    assert done.called == ["srun python train.py", "sbatch --exclude=node7 job.sh"]


def test_a_policy_of_kubernetes_has_each_code_once() -> None:
    """The rules of the page have an action for every code of the advice, and the JobSet ends with them."""
    rules = yaml.safe_load(_block("yaml", "values: [2, 3, 10, 11]"))["podFailurePolicy"]["rules"]
    actions: Dict[int, str] = {}
    for rule in rules:
        actions.update(dict.fromkeys(rule["onExitCodes"]["values"], rule["action"]))
    assert sorted(actions) == [2, 3, 10, 11, 12, 13]
    assert {code for code, action in actions.items() if action == "FailJob"} == {12, 13}
    job_set = yaml.safe_load(_block("yaml", "FailJobSet"))["failurePolicy"]
    assert job_set["rules"] == [{"action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]}]


def test_the_codes_of_the_advice_are_on_the_page() -> None:
    """The second table of the page has the codes of --exit-by restart, and its help has them as well."""
    page = (REPO / "docs" / "schedulers.md").read_text(encoding="utf-8")
    codes = set(map(int, re.findall(r"^\| `(\d+)` \|", page, re.MULTILINE)))
    assert codes == {0, 2, *exit_codes.OF_RESTART.values()}
    of_help = str(report.__doc__).partition("--exit-by")[2]
    assert set(map(int, re.findall(r"^ +(\d+)  ", of_help, re.MULTILINE))) == codes
