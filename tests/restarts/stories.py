"""Launches the attempts of a story, each as its truth says, and returns what the report says of a restart."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

HERE = Path(__file__).resolve().parent
_HOST = HERE.parent / "named_host.py"
_SHARED = "127.0.0.2"  # An address that both hosts see; that of localhost would be each host's own.
_LONGEST = 600


def truths() -> List[Dict[str, Any]]:
    """Return the stories and what is true of them."""
    lines = (HERE / "truths.jsonl").read_text(encoding="utf-8").splitlines()
    return list(map(json.loads, lines))


Story = Dict[str, Any]


def told(story: Story, folder: Path, armed: Callable[..., Dict[str, str]], port: int) -> Dict[str, Any]:
    """Launch all attempts of a story in one folder; return the report's `restart`, empty for null."""
    environment = armed(folder / "runs")
    for attempt in story["attempts"]:
        shutil.copy(str(HERE / "train.py"), str(folder / attempt.get("command", "train.py")))
        with _held(port) if attempt.get("port") == "taken" else contextlib.nullcontext():
            _launch(attempt, folder, environment, port)
    command = [sys.executable, "-m", "ddp_probe", "report", "--json"]
    answer: Dict[str, Any] = json.loads(_printed(command, folder, environment))
    return answer["restart"] or {}


def _printed(command: List[str], folder: Path, environment: Dict[str, str]) -> str:
    """Run a command to its end, whatever its exit code, and return what it prints."""
    program = subprocess.Popen(
        command,
        cwd=str(folder),
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if "torch.distributed.run" in command else None,
        universal_newlines=True,
        start_new_session=True,
    )
    try:
        return program.communicate(timeout=_LONGEST)[0]
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)


@contextlib.contextmanager
def _held(port: int) -> Iterator[None]:
    """Keep a port, as another job would."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", port))
        holder.listen(1)
        yield


def _launch(attempt: Dict[str, Any], folder: Path, environment: Dict[str, str], port: int) -> None:
    own = {**environment, "JOB": json.dumps(attempt)}
    if "slurm" in attempt:
        own.update(SLURM_JOB_ID="77", SLURM_RESTART_COUNT=str(attempt["slurm"]))
    program = attempt.get("command", "train.py")
    if "hosts" in attempt:
        _on_hosts(attempt["hosts"], [sys.executable, program], folder, own, port)
        return
    ranks, restarts = attempt.get("ranks", 1), attempt.get("max_restarts", 0)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=%d" % ranks]
    if restarts:  # As docs/launchers/torchrun.md has it.
        own["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
        command += ["--max_restarts=%d" % restarts, "--rdzv_backend=c10d"]
        command += ["--rdzv_endpoint=127.0.0.1:%d" % port, program]
    else:
        command += ["--max_restarts=0", "--master_addr=127.0.0.1", "--master_port=%d" % port, program]
    _printed(command, folder, own)


def _on_hosts(
    hosts: List[str],
    command: List[str],
    folder: Path,
    environment: Dict[str, str],
    port: int,
) -> None:
    """Start one rank on each host, which has a name of its own."""
    ranks = []
    for rank, host in enumerate(hosts):
        own = {**environment, "RANK": str(rank), "WORLD_SIZE": str(len(hosts)), "LOCAL_RANK": "0"}
        own.update(MASTER_ADDR=_SHARED, MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
        words = [sys.executable, str(_HOST), host, "", "", *command]
        ranks.append(subprocess.Popen(words, cwd=str(folder), env=own, stderr=subprocess.DEVNULL))
    try:
        for process in ranks:
            process.wait(_LONGEST)
    finally:
        for process in ranks:
            process.kill()


def is_told(story: Story, restart: Dict[str, Any]) -> bool:
    """Tell whether a report says what is true of a story."""
    helps = restart.get("helps", "") == story["restart"]
    hosts = restart.get("hosts", []) == story.get("without", [])
    return helps and hosts and os.path.basename(restart.get("checkpoint", "")) == story.get("from", "")
