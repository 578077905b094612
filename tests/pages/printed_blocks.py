"""What the pages show of reports, messages and files, printed now: a function for each block, given the folder of a job."""

import json
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any, List

import shebang
from ledger_books import Book, Call, born, returned
from page_blocks import REPO
from page_scene import FOLDER, Scene, lines_of

from ddp_probe.activation.installer import child, installation, locations
from ddp_probe.doctor.check import Check, Result
from ddp_probe.doctor.checks import activator, launcher_recorded, run_folder_writable
from ddp_probe.doctor.host import Host, Request
from ddp_probe.judging.judge import judge
from ddp_probe.reading.load_run import from_lines
from ddp_probe.shared import schema
from ddp_probe.showing import doctor_page, standstill_words
from ddp_probe.traced.record import Recorder

CARDS_UNKNOWN, HEALTHY, BACKWARD = "02_runner_does_not_know_cards", "00_healthy_ddp", "08_backward_skipped_on_one_rank"
DEVICE_IDS = "03_ddp_device_ids_on_cpu"
_SITE = "/opt/train/lib/python3.8/site-packages"

_TEMPORARY = shlex.quote(os.path.join(tempfile.gettempdir(), "ddp_probe_runs"))


def cards_unknown(scene: Scene) -> str:
    """The report of the README."""
    scene.job(CARDS_UNKNOWN)
    return scene.shown("report")


def backward_skipped(scene: Scene) -> str:
    """A rank that was missing from a backward pass."""
    scene.job(BACKWARD)
    return scene.shown("report")


