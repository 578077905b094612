"""Mutates folders of recorded runs and asks one command of each: ``mutants.py SEED COUNT RECORDED``, in a process with a limit of memory.

Each mutant follows from the seed and its number alone (a fold holds the time it was written at).
Prints a line of JSON for each that ends in anything but an answer, then one with the counts.
"""

import contextlib
import functools
import gc
import io
import json
import os
import pickle
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import jinja2

from ddp_probe.cli import main
from ddp_probe.reading import fold, ledger_file
from ddp_probe.shared.errors import ProbeError

MEMORY = 1 << 30
SECONDS = 5.0
_NUMBERS = (-1, 0, 2**31, 2**32 + 1, 2**63, 2**64, 10**30, -(10**30), 1.5, 1e300)
_VALUES = ("null", "[]", "{}", '""', '"x"', "true", "[[[[]]]]", '{"a":{"b":[1]}}', '"\\ud800"', '"' + "9" * 40 + '"')
_JUNK = (b"\0" * 64, b"\xff\xfe\x80", b"[" * 4000, b'{"a":' * 2000, b"\xe2\x80\xae", b"\x1b]0;x\x07", b"A" * 70000, b"\r\n\r\n", b"9" * 5000)


class OvertimeError(BaseException):
    """The command took longer than it may."""


def _overtime(*_: Any) -> None:
    raise OvertimeError


