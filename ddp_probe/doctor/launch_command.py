"""What the environment and the launch command say of a launch: its launcher, its ranks and hosts, and at which address they meet."""

import os
import re
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from ddp_probe.activation.roles import Program, launcher_name, program
from ddp_probe.doctor.host import Host
from ddp_probe.shared.rank_info import rank_info

_PYTHON = re.compile(r"python(\d(\.\d+)?)?$")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_TORCHRUN = ("torchrun", "torch.distributed.launch")
# Options of torchrun and torch.distributed.launch without a value.
_SWITCHES = frozenset(
    "--standalone --no-python --no_python --run-path --run_path -m --module --use-env --use_env --use-agent-store --disable-use-libuv".split()
)


class ParsedCommand(NamedTuple):
    """A launch command, read."""

    words: Tuple[str, ...]
    variables: Dict[str, str]  # Set in the command itself, as in FOO=1 torchrun.
    python: str  # The interpreter, if the command names it.
    launcher: str  # Such as torchrun; empty for a plain program.
    options: Dict[str, str]  # Options of the launcher; - is written as _: nproc_per_node.
    script: str  # The training program; empty if it is unknown.
    is_module: bool
    arguments: Tuple[str, ...]  # Arguments of the training program.

    def number(self, name: str) -> Optional[int]:
        """Return an option that is a number; a range such as 1:2 counts as its end."""
        text = self.options.get(name, "").rpartition(":")[2]
        return int(text) if text.isdigit() else None


def read(words: Sequence[str]) -> ParsedCommand:
    """Read a command line."""
    variables, rest = _assignments(list(words))
    python = rest[0] if rest and _PYTHON.match(os.path.basename(rest[0])) else ""
    started = program(rest) if python else _of_script(rest)
    launcher = launcher_name(started) if started.kind in ("script", "module") else ""
    if launcher not in _TORCHRUN:
        is_program = started.kind in ("script", "module") and not launcher
        script = started.name if is_program and (python or started.name.endswith(".py")) else ""
        return ParsedCommand(tuple(words), variables, python, launcher, {}, script, started.kind == "module", started.args)
    options, after = _options(list(started.args))
    script = after[0] if after else ""
    return ParsedCommand(tuple(words), variables, python, launcher, options, script, "m" in options or "module" in options, tuple(after[1:]))


def _assignments(words: List[str]) -> Tuple[Dict[str, str], List[str]]:
    if words and os.path.basename(words[0]) == "env":
        words = words[1:]
    variables = {}
    while words and _ASSIGNMENT.match(words[0]):
        name, _, found_value = words.pop(0).partition("=")
        variables[name] = found_value
    return variables, words


def _of_script(words: List[str]) -> Program:
    return Program("script", words[0], tuple(words[1:])) if words else Program("none", "")


def _options(words: List[str]) -> Tuple[Dict[str, str], List[str]]:
    """Split the launcher's arguments into its options, and the training program with its own."""
    options: Dict[str, str] = {}
    while words and words[0].startswith("-") and words[0] != "--":
        word = words.pop(0)
        name, joined, given = word.partition("=")
        if not joined and name not in _SWITCHES and words:
            given = words.pop(0)
        options[name.lstrip("-").replace("-", "_")] = given
    return options, words[1:] if words[:1] == ["--"] else words


def of(host: Host) -> Optional[ParsedCommand]:
    """Return the launch command that doctor was given, or None."""
    return host.once("command", lambda: read(host.request.command)) if host.request.command else None


def variable(host: Host, name: str) -> str:
    """Return a variable as the launch command would see it."""
    command = of(host)
    return (command.variables.get(name) if command else None) or host.environ.get(name, "")


def inside(host: Host) -> bool:
    """Tell whether doctor itself was started as a rank of a launch."""
    return rank_info(host.environ).rank is not None


def hosts(host: Host) -> int:
    """Return the number of hosts."""
    command = of(host)
    number = command.number("nnodes") if command else None
    if number:
        return number
    text = next((host.environ[name] for name in ("SLURM_NNODES", "NNODES", "GROUP_WORLD_SIZE") if host.environ.get(name, "").isdigit()), "1")
    return int(text)


def is_rank_0_here(host: Host) -> bool:
    """Tell whether rank 0 starts on this host."""
    command = of(host)
    text = (command.options.get("node_rank") if command else None) or next(
        (host.environ[name] for name in ("GROUP_RANK", "NODE_RANK", "SLURM_NODEID") if name in host.environ), "0"
    )
    rank = rank_info(host.environ).rank if command is None else None
    return text in ("0", "") and (rank is None or rank == 0 or hosts(host) == 1)


def _endpoint(host: Host) -> Tuple[str, str]:
    """Return address and port of --rdzv_endpoint."""
    command = of(host)
    address, _, port = (command.options.get("rdzv_endpoint", "") if command else "").rpartition(":")
    return address, port


def master_address(host: Host) -> str:
    """Return where the ranks meet, from the command or the environment."""
    command = of(host)
    if command and "standalone" in command.options:
        return ""
    given = command.options.get("master_addr", "") if command else ""
    if command and command.launcher in _TORCHRUN:  # it sets MASTER_ADDR itself
        return given or _endpoint(host)[0]
    return given or variable(host, "MASTER_ADDR")


def master_port(host: Host) -> str:
    """Return the port, as text."""
    command = of(host)
    if command and "standalone" in command.options:
        return ""
    given = command.options.get("master_port", "") if command else ""
    if command and command.launcher in _TORCHRUN:
        return given or _endpoint(host)[1]
    return given or variable(host, "MASTER_PORT")
