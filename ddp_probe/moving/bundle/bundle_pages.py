"""The pages of the bundle itself: the report over what is in it, the environment block to paste, and doctor's table of this host."""

import json
import os
import platform
import re
import sys
from functools import lru_cache
from typing import Any, Callable, Dict, Iterable, Iterator, List, Set, Tuple

import ddp_probe
from ddp_probe.doctor import cards, checks, host
from ddp_probe.doctor.children import ChildAnswer
from ddp_probe.doctor.examine import examine
from ddp_probe.doctor.host import Host, Request
from ddp_probe.judging.judge import Diagnosis
from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.shared.accelerators import ACCELERATORS
from ddp_probe.showing import as_json, brief_form, doctor_page, found, inventory, safe, terminal
from ddp_probe.showing.layout import GLUE, wrap
from ddp_probe.showing.masker import Masker
from ddp_probe.showing.paths import Paths
from ddp_probe.showing.rank_state import rank_states
from ddp_probe.wording.words import named, spans

_SECONDS = 30.0
_SHOWN_BY_RUN = "shown by the run"
_WIDTH = 80
_DISTRIBUTIONS = ("mmengine", "mmcv", "mmcv-full", "accelerate", "transformers", "lightning", "deepspeed", "numpy")


@lru_cache(maxsize=1)
def _doctors_host() -> Host:
    """Return this host; what it was asked once is not asked again."""
    return Host(Request(seconds=_SECONDS))


def begin(run: Run) -> None:
    """Start what takes longest, children that import torch, while the run is read; not if its ranks have shown that torch can be imported here."""
    here = _doctors_host()
    if here.knows(_SHOWN_BY_RUN):  # Another run was bundled before this one.
        _doctors_host.cache_clear()
        here = _doctors_host()
    version = host.packages_of(here).version("torch")
    started = {(process.started.executable, process.started.versions.get("torch", "").partition("+")[0]) for process in run.processes}
    cardless = cards.signed(here) is None and not any(process.started.accelerators for process in run.processes)
    if not version or started != {(sys.executable, version.partition("+")[0])} or not cardless:
        cards.begin(here)
        return
    here.once(_SHOWN_BY_RUN, lambda: version)
    here.once("accelerator", lambda: None)
    here.once(("torch_facts", ()), lambda: ChildAnswer([{"torch": version, "built": _built_for(here)}], 0, "", 0.0))


def _built_for(here: Host) -> Dict[str, str]:
    """Return what torch was built for, according to its version file."""
    text = here.read(os.path.dirname(host.packages_of(here).origin("torch")), "version.py")
    return dict(re.findall(r"^(cuda|hip|xpu)\b[^=\n]*= '([^']+)'", text, re.M))


def host_table() -> Tuple[str, List[Dict[str, Any]]]:
    """Return doctor's static table as text, and as `doctor --json` has it."""
    here, wanted, note = _doctors_host(), checks.static(), ""
    if here.knows(_SHOWN_BY_RUN):
        wanted = tuple(module for module in wanted if "torch-imports" not in (module.CHECK.slug, *module.CHECK.needs))
        note = "\ntorch-imports and what needs it were not checked: the ranks of the run imported torch %s here.\n" % _facts()["torch"]
    results = sorted(examine(here, wanted), key=lambda result: result.check.id)
    return "\n".join(line.text for line in doctor_page.lines(results, _WIDTH)) + "\n" + note, [result.as_json() for result in results]


def _facts() -> Dict[str, Any]:
    return cards.torch_facts(_doctors_host()).last


def built() -> str:
    """Return what torch was built for, and the backends that it has."""
    facts = _facts()
    if not facts:
        return ""
    runtimes = ", ".join("%s %s" % item for item in facts.get("built", {}).items()) or "CPU alone"
    return "for %s" % runtimes + ("; backends %s" % (", ".join(facts["backends"]) or "unknown") if "backends" in facts else "")


def host_rows() -> Iterator[Tuple[str, str]]:
    """Yield versions and accelerators of this host."""
    facts = _facts()
    yield "torch", str(facts.get("torch", "")) or "cannot be imported: its import %s" % cards.torch_facts(_doctors_host()).how()
    yield "torch built", built()
    if facts.get("module"):
        yield str(facts["module"]), str(facts.get("module_version", ""))
    for name in _DISTRIBUTIONS:
        if host.packages_of(_doctors_host()).version(name):
            yield name, host.packages_of(_doctors_host()).version(name)
    visible = list(_visible_cards(facts.get("cards", {})))
    yield from visible or [("accelerator", "none is detected")]


