"""Runs two MMEngine trainings that fail on a host without CUDA, and prints what the probe wrote of rank 0, in 80 columns."""

import json
import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, Dict, Iterator, List

Event = Dict[str, Any]
PROGRAMS = Path(__file__).resolve().parent.parent / "tests" / "jobs"
FAILURES = {
    "01_runner_sets_cuda_device": "an unmodified Runner, launcher pytorch, backend gloo",
    "02_runner_wraps_cpu_model": "the same, past init_dist",
}


def run(name: str, folder: Path) -> int:
    """Run one program over two ranks under the probe; what it prints goes to a file."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    work = folder / name
    work.mkdir()
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--master_addr=127.0.0.1", "--master_port=%d" % port]
    command = [sys.executable, "-m", "ddp_probe", "run", "--dir", str(work / "runs"), "--", *torchrun, str(PROGRAMS / (name + ".py"))]
    with open(work / "output.txt", "wb") as output:
        return subprocess.run(command, cwd=work, stdout=output, stderr=output, check=False).returncode


def told(event: Event) -> Iterator[str]:
    """Yield what a person looks for in an event: where a model is, what was passed by whom, what was raised where."""
    if event["event"] == "mmengine.init_dist" and event["phase"] == "begin":
        yield "takes the %s branch: %s" % (event["branch"], event["branch_because"])
    if event["event"] == "ddp.init" and event["phase"] == "begin":
        yield "parameters on %s, device_ids %s" % (", ".join(event["placement"]["devices"]), event.get("device_ids"))
        yield "called at %s" % place(event["site"])
        yield from ("through %s" % place(line) for line in event.get("through", [])[-2:])
    if event["phase"] == "error":
        yield "%s: %s" % (event["failure"]["type"], event["failure"]["message"])
        yield "raised at %s" % place(event["failure"]["raised_at"])


def place(site: Event) -> str:
    """Return a line of source with the last two folders of its path."""
    return "%s:%s" % (os.sep.join(site["file"].split(os.sep)[-3:]), site["line"])


def show(work: Path) -> List[Event]:
    """Print rank 0's events that tell something, and return those that are failures."""
    file = next((work / "runs" / "latest").glob("rank00000.*"))
    events = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for event in events:
        lines = [textwrap.fill(text, 79, initial_indent="      ", subsequent_indent="        ") for text in told(event)]
        if lines:
            print("   %s/%s" % (event["event"], event["phase"]), *lines, sep="\n")
    return [event for event in events if event["phase"] == "error"]


def main() -> int:
    """Run and show both; 1 where one of them did not fail, or the probe did not see it."""
    folder, seen = Path(sys.argv[1]), []
    for name, what in FAILURES.items():
        print("\n%s: %s" % (name, what))
        code = run(name, folder)
        print("   exit code %d; rank 0 wrote:" % code)
        seen.append(code != 0 and bool(show(folder / name)))
    return 0 if all(seen) else 1


if __name__ == "__main__":
    sys.exit(main())
