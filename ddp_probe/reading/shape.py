"""Sorts the processes of a launch: ranks, launchers, earlier generations, and how each process ended."""

from collections import Counter
from typing import Dict, List, Optional, Set, Tuple

from ddp_probe.reading.alive import alive
from ddp_probe.reading.launches import generation, parents
from ddp_probe.reading.model import Death, LoggedProcess, Run
from ddp_probe.shared import schema

_MOST = 1 << 17  # Maximum world size; a larger value was not written by a probe.


def shape(run: Run, processes: List[LoggedProcess]) -> None:
    """Fill in the run's processes, launchers, deaths and expected ranks."""
    above = set(map(id, parents(processes)))
    run.launchers = [process for process in processes if process.is_launcher or id(process) in above]
    workers = [process for process in processes if not process.is_launcher and id(process) not in above]
    last = max((generation(process) for process in workers), default=0)
    run.earlier = [process for process in workers if generation(process) < last]
    current = [process for process in workers if generation(process) == last]
    run.processes = sorted(current, key=lambda process: (process.rank if process.rank is not None else -1, process.start_when))
    run.name = next((process.run for process in processes if process.run), "")
    run.expected = _expected(run)
    run.elsewhere = _elsewhere(run)
    run.deaths = _deaths(run)
    _attach(run)
    run.earlier_generations = [_earlier(run, number) for number in sorted({generation(process) for process in run.earlier})]
    pids = {(process.host, process.pid) for process in (*run.earlier, *run.others)}
    run.deaths = [death for death in run.deaths if (death.host, death.pid) not in pids]
    run.running = {process.rank for process in run.processes if process.rank is not None and alive(process)}


def _earlier(run: Run, number: int) -> Run:
    """Return one earlier generation as a run of its own."""
    earlier = Run()
    earlier.name, earlier.folders, earlier.inventory, earlier.expected = run.name, run.folders, run.inventory, run.expected
    earlier.processes = sorted((process for process in run.earlier if generation(process) == number), key=lambda process: process.rank or 0)
    pids = {(process.host, process.pid) for process in earlier.processes}
    earlier.deaths = [death for death in run.deaths if (death.host, death.pid) in pids]
    return earlier


def _expected(run: Run) -> Optional[int]:
    """Return the world size by majority, else the number of processes requested from the launchers."""
    beyond = max((process.world_size for process in run.processes if process.world_size), default=0)
    if beyond > _MOST:
        run.inventory.notes.append("Ignored an implausible world size of %d." % beyond)
    sizes = Counter(process.world_size for process in run.processes if process.world_size and 0 < process.world_size <= _MOST)
    if sizes:
        return sizes.most_common(1)[0][0]
    requested = [
        call.begin.nproc_per_node for launcher in run.launchers for call in launcher.calls(schema.LauncherAgent) if call.begin.nproc_per_node
    ]
    return min(sum(requested), _MOST) if requested and not run.processes else None


def _elsewhere(run: Run) -> List[int]:
    """Return the ranks of nodes without any file here: they may have written to another disk."""
    requested = [call.begin.nnodes.partition(":")[0] for launcher in run.launchers for call in launcher.calls(schema.LauncherAgent)]
    reported = [*requested, *(process.started.environment.get("GROUP_WORLD_SIZE", "") for process in run.processes)]
    nodes = max((int(text) for text in reported if text.isdigit() and text.isascii() and len(text) < 7), default=1)
    seen = {process.started.environment.get("GROUP_RANK", "") for process in run.processes} - {""}
    if nodes <= max(1, len(seen), len(run.launchers)):
        return []
    known = of_nodes_seen(run)
    return [rank for rank in run.missing if rank not in known]


def of_nodes_seen(run: Run) -> Set[int]:
    """Return the ranks of the nodes of which at least one rank has a file here, as far as its launcher told how many ranks a node has."""
    found: Set[int] = set()
    for process in run.processes:
        size = process.started.environment.get("LOCAL_WORLD_SIZE", "")
        if process.rank is not None and process.local_rank is not None and size.isdigit() and size.isascii() and len(size) < 7:
            found.update(range(process.rank - process.local_rank, process.rank - process.local_rank + int(size)))
    return found


def _deaths(run: Run) -> List[Death]:
    """Return each child once, of the last generation: torchrun reports all exit codes, and the failed children again in its summary."""
    found: Dict[Tuple[str, Optional[int], Optional[int]], Death] = {}
    ranks = {(process.host, process.pid): process.rank for process in (*run.earlier, *run.processes)}
    by_local = {(process.host, process.local_rank): process.rank for process in run.processes}
    alone = _is_one_host(run)
    for launcher in run.launchers:
        for call in launcher.calls(schema.LauncherChild):
            reported = call.begin
            key = (launcher.host, reported.child_pid, None if reported.child_pid is not None else reported.child_local_rank)
            before = found.get(key)
            rank = reported.child_rank
            if rank is None:
                rank = ranks.get((launcher.host, reported.child_pid or 0), by_local.get((launcher.host, reported.child_local_rank)))
            if rank is None:
                rank = before.rank if before else (reported.child_local_rank if alone else None)
            found[key] = Death(
                rank,
                reported.child_local_rank,
                reported.child_pid,
                launcher.host,
                reported.exit_code if reported.exit_code is not None else (before.exit_code if before else None),
                reported.signal or (before.signal if before else ""),
                reported.message or (before.message if before else ""),
                reported.first or (before.first if before else False),
                before.when if before else call.when,
                before.at if before else call.at,
            )
    return [*found.values(), *_joined(run, {death.pid for death in found.values()})]


def _joined(run: Run, reported: Set[Optional[int]]) -> List[Death]:
    """Return the children of mp.spawn, which returns without an exception only if each child exits with code 0."""
    found = []
    by_host: Dict[str, List[LoggedProcess]] = {}
    for process in run.processes:
        if process.started.role == "promoted":
            by_host.setdefault(process.host, []).append(process)
    for launcher in run.launchers:
        for call in launcher.calls(schema.LauncherGroup):
            if call.end is None or call.until is None or call.failure is not None or call.end.children or not call.begin.entrypoint:
                continue
            for child in by_host.get(launcher.host, ()):
                if call.when <= child.start_when and child.last_when <= call.until and child.pid not in reported:
                    at = call.ended_at or call.at
                    found.append(Death(child.rank, child.local_rank, child.pid, child.host, 0, "", "", False, call.until, at))
    return found


def _is_one_host(run: Run) -> bool:
    """Return whether the launch has one host, on which ranks and local ranks are equal."""
    agents = [call.begin for launcher in run.launchers for call in launcher.calls(schema.LauncherAgent)]
    return len(run.launchers) == 1 and all(agent.nnodes in ("", "1:1") for agent in agents)


def _attach(run: Run) -> None:
    by_pid = {(death.host, death.pid): death for death in run.deaths if death.pid is not None}
    for process in (*run.processes, *run.earlier):
        process.death = by_pid.get((process.host, process.pid))