def _visible_cards(counted: Dict[str, int]) -> Iterator[Tuple[str, str]]:
    for accelerator in ACCELERATORS:
        signs = cards.signs(_doctors_host(), accelerator)
        number = counted.get(accelerator.torch_attribute, 0)
        if number or signs.files or signs.module or signs.variables:
            parts = ["%s: torch counts %d card%s" % (accelerator.name, number, "s"[: number != 1])]
            parts.append("%d device files" % len(signs.files))
            if signs.module:
                parts.append(signs.module)
            parts += ["%s=%s" % (name, _doctors_host().environ[name]) for name in signs.variables]
            yield "accelerator", ", ".join(parts)


def tools() -> str:
    """Return the vendors' tools that are on PATH."""
    signs = [cards.signs(_doctors_host(), accelerator) for accelerator in ACCELERATORS]
    return ", ".join(sign.tool for sign in signs if sign.tool)


def variables() -> Iterator[Tuple[str, str]]:
    """Yield the variables that decide how a distributed job runs."""
    beginnings = ("MASTER_", "NCCL_", "GLOO_", "TORCH", "PYTORCH_", "OMP_", "DDP_PROBE", "ACCELERATE_", "CUDA_VISIBLE")
    for name in sorted(os.environ):
        if name.startswith(beginnings):
            yield name, os.environ[name]


# The environment block: what a run, or this host, says of itself, as Markdown to paste into an issue; for every accelerator.

Rows = List[Tuple[str, str]]
_LONGEST = 600
_COLUMNS = 80
_SHOWN = 3  # Different values of one row; more are counted.
_HIDDEN = ("DDP_PROBE_RUN", "PYTHONPATH")  # Of no use to a reader: one is in the first row, the other only shows where the activator is.


def block(rows: Iterable[Tuple[str, str]]) -> str:
    """Return the rows as Markdown."""
    shown = [(label, text.replace("```", "'''")) for label, text in rows if text]
    width = max((len(label) for label, _ in shown if label), default=0) + 2
    lines = ["### Environment", "", "```text"]
    for label, text in shown:
        lines += _row(label, text, width)
    return "\n".join([*lines, "```", ""])


def _row(label: str, text: str, width: int) -> List[str]:
    """Return one row; a variable is alone on its line, so that it can be copied."""
    short = safe.line(text, _LONGEST)
    return wrap(short, _COLUMNS, label.ljust(width), " " * width) if label else [short]


def of_run(diagnosis: Diagnosis, masker: Masker, *, is_here: bool) -> Rows:
    """Return the rows of a run; what its events lack is taken from this host if the run is of this host."""
    run = diagnosis.run
    rows = [("ddp_probe", _probe(run)), ("verdict", _verdict(diagnosis)), ("run", inventory.title(run, rank_states(run))), ("command", command(run))]
    rows += [("ranks", _ranks(run)), ("Python", _alike(run, _python)), ("platform", _platform() if is_here else "")]
    rows += list(_versions(run))
    rows += [("torch built", built() if is_here else "")]
    rows += [("CPUs", _alike(run, lambda process: str(process.started.cpus or "")))]
    rows += list(_accelerators(run)) or [("accelerator", "none is detected" if run.processes else "")]
    rows += [("vendor tools", tools() if is_here else "")]
    rows += list(_variables(run))
    return [(label, masker.page(text)) for label, text in rows]


def of_host(masker: Masker) -> Rows:
    """Return the rows of this host, without a run."""
    rows = [("ddp_probe", ddp_probe.__version__), ("Python", "%s (%s), %s" % (platform.python_version(), sys.implementation.name, sys.executable))]
    rows += [("platform", _platform()), *host_rows(), ("CPUs", str(len(os.sched_getaffinity(0)))), ("vendor tools", tools())]
    rows += [("", "%s=%s" % variable) for variable in variables()]
    return [(label, masker.page(text)) for label, text in rows]


def command(run: Run) -> str:
    """Return the command that started the job: that of its launcher, else that of its first rank."""
    starts = [process.start for process in (*run.launchers, *run.processes) if process.start is not None]
    argv: List[str] = next(
        (list(start.argv) for start in starts if isinstance(start, (schema.LauncherStart, schema.ProcessStart)) and start.argv), []
    )
    return " ".join(argv)


def _probe(run: Run) -> str:
    wrote = _alike(run, lambda process: process.started.probe)
    return ddp_probe.__version__ + ("; the run was recorded by %s" % wrote if wrote and wrote != ddp_probe.__version__ else "")


def _verdict(diagnosis: Diagnosis) -> str:
    """Return the verdict in one line."""
    return "%s%s" % ("" if diagnosis.verdict != "found" else "found: ", brief_form.lines(diagnosis)[0])


