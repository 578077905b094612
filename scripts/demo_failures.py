"""Runs two MMEngine trainings that fail on a host without CUDA, prints the report of each, and runs them again with DDP_PROBE_FIX=auto."""

import json
import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import List, NamedTuple

PROGRAMS = Path(__file__).resolve().parent.parent / "tests" / "jobs"


class Failure(NamedTuple):
    """A training that fails: its program, what it is, and the cause that the report has to name."""

    program: str
    what: str
    cause: str


FAILURES = (
    Failure("01_runner_sets_cuda_device", "an unmodified Runner, launcher pytorch, backend gloo", "cuda_call_on_non_cuda_host"),
    Failure("02_runner_wraps_cpu_model", "the same, past init_dist", "device_ids_given_for_cpu_run"),
)


def run(failure: Failure, work: Path, fix: str) -> int:
    """Run one program over two ranks under the probe; what it prints goes to a file."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    work.mkdir()
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--master_addr=127.0.0.1", "--master_port=%d" % port]
    program = str(PROGRAMS / (failure.program + ".py"))
    command = [sys.executable, "-m", "ddp_probe", "run", "--dir", str(work / "runs"), "--", *torchrun, program]
    env = {**os.environ, **({"DDP_PROBE_FIX": fix} if fix else {})}
    with open(work / "output.txt", "wb") as output:
        return subprocess.run(command, cwd=work, env=env, stdout=output, stderr=output, check=False).returncode


def report(work: Path, *options: str) -> str:
    """Return what `report` prints of the run."""
    command = [sys.executable, "-m", "ddp_probe", "report", *options, str(work / "runs" / "latest")]
    env = {**os.environ, "COLUMNS": "76"}
    return subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=False).stdout


def named(work: Path) -> List[str]:
    """Return the causes that the report names."""
    return [finding["cause"] for finding in json.loads(report(work, "--json"))["findings"]]


def trained(work: Path) -> List[str]:
    """Return what rank 0 says of its remedies, whole, and of its training, each line cut to the terminal."""
    lines = (work / "output.txt").read_text(encoding="utf-8", errors="replace").splitlines()
    remedies = [line for line in lines if "rank 0" in line and "DDP_PROBE_FIX" in line]
    training = [line[:76] for line in lines if "Epoch(train)" in line or "Saving checkpoint" in line]
    return [part for line in remedies for part in textwrap.wrap(line, 76, subsequent_indent="  ", break_on_hyphens=False)] + training


def show(failure: Failure, folder: Path) -> bool:
    """Run it, report it, fix it; return whether all three went as they should."""
    work = folder / failure.program
    print("\n%s: %s" % (failure.program, failure.what))
    failed = run(failure, work, "")
    print("exit code %d. python -m ddp_probe report says:\n" % failed)
    print("\n".join("    " + line for line in report(work).splitlines()))
    again = folder / (failure.program + ".mended")
    code = run(failure, again, "auto")
    print("\nThe same command with DDP_PROBE_FIX=auto, exit code %d:\n" % code)
    print("\n".join("    " + line for line in trained(again)))
    saved = list(again.glob("work_dirs/epoch_1.pth"))
    return failed != 0 and named(work) == [failure.cause] and code == 0 and len(saved) == 1


def main() -> int:
    """Show all of them; 1 where one did not fail, was not named, or did not train in the end."""
    folder = Path(sys.argv[1])
    return 0 if not [failure for failure in FAILURES if not show(failure, folder)] else 1


if __name__ == "__main__":
    sys.exit(main())