def _flip(data: bytes, draw: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(draw.choice((1, 1, 3, 30)) if changed else 0):
        changed[draw.randrange(len(changed))] = draw.randrange(256)
    return bytes(changed)


def _cut(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


def _number(data: bytes, draw: random.Random) -> bytes:
    """Put another number for one that is there, or for all of one field."""
    found = list(re.finditer(rb"(?<=[:\[,])-?\d+", data))
    if not found:
        return data
    one = draw.choice(found)
    value = str(draw.choice(_NUMBERS)).encode()
    if draw.random() < 0.3:
        return data[: one.start()] + data[one.start() :].replace(one.group(), value)
    return data[: one.start()] + value + data[one.end() :]


def _value(data: bytes, draw: random.Random) -> bytes:
    """Put a value of another type."""
    found = list(re.finditer(rb'(?<=":)("[^"\\]*"|-?\d+|true|false|null|\[[^\[\]]*\]|\{[^{}]*\})', data))
    if not found:
        return data
    one = draw.choice(found)
    return data[: one.start()] + draw.choice(_VALUES).encode() + data[one.end() :]


def _words(data: bytes, draw: random.Random) -> bytes:
    """Store a number of eight bytes where one of a binary ledger may stand."""
    changed = bytearray(data)
    for _ in range(draw.choice((1, 2, 5)) if len(changed) >= 8 else 0):
        at = draw.randrange(0, len(changed) - 7, 4 if draw.random() < 0.8 else 1)
        changed[at : at + 8] = draw.choice((draw.getrandbits(64), 2**31, 2**32, 2**63, 2**64 - 1, 1)).to_bytes(8, "little")
    return bytes(changed)


def _lines(data: bytes, draw: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    if not lines:
        return data
    at, other = draw.randrange(len(lines)), draw.randrange(len(lines))
    how = draw.randrange(4)
    if how == 0:
        del lines[at]
    elif how == 1:
        lines[at:at] = [lines[other]] * draw.choice((1, 1, 50))
    elif how == 2:
        lines[at], lines[other] = lines[other], lines[at]
    else:
        draw.shuffle(lines)
    return b"".join(lines)


def _junk(data: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(data) + 1)
    return data[:at] + draw.choice(_JUNK) + data[at:]


_FRAME = {"name": "main", "filename": "/job/t.py", "line": 6}
_ENTRY = {"frames": [_FRAME], "record_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": 7, "profiling_name": "gloo:all_reduce"}
_ENTRY.update(time_created_ns=1795336350228062011, input_sizes=[[4, 3]], state="scheduled", is_p2p=False, time_discovered_started_ns=None)
_DUMP = {"version": "2.10", "pg_config": {"0": {"name": "0", "desc": "", "ranks": "[0, 1]"}}, "entries": [_ENTRY]}
_CHANGES: Tuple[Callable[[bytes, random.Random], bytes], ...] = (_flip, _cut, _number, _number, _value, _value, _words, _lines, _junk)


def dress(folder: Path, draw: random.Random) -> List[str]:
    """Give a run the forms that its files can have: ledgers in bytes, dumps of the Flight Recorder, a fold in place of all."""
    done = []
    for path in sorted(folder.rglob("*.ledger.txt")):
        if draw.random() < 0.5:
            with contextlib.suppress(ValueError):
                path.with_suffix("").write_bytes(bytes(ledger_file.of_lines(path.read_bytes())))
                path.unlink()
    if draw.random() < 0.1:
        (folder / "nccl_trace_rank_0").write_bytes(pickle.dumps(_DUMP, 2))
        (folder / "nccl_trace_rank_1.json").write_text(json.dumps(_DUMP), encoding="utf-8")
        done.append("with dumps")
    if draw.random() < 0.1:
        data = io.BytesIO()
        with contextlib.suppress(ProbeError):
            fold.write([str(folder)], data)
            for path in list(folder.iterdir()):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            (folder / "0.fold").write_bytes(data.getvalue())
            done.append("as a fold")
    return done


def mutate(folder: Path, draw: random.Random) -> List[str]:
    """Change some files of a run; return what was done."""
    done = dress(folder, draw)
    for _ in range(draw.choice((1, 1, 2, 4))):
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        if not files:
            break
        path = draw.choice(files)
        if draw.random() < 0.08:
            other = draw.choice(files)
            path.write_bytes(other.read_bytes())
            done.append("%s = %s" % (path.name, other.name))
        elif draw.random() < 0.05:
            path.unlink()
            path.mkdir()
            done.append("%s is a folder" % path.name)
        else:
            change = draw.choice(_CHANGES)
            path.write_bytes(change(path.read_bytes(), draw))
            done.append("%s: %s" % (path.name, change.__name__))
    return done


def commands(folder: str, out: str) -> Dict[str, List[str]]:
    """Return the commands that read a run, with where they write."""
    return {
        "report": ["report", folder],
        "json": ["report", folder, "--json"],
        "html": ["report", folder, "--html", out + "/page.html"],
        "trace": ["report", folder, "--trace", out + "/trace.json"],
        "chinese": ["report", folder],
        "watch": ["watch", folder, "--once"],
        "stacks": ["stacks", folder, "--wait", "0"],
        "logs": ["logs", folder],
        "plain": ["report", folder + "/output.txt"],
        "runs": ["runs", str(Path(folder).parent)],
        "bundle": ["bundle", folder, "--output", out + "/bundle.tar.gz"],
    }


def attempt(seed: int, number: int, recorded: List[Path]) -> Tuple[str, Dict[str, Any]]:
    """Make one mutant and ask one command of it; return the command, and what is wrong with its answer."""
    draw = random.Random(seed * 1_000_003 + number)  # a mutant, no secret
    source = draw.choice(recorded)
    with tempfile.TemporaryDirectory() as base:
        folder = Path(base, "runs", source.name)
        shutil.copytree(source, folder)
        Path(base, "out").mkdir()
        name, argv = draw.choice(sorted(commands(str(folder), str(Path(base, "out"))).items()))
        done = mutate(folder, draw)
        os.environ["DDP_PROBE_LANG"] = "zh" if name == "chinese" else "en"
        wrong = _asked(argv)
    if wrong:
        wrong.update(number=number, run=source.name, command=name, done=done)
    return name, wrong


def _asked(argv: List[str]) -> Dict[str, Any]:
    out, err = io.StringIO(), io.StringIO()
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(argv)
    except SystemExit as exc:
        code = exc.code if isinstance(exc.code, int) else 2
    except BaseException:  # whatever it is, it is what is looked for
        return {"raised": traceback.format_exc()[-1500:]}
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    if code not in (0, 1, 2, 3) or any(text in err.getvalue() for text in ("this is a bug", "Traceback", "nrecognized argument")):
        return {"code": code, "stderr": err.getvalue()[-1500:]}
    return {}


def _tidy(number: int) -> None:
    """Collect for 50 mutants at once what each command, which takes itself for the only one of its process, would collect before it reads."""
    gc.unfreeze()
    if number % 50 == 0:
        gc.collect()


def run(seed: int, numbers: range, recorded: Path) -> None:
    """Try these mutants, with templates compiled once."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGVTALRM, _overtime)
    runs = sorted(path for path in recorded.glob("*/*") if path.is_dir())
    tried: Dict[str, int] = {}
    slowest, failed = 0.0, 0
    for number in numbers:
        _tidy(number)
        began = time.process_time()
        name, wrong = attempt(seed, number, runs)
        slowest = max(slowest, time.process_time() - began)
        tried[name] = tried.get(name, 0) + 1
        if wrong:
            failed += 1
            print(json.dumps(wrong), flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(json.dumps({"tried": tried, "failed": failed, "slowest_s": round(slowest, 2), "peak_mib": peak}))


if __name__ == "__main__":
    first = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    with tempfile.TemporaryDirectory() as compiled:
        jinja2.Environment = functools.partial(jinja2.Environment, bytecode_cache=jinja2.FileSystemBytecodeCache(compiled))  # type: ignore[misc,assignment]
        run(int(sys.argv[1]), range(first, first + int(sys.argv[2])), Path(sys.argv[3]))