def _ranks(run: Run) -> str:
    if not run.processes:
        return ""
    hosts = len({process.host for process in run.processes})
    return "%s%d wrote a log, on %d host%s" % ("%d expected, " % run.expected if run.expected else "", len(run.processes), hosts, "s"[: hosts != 1])


def _python(process: LoggedProcess) -> str:
    started = process.started
    version = started.versions.get("python", "")
    return "%s (%s), %s" % (version, started.implementation, started.executable) if version else ""


def _platform() -> str:
    libc = " ".join(platform.libc_ver()).strip()
    return platform.platform() + (", %s" % libc if libc else "")


def _versions(run: Run) -> Iterator[Tuple[str, str]]:
    names: Set[str] = set()
    for process in run.processes:
        names.update(process.started.versions)
    for name in sorted(names, key=lambda name: (not name.startswith("torch"), name)):
        if name != "python":
            yield name, _alike(run, lambda process: process.started.versions.get(name, ""))  # noqa: B023  # called at once


def _accelerators(run: Run) -> Iterator[Tuple[str, str]]:
    names: Dict[str, None] = {}
    for process in run.processes:
        names.update(dict.fromkeys(card.name for card in process.started.accelerators))
    for name in names:
        yield "accelerator", "%s: %s" % (name, _alike(run, lambda process: _card(process, name)))  # noqa: B023  # called at once


def _card(process: LoggedProcess, name: str) -> str:
    card = next((card for card in process.started.accelerators if card.name == name), None)
    if card is None:
        return "does not show itself"
    parts: List[str] = []
    if card.module:
        parts.append("%s %s" % (card.module, card.module_version))
    if card.count is not None:
        parts.append("%d card%s" % (card.count, "s"[: card.count != 1]))
    if card.device_files:
        first, *others = card.device_files
        parts.append("%s to %s" % (first, others[-1]) if others else first)
    parts += ["%s=%s" % item for item in card.visible.items()]
    if card.shim:
        parts.append("redirected by %s" % card.shim)
    return ", ".join(part.strip() for part in parts) or "is detected, and reports no more"


def _variables(run: Run) -> Iterator[Tuple[str, str]]:
    """Yield the variables that are the same on each rank: others are the launcher's numbers."""
    starts = [process.started.environment for process in run.processes if process.start is not None]
    for name in sorted(set.intersection(*map(set, starts)) if starts else ()):
        if len({start[name] for start in starts}) == 1 and name not in _HIDDEN:
            yield "", "%s=%s" % (name, starts[0][name])


def _alike(run: Run, value: Callable[[LoggedProcess], str]) -> str:
    """Return the value of all ranks, or each with its ranks."""
    ranks_of: Dict[str, List[int]] = {}
    for process in run.processes:
        ranks_of.setdefault(value(process), []).append(process.rank or 0)
    ranks_of.pop("", None)
    if len(ranks_of) < 2:
        return next(iter(ranks_of), "")
    shown = [
        "%s on %s" % (text, named(ranks).lower() if len(ranks) == 1 else "ranks " + spans(ranks)) for text, ranks in list(ranks_of.items())[:_SHOWN]
    ]
    return "; ".join(shown) + ("; and %d more" % (len(ranks_of) - _SHOWN) if len(ranks_of) > _SHOWN else "")


ENVIRONMENT = "environment.md"
_CONTEXT = 3  # Lines around a change, as `explain` shows it.


def of(diagnosis: Diagnosis, masker: Masker, *, is_here: bool) -> Dict[str, str]:
    """Return each page by its name."""
    pages = {
        "report.txt": report(diagnosis),
        "report.json": as_json.text(diagnosis) + "\n",
        ENVIRONMENT: block(of_run(diagnosis, masker, is_here=is_here)),
    }
    if is_here:
        text, rows = host_table()
        pages["doctor.txt"] = "".join(map(masker.page, text.splitlines(keepends=True)))
        pages["doctor.json"] = json.dumps(masker.fields(rows), indent=1) + "\n"
    return pages


def report(diagnosis: Diagnosis) -> str:
    """Return the report as text."""
    return "".join(line.text + "\n" for line in terminal.lines(diagnosis, _WIDTH))


def everything_said(diagnosis: Diagnosis) -> str:
    """Return all that is said about a run: what `report` prints in two forms, and `explain` for each finding."""
    explained: List[str] = []
    for finding in diagnosis.findings:
        lines = found.cause(finding, diagnosis, _WIDTH, Paths(diagnosis.run, GLUE), _CONTEXT)
        explained += [line.text for line in lines]
    return "\n".join([report(diagnosis), as_json.text(diagnosis), *explained])
