"""Hosts that are network namespaces on one bridge, each with a loopback and an eth0 of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest

_PROGRAM = Path(__file__).resolve().parent / "named_host.py"
MASTER = "10.77.0.1"


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class Network:
    """Some hosts; the first has the address MASTER."""

    def __init__(self, names: str) -> None:
        self.names = names
        self._mark = "ddpp%d" % os.getpid()

    def build(self) -> None:
        """Create the namespaces and the bridge between them."""
        self.remove()  # those of an earlier process with this number
        bridge = self._mark + "-"
        _ip("netns", "add", bridge)
        _ip("-n", bridge, "link", "add", "br0", "type", "bridge")
        _ip("-n", bridge, "link", "set", "br0", "up")
        for name in self.names:
            place = self._mark + name
            _ip("netns", "add", place)
            _ip("-n", place, "link", "add", "eth0", "type", "veth", "peer", "name", "to" + name, "netns", bridge)
            _ip("-n", bridge, "link", "set", "to" + name, "master", "br0", "up")
            _ip("-n", place, "addr", "add", "%s/24" % self.address(name), "dev", "eth0")
            for interface in ("lo", "eth0"):
                _ip("-n", place, "link", "set", interface, "up")

    def remove(self) -> None:
        """Delete what was created."""
        for name in ("-", *self.names):
            subprocess.run(["ip", "netns", "del", self._mark + name], capture_output=True, check=False)

    def address(self, name: str) -> str:
        """Return the address of a host."""
        return "10.77.0.%d" % (1 + self.names.index(name))

    def cut(self, one: str, other: str) -> None:
        """Take away the routes between two hosts."""
        for here, there in ((one, other), (other, one)):
            _ip("-n", self._mark + here, "route", "add", "unreachable", self.address(there) + "/32")

    def pull(self, name: str) -> None:
        """Take the link of a host down at the other end: what it sends is lost, and nobody says so."""
        _ip("-n", self._mark + "-", "link", "set", "to" + name, "down")

    def start(self, name: str, command: List[Any], env: Dict[str, str], own: "tuple[Any, Any]" = ("", "")) -> "subprocess.Popen[str]":
        """Start a command on a host, which has its name there; `own` puts a folder of its own at a path that all hosts share."""
        words = ["ip", "netns", "exec", self._mark + name, sys.executable, _PROGRAM, name, *own, *command]
        return subprocess.Popen(list(map(str, words)), env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def network(names: str) -> Network:
    """Return hosts of these names, or skip the test if this system has no network namespaces for us."""
    if shutil.which("ip") is None or os.geteuid():
        pytest.skip("Network namespaces need root and the command ip")
    made = Network(names)
    try:
        made.build()
    except (OSError, subprocess.CalledProcessError) as exc:
        made.remove()
        pytest.skip("Network namespaces cannot be made here: %s %s" % (exc, getattr(exc, "stderr", "")))
    return made


def ended(processes: Any) -> List[int]:
    """Wait for processes; return their exit codes."""
    codes = []
    for process in processes:
        out, err = process.communicate(timeout=200)
        assert not process.returncode, out + err
        codes.append(process.returncode)
    return codes