def checkpoint_cut_off(scene: Scene) -> str:
    """The first lines about a checkpoint that has lost its end."""
    whole = (REPO / "tests" / "checkpoints" / "corpus" / "new" / "trained-zip-2.pt").read_bytes()
    (scene.folder / "epoch_12.pth").write_bytes(whole[: len(whole) * 3 // 5])
    return _piped(scene, "head -n 3", "checkpoint", "epoch_12.pth")


def cards_of_ranks(scene: Scene) -> str:
    """The table of a healthy run on four cards."""
    scene.job("00_healthy_runner_on_cards")
    return _piped(scene, "grep -A 4 '^ranks '", "report")


def change_applied(scene: Scene) -> str:
    """What patch prints once it has the change of a finding."""
    run = scene.job(DEVICE_IDS)
    (run.parent / "latest").symlink_to(run.name)
    shown = _piped(scene, "patch -p1", "explain", "--diff", "DDP106", "latest")
    assert "if device.type != 'cpu' else None" in (scene.folder / "train.py").read_text(encoding="utf-8")
    return shown


def bundle_written(scene: Scene) -> str:
    """The last lines of bundle; the size of the archive differs between machines."""
    scene.job(DEVICE_IDS)
    return re.sub(r"[\d.]+ KiB", "7 KiB", _piped(scene, "tail -n 3", "bundle"))


def _piped(scene: Scene, behind: str, *words: str) -> str:
    """Return a command of the probe piped into another one, as a person types it, and what is printed."""
    command, _, printed = scene.shown(*words).partition("\n")
    shell = ["bash", "-c", behind]
    text = subprocess.check_output(shell, input=printed + "\n", cwd=scene.folder, text=True, timeout=60)
    return "%s | %s\n%s" % (command, behind, text.rstrip("\n"))


def standstill_line(_scene: Scene) -> str:
    """What a launcher says while its ranks wait."""
    log = "ledger 0-3 all_reduce 16 float32 at /train/train.py:12 x3\nledger 3 dataloader at /train/train.py:9 open\n"
    return "\n".join(standstill_words.lines(judge(from_lines(log + "ledger 0-2 all_reduce 16 float32 at /train/train.py:12 open"))))


def no_run(scene: Scene) -> str:
    """A folder without runs, and a Python without the probe."""
    return scene.shown("report")


def _of_doctor(scene: Scene, check: Check, answer: Any) -> List[str]:
    lines = [line.text for line in doctor_page.lines([Result(check, answer, 0.0)], 4000)]  # so wide that no path wraps
    return [scene.of_pages(line) for line in lines if line.startswith((check.id, "    "))]


def _bare_python(folder: Path, *modules: str) -> Path:
    """Make a Python in which nothing is installed, with empty modules in place of the packages that the probe needs."""
    venv.create(str(folder), symlinks=True)
    (site,) = folder.glob("lib/python3.*/site-packages")
    for name in modules:
        (site / (name + ".py")).touch()
    return folder / "bin" / "python"


def _of_another(text: str, python: Path) -> str:
    """Name another environment's Python as the pages do; Python 3.8 needs one more package."""
    text = text.replace(str(python.parent), "/usr/local/bin").replace(FOLDER + "/venv/bin", "/usr/local/bin")
    return text.replace("msgspec, typing_extensions are", "msgspec are")


def another_python(scene: Scene) -> str:
    """A torchrun whose Python has no activator, while the probe is installed for this one."""
    python = _bare_python(scene.folder / "venv")
    torchrun = python.with_name("torchrun")
    torchrun.write_text(shebang.of(python), encoding="utf-8")
    torchrun.chmod(0o755)
    host = Host(Request(command=(str(torchrun),)))
    host.once("activator", lambda: activator.state.State("active", "", [], "pth", "", "", "", True, [], []))
    return _of_another("\n".join(_of_doctor(scene, launcher_recorded.CHECK, launcher_recorded.check(host))), python)


def isolated(scene: Scene) -> str:
    """`run` of a Python that ignores PYTHONPATH."""
    return _not_active(scene, ["-I", "train.py"], *child.TO_RECORD)


def without_site(scene: Scene) -> str:
    """`run` of a Python that skips site-packages."""
    return _not_active(scene, ["-S", "train.py"])


def lacks_packages(scene: Scene) -> str:
    """`run` of a Python without the packages."""
    return _not_active(scene, ["train.py"])


def _not_active(scene: Scene, arguments: List[str], *modules: str) -> str:
    python = _bare_python(scene.folder / "venv", *modules)
    (scene.folder / "train.py").touch()
    command = [sys.executable, "-m", "ddp_probe", "run", "--", str(python), *arguments]
    subprocess.run(command, check=True, timeout=60, env={**os.environ, "PYTHONPATH": str(REPO)})
    said = _of_another(scene.said(), python)
    return "$ python -m ddp_probe run -- /usr/local/bin/python %s\n%s" % (" ".join(arguments), said)


def foreign_sitecustomize(_scene: Scene) -> str:
    """What install says of a sitecustomize that comes first."""
    return "$ python -m ddp_probe install --via sitecustomize\n%s" % installation._shadowed(
        _SITE + "/sitecustomize.py", "/usr/lib/python3.8/sitecustomize.py"
    )


def read_only(_scene: Scene) -> str:
    """What install says of a folder that this user may not write to."""
    return "$ python -m ddp_probe install\n%s" % locations.read_only(_SITE)


def unwritable(scene: Scene) -> str:
    """What a rank says if its run's folder cannot be made."""
    (scene.folder / "ddp_probe_runs").write_text("", encoding="utf-8")
    folder = str(scene.folder / "ddp_probe_runs" / "20261122-084908-3106-8800")
    Recorder(folder, lambda: "rank00000.node1.3431", {"rank": 0}, max_bytes=1 << 20).point(schema.Restored())
    return scene.said()


def unwritable_before(scene: Scene) -> str:
    """What doctor says of the same folder."""
    (scene.folder / "ddp_probe_runs").write_text("", encoding="utf-8")
    return "\n".join(_of_doctor(scene, run_folder_writable.CHECK, run_folder_writable.check(Host(Request())))).replace(
        _TEMPORARY, "/tmp/ddp_probe_runs"
    )


def no_file(scene: Scene) -> str:
    """A healthy run without the file of rank 1."""
    run = scene.job(HEALTHY)
    _remove(run, "rank00001*")
    return scene.shown("report", "--brief", run.name)


def no_file_next(scene: Scene) -> str:
    """What the whole report says of it."""
    _remove(scene.job(HEALTHY), "rank00001*")
    return _why(scene.printed("report"))


def killed_without_launcher(scene: Scene) -> str:
    """A run in which rank 1 was killed, without the file of its launcher."""
    run = scene.job(HEALTHY)
    _remove(run, "launcher*")
    _remove(run, "rank00001*.ledger.txt")
    (log,) = run.glob("rank00001*.jsonl")
    log.write_text("\n".join(log.read_text(encoding="utf-8").splitlines()[:5]) + "\n", encoding="utf-8")
    return _why(scene.printed("report"))


def _remove(run: Path, pattern: str) -> None:
    for path in run.glob(pattern):
        path.unlink()


def _why(report: str) -> str:
    """Return the paragraph of a report that says why it is undecided."""
    return next(part for part in report.split("\n\n") if part.startswith("undecided: "))


def faults(scene: Scene) -> str:
    """A run whose rank 0 has switched a probe off."""
    run = scene.job(HEALTHY)
    (log,) = run.glob("rank00000*.jsonl")
    events = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    failure = {"type": "AttributeError", "message": "'NoneType' object has no attribute 'shape'"}
    own = {"event": "probe.fault", "phase": "point", "probe": "load", "count": 5, "switched_off": True, "failure": failure}
    envelope = {name: events[-1][name] for name in ("ts", "mono_ns", "seq", "rank", "local_rank", "world_size", "host", "pid", "run")}
    events[-1].update(faults={"load": 5}, seq=envelope["seq"] + 1)
    events.insert(-1, {**envelope, **own})
    log.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    said = [line for line in scene.printed("report").splitlines() if line.startswith("  faults ")]
    return "\n".join([*said, "", scene.shown("logs", "--event", "probe.fault")])


def mistyped(scene: Scene) -> str:
    """What status says of a value that cannot be read."""
    os.environ["DDP_PROBE_HANG_AFTER"] = "soon"
    try:
        said = scene.printed("status")
    finally:
        del os.environ["DDP_PROBE_HANG_AFTER"]
    return "\n".join(line for line in said.splitlines() if line.startswith("mistake "))


def watch_table(scene: Scene) -> str:
    """What watch shows of four ranks that are there, one of them outside the barrier of the others."""
    run = scene.folder / "ddp_probe_runs" / "20261122-063335-29000-f8fa"
    run.mkdir(parents=True)
    for rank in range(4):
        last = [] if rank == 2 else [Call(op="barrier", seq=202, ago=14, group="0-3", site="/train/train.py:16:main")]
        _rank(run, rank, [call._replace(site="/train/train.py:12:main", ago=14.5) for call in returned(200, 201, group="0-3")] + last)
    return re.sub(r"\n\S+ UTC", "\n06:34:15 UTC", re.sub(r"\b\d\ds\b", "14s", scene.shown("watch", "--once")))


def _rank(run: Path, rank: int, calls: List[Call]) -> None:
    """Write the ledger and the log of a rank whose process is this one."""
    host, pid = platform.node(), os.getpid()
    stem = "rank%05d.%s.%d" % (rank, host, pid)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    book = Book(run / (stem + ".ledger"), rank, 4, pid, host, born(pid), boot, 100.0)
    for call in calls:
        book.call(call)
    book.write()
    start = {"event": "process.start", "phase": "point", "ts": "2026-11-22T06:33:35.000000Z", "rank": rank, "pid": pid, "host": host}
    (run / (stem + ".jsonl")).write_text(json.dumps(start, separators=(",", ":")) + "\n", encoding="utf-8")


def pth_line(_scene: Scene) -> str:
    """The line that install writes."""
    text = (REPO / "sitecustomize_templates" / "ddp_probe.pth").read_text(encoding="utf-8")
    return next(line for line in text.splitlines() if not line.startswith("#"))


def example_of_a_rule(_scene: Scene) -> str:
    """The first example of the rule that names a job's own exception."""
    return (REPO / "tests/rules/own-exception/01-log-of-one-rank-has-its-exception-and-nothing-else.log").read_text(encoding="utf-8").rstrip("\n")


_JQ = re.compile(r"^\$ (?:head -n 1|tail -n 1|sed -n (\d+)p) (\S+) \| jq -c '\{([\w, ]+)\}'$", re.MULTILINE)


def lines_of_log(scene: Scene, block: str) -> str:
    """Do what each `head`, `tail` or `sed` of a block, and then `jq -c '{…}'`, do with a log of the README's run."""
    run = scene.job(CARDS_UNKNOWN)
    shown = ["$ cd ddp_probe_runs/" + run.name] * block.startswith("$ cd ")
    for found in _JQ.finditer(block):
        lines = {number: line for (file, number), line in lines_of(run).items() if file == found.group(2)}
        number = int(found.group(1)) if found.group(1) else min(lines) if "head" in found.group(0) else max(lines)
        event = json.loads(lines[number])
        picked = {name: event.get(name) for name in found.group(3).split(", ")}
        shown += [found.group(0), scene.of_pages(json.dumps(picked, separators=(",", ":"), ensure_ascii=False))]
    return "\n".join(shown)


def warning_line(scene: Scene) -> str:
    """The warning that the ranks of the README's run printed once."""
    output = (scene.job(CARDS_UNKNOWN) / "output.txt").read_text(encoding="utf-8")
    return scene.of_pages(next(line for line in output.splitlines() if line.startswith("ddp_probe: rank ")))


def evidence(scene: Scene) -> str:
    """The evidence of the README's report."""
    report = cards_unknown(scene)
    return report[report.index("  evidence\n") : report.index("\n  more: ")]
