"""Puts the processes of a launch in order: who is a rank, who launched, who was there before a restart, and how each ended."""

import os
import platform
import re
from collections import Counter
from typing import Dict, List, Optional, Tuple

from ddp_probe import schema
from ddp_probe.read.model import Death, Process, Run

_MOST = 1_000_000  # Ranks; a size beyond that was not written by a probe.


def shape(run: Run, processes: List[Process]) -> None:
    """Fill in the run's processes, launchers, deaths and what was expected."""
    run.launchers = [process for process in processes if process.is_launcher]
    workers = [process for process in processes if not process.is_launcher]
    last = max((generation(process) for process in workers), default=0)
    run.earlier = [process for process in workers if generation(process) < last]
    current = [process for process in workers if generation(process) == last]
    run.processes = sorted(current, key=lambda process: (process.rank if process.rank is not None else -1, process.start_when))
    run.name = next((process.run for process in processes if process.run), "")
    run.expected = _expected(run)
    run.deaths = _deaths(run)
    _attach(run)
    run.running = {process.rank for process in run.processes if process.rank is not None and _alive(process)}


def generation(process: Process) -> int:
    """Return how many times the launcher had started its ranks again before this one."""
    text = process.started.environment.get("TORCHELASTIC_RESTART_COUNT", "0")
    return int(text) if re.fullmatch(r"\d{1,6}", text) else 0


def _expected(run: Run) -> Optional[int]:
    """World size by majority, else what the launchers were asked for."""
    sizes = Counter(process.world_size for process in run.processes if process.world_size and 0 < process.world_size <= _MOST)
    if sizes:
        return sizes.most_common(1)[0][0]
    asked = [call.asked.nproc_per_node for launcher in run.launchers for call in launcher.calls(schema.LauncherAgent) if call.asked.nproc_per_node]
    return min(sum(asked), _MOST) if asked and not run.processes else None


def _deaths(run: Run) -> List[Death]:
    """Each child once: torchrun tells the exit code of all, and its own account of those that failed; the last generation's."""
    found: Dict[Tuple[str, Optional[int], Optional[int]], Death] = {}
    ranks = {(process.host, process.pid): process.rank for process in (*run.earlier, *run.processes)}
    by_local = {(process.host, process.local_rank): process.rank for process in run.processes}
    for launcher in run.launchers:
        for call in launcher.calls(schema.LauncherChild):
            told = call.asked
            key = (launcher.host, told.child_pid, None if told.child_pid is not None else told.child_local_rank)
            before = found.get(key)
            rank = told.child_rank
            if rank is None:
                rank = ranks.get((launcher.host, told.child_pid or 0), by_local.get((launcher.host, told.child_local_rank)))
            if rank is None:
                rank = before.rank if before else _only_host(run, told.child_local_rank)
            found[key] = Death(
                rank,
                told.child_local_rank,
                told.child_pid,
                launcher.host,
                told.exit_code if told.exit_code is not None else (before.exit_code if before else None),
                told.signal or (before.signal if before else ""),
                told.message or (before.message if before else ""),
                told.first or (before.first if before else False),
                before.when if before else call.when,
                before.at if before else call.at,
            )
    return list(found.values())


def _only_host(run: Run, local_rank: Optional[int]) -> Optional[int]:
    """With one host, a local rank is the rank."""
    agents = [call.asked for launcher in run.launchers for call in launcher.calls(schema.LauncherAgent)]
    alone = len(run.launchers) == 1 and all(agent.nnodes in ("", "1:1") for agent in agents)
    return local_rank if alone else None


def _attach(run: Run) -> None:
    by_pid = {(death.host, death.pid): death for death in run.deaths if death.pid is not None}
    for process in (*run.processes, *run.earlier):
        process.death = by_pid.get((process.host, process.pid))
    pids = {process.pid for process in run.earlier}
    run.deaths = [death for death in run.deaths if death.pid not in pids or death.pid is None]


def _alive(process: Process) -> bool:
    """Tell that the process still runs, as far as this host can tell."""
    if process.end is not None or process.death is not None or process.host != platform.node() or process.pid <= 0:
        return False
    try:
        os.kill(process.pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True
