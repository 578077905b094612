"""What a launcher asks of ranks in which no Python code runs: their stacks, as py-spy reads them from outside, or why they are not known."""

import sys
from typing import Sequence

import msgspec

from ddp_probe.attaching import py_spy
from ddp_probe.shared.schema import LauncherSilent


def main(arguments: Sequence[str]) -> int:
    """Print one line of JSON for each process, by its number; return 0."""
    for pid in map(int, arguments):
        dump = py_spy.read(pid, native=False)
        seen = LauncherSilent(child_pid=pid, threads=dump.threads, problem=dump.problem, allow=dump.allow)
        sys.stdout.write(msgspec.json.encode(seen, enc_hook=str).decode() + "\n")
        sys.stdout.flush()
    return 0
