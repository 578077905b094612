"""Follows what `explain RULE RUN` prints, and adds nothing: its diff goes to patch, its lines for a shell to a shell."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple

from advice_table import JOBS, PROGRAMS, Row

from ddp_probe.judging.judge import Diagnosis, judge
from ddp_probe.reading.load_run import load

_SCONTROL = "#!/bin/sh\necho 127.0.0.1\n"


class Ended(NamedTuple):
    """How a start of the job has ended, and what the report says of it."""

    status: int
    output: str
    diagnosis: Diagnosis


class LogLine:
    """A folder with a copy of the program, the command that starts it, and the environment it is started in."""

    def __init__(self, row: Row, folder: Path, env: Dict[str, str], port: Callable[[], int]) -> None:
        self.row, self.folder, self.port = row, folder, port
        self.program = Path(shutil.copy(str(row.source), str(folder)))
        for piece in [JOBS / "pieces.py", JOBS / "runner_pieces.py", PROGRAMS / "settings.py", PROGRAMS / "cfg_pieces.py"]:
            shutil.copy(str(piece), str(folder))
        tool = folder / "bin" / "scontrol"
        tool.parent.mkdir()
        tool.write_text(_SCONTROL, encoding="ascii")
        tool.chmod(0o755)
        path = os.pathsep.join([str(tool.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
        self.env = {**env, "PATH": path, **{name: value for name, value in row.env.items() if value}}
        self.command = row.command
        self.setup: List[str] = []  # Lines for the shell that were printed.
        self.starts = 0

    def start(self) -> Ended:
        """Start the job as it stands now; its own files are gone before, so that each start is a first one."""
        for left in [*self.folder.glob("*.pth"), *self.folder.glob("work_dirs*")]:
            shutil.rmtree(str(left)) if left.is_dir() else left.unlink()
        self.starts += 1
        runs = self.folder / ("runs%d" % self.starts)
        port = str(self.port())
        env = {name: value.replace("{port}", port) for name, value in self.env.items()}
        env.update(DDP_PROBE_DIR=str(runs), PET_MASTER_PORT=port, PET_MASTER_ADDR="127.0.0.1")
        line = "; ".join([*self.setup, self.command.format(port=port, program=self.program.name)])
        done = _run(["bash", "-c", line], self.folder, env)
        return Ended(done.returncode, done.stdout + done.stderr, judge(load([str(runs / "latest")])))

    def state(self) -> List[str]:
        """Return what following can change."""
        return [*(path.read_text(encoding="utf-8") for path in sorted(self.folder.glob("*.py"))), self.command, *self.setup]

    def follow(self, rule: str, run_python: Callable[..., Any]) -> str:
        """Do what is printed; answer what was printed."""
        run = self.folder / ("runs%d" % self.starts) / "latest"
        printed = run_python(["-m", "ddp_probe", "explain", rule, str(run)], env={**self.env, "DDP_PROBE": "0"}, cwd=self.folder).stdout
        part = re.split(r"^%s [\w-]+$" % rule, printed, flags=re.MULTILINE)[0]  # The rule's page comes after it.
        lines = [line[4:] for line in part.splitlines() if line.startswith("    ")]
        begin = next((number for number, line in enumerate(lines) if line.startswith("--- ")), len(lines))
        patch = [line for line in lines[begin:] if not line.startswith("$ ")]  # patch passes over words that follow the last hunk.
        if patch:
            text = "\n".join(patch) + "\n"
            done = _run(["patch", "-p1", "--no-backup-if-mismatch"], self.folder, self.env, text)
            assert done.returncode == 0, part + done.stdout + done.stderr
        for line in (line[2:] for line in lines if line.startswith("$ ")):
            if re.match(r"(export|unset) ", line):
                self.setup.append(line)
            else:
                self.command = line.replace("{", "{{").replace("}", "}}")
        return part


def _run(command: List[str], folder: Path, env: Dict[str, str], text: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, cwd=str(folder), env=env, input=text, capture_output=True, text=True, timeout=120, check=False)
