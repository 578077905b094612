"""Keeps what a job has left under the probe: its run and its output, with neutral names in place of this machine's paths and name."""

import json
import re
import shutil
import site
import socket
import sys
import tempfile
from pathlib import Path
from typing import List, Sequence, Tuple

from ddp_probe.reading import ledger_file

REPO = Path(__file__).resolve().parent.parent.parent


class Neutral:
    """Takes the paths and the host's name of this machine out of a text."""

    def __init__(self, pairs: List[Tuple[str, str]], host: str) -> None:
        # Not after a digit: torch's account of its own build has gcc-toolset-13/root. A letter can be the end of an escaped line break.
        self._pairs = [(re.compile(r"(?<!\d)%s(?![\w-])" % re.escape(path)), name) for path, name in pairs]
        self._host = re.compile(r"(?<![\w-])%s(?![\w-])" % re.escape(host))

    def __call__(self, text: str) -> str:
        """Return the text with neutral names."""
        for path, name in self._pairs:
            text = path.sub(name, text)
        return self._host.sub("node1", text)


def neutral(work: Path, scratch: Path, programs: Sequence[Tuple[Path, str]]) -> Neutral:
    """Return what takes this machine's names out of the files of a job that ran in a folder."""
    pairs = [
        (str(work), "/job"),
        (str(scratch), "/scratch"),
        *((str(folder), name) for folder, name in programs),
        *((folder, "/env/site-packages") for folder in site.getsitepackages()),
        (sys.prefix, "/env"),
        (str(REPO), "/repo"),
        (sys.base_prefix, "/python"),
        (str(Path.home()), "/home/user"),
        (tempfile.gettempdir(), "/scratch"),
    ]
    return Neutral(pairs, socket.gethostname())


def keep(runs: Path, output: str, target: Path, change: Neutral) -> List[int]:
    """Write the output and the files of all runs to a folder; return how many characters each file has."""
    found = sorted(path for path in runs.glob("*") if path.is_dir() and not path.is_symlink())
    shutil.rmtree(str(target), ignore_errors=True)
    target.mkdir(parents=True)
    (target / "output.txt").write_text(change(output), encoding="utf-8")
    return [_keep(path, run, target, change, len(found) > 1) for run in found for path in _files(run)]


def _files(run: Path) -> List[Path]:
    """Return what is worth keeping."""
    return sorted(path for path in run.rglob("*") if ".json" in path.suffix or (path.suffix == ".ledger" and path.stat().st_size))


def _keep(path: Path, run: Path, target: Path, change: Neutral, several: bool) -> int:
    kept = target / run.name if several else target
    kept = kept / change(str(path.relative_to(run)))
    kept.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".ledger":
        kept, text = kept.with_name(kept.name + ".txt"), _neutral_lines(ledger_file.as_lines(path.read_bytes()), change)
    else:
        text = _thinned(change(path.read_text(encoding="utf-8")))
    kept.write_text(text, encoding="utf-8")
    return len(text)


def _neutral_lines(text: str, change: Neutral) -> str:
    """Take the names out of a ledger's texts; a path that ends there is followed by an escaped line feed."""
    rows = [json.loads(line) for line in text.splitlines()]
    changed = [dict(row, **{"is": change(row["is"])}) if "is" in row else row for row in rows]
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in changed)


def _thinned(text: str) -> str:
    """Take out of the line of coverage the targets that nothing came of."""
    return "".join([_without_routine(line) for line in text.splitlines(keepends=True)])


def _without_routine(line: str) -> str:
    if not line.startswith('{"event":"probe.coverage"'):
        return line
    event = json.loads(line)
    routine = ("patched", "never imported")
    targets = event["targets"]
    event["targets"] = [each for each in targets if each.get("calls") or each["state"] not in routine]
    return json.dumps(event, separators=(",", ":"), ensure_ascii=False) + "\n"
