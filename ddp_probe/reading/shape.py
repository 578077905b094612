"""Sorts the processes of a launch: ranks, launchers, earlier generations, and how each process ended."""

import re
from collections import Counter
from typing import Dict, Iterator, List, Optional, Set, Tuple

from ddp_probe.reading.alive import alive
from ddp_probe.reading.failures import INTERRUPTED
from ddp_probe.reading.launches import generation, parents
from ddp_probe.reading.logged_call import LogLine
from ddp_probe.reading.model import Death, LoggedProcess, OutsideEnd, Run
from ddp_probe.reading.rank_ledger import RankLedger
from ddp_probe.shared import schema
from ddp_probe.wording.text import say

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
    """Return one earlier generation as a separate run."""
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
        run.inventory.notes.append(say("Ignored an implausible world size of {size}.", size=beyond))
    sizes = Counter(process.world_size for process in run.processes if process.world_size and 0 < process.world_size <= _MOST)
    if sizes:
        return sizes.most_common(1)[0][0]
    requested = sum(agent.nproc_per_node or 0 for agent in _agents(run))
    return min(requested, _MOST) if requested and not run.processes else None


def _agents(run: Run) -> List[schema.LauncherAgent]:
    agents: List[schema.LauncherAgent] = []
    for launcher in run.launchers:
        agents += [call.begin for call in launcher.calls(schema.LauncherAgent)]
    return agents


def _elsewhere(run: Run) -> List[int]:
    """Return the ranks of nodes without any file here: they may have written to another disk."""
    requested = [agent.nnodes.partition(":")[0] for agent in _agents(run)]
    reported = [*requested, *(process.started.environment.get("GROUP_WORLD_SIZE", "") for process in run.processes)]
    nodes = max((int(text) for text in reported if text.isdigit() and text.isascii() and len(text) < 7), default=1)
    seen = {process.started.environment.get("GROUP_RANK", "") for process in run.processes} - {""}
    if nodes <= max(1, len(seen), len(run.launchers)):
        return []
    here = of_nodes_seen(run)
    return [rank for rank in run.missing if rank not in here]


def of_nodes_seen(run: Run) -> Set[int]:
    """Return the ranks of the nodes of which at least one rank has a file here, if its launcher recorded how many ranks a node has."""
    ranks: Set[int] = set()
    for process in run.processes:
        size = process.started.environment.get("LOCAL_WORLD_SIZE", "")
        if process.rank is not None and process.local_rank is not None and size.isdigit() and size.isascii() and len(size) < 7:
            ranks.update(range(process.rank - process.local_rank, process.rank - process.local_rank + int(size)))
    return ranks


def _deaths(run: Run) -> List[Death]:
    """Return each child once, of the last generation: torchrun reports all exit codes, and the failed children again in its summary."""
    deaths: Dict[Tuple[str, Optional[int], Optional[int]], Death] = {}
    ranks = {(process.host, process.pid): process.rank for process in (*run.earlier, *run.processes)}
    by_local = {(process.host, process.local_rank): process.rank for process in run.processes}
    alone = _is_one_host(run)
    for launcher in run.launchers:
        for call in launcher.calls(schema.LauncherChild):
            reported = call.begin
            local_rank, pid = reported.child_local_rank, reported.child_pid
            key = (launcher.host, pid, None if pid is not None else local_rank)
            before = deaths.get(key)
            if before is None:
                usual = local_rank if alone else None
                before = Death(usual, local_rank, pid, launcher.host, None, "", "", False, call.when, call.at)
            rank = reported.child_rank
            if rank is None:
                rank = ranks.get((launcher.host, pid or 0), by_local.get((launcher.host, local_rank)))
            deaths[key] = Death(
                rank if rank is not None else before.rank,
                local_rank,
                pid,
                launcher.host,
                reported.exit_code if reported.exit_code is not None else before.exit_code,
                reported.signal or before.signal,
                reported.message or before.message,
                reported.first or before.first,
                before.when,
                before.at,
            )
    return [*deaths.values(), *_joined(run, {death.pid for death in deaths.values()})]


def _joined(run: Run, reported: Set[Optional[int]]) -> List[Death]:
    """Return the children of mp.spawn, which returns without an exception only if each child exits with code 0."""
    deaths = []
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
                    deaths.append(Death(child.rank, child.local_rank, child.pid, child.host, 0, "", "", False, call.until, at))
    return deaths


def _is_one_host(run: Run) -> bool:
    """Return whether the launch has one host, on which ranks and local ranks are equal."""
    return len(run.launchers) == 1 and all(agent.nnodes in ("", "1:1") for agent in _agents(run))


def _attach(run: Run) -> None:
    by_pid = {(death.host, death.pid): death for death in run.deaths if death.pid is not None}
    for process in (*run.processes, *run.earlier):
        process.death = by_pid.get((process.host, process.pid))


# Finds the signal from outside that ended a run. What ranks do after it reached one of them does not tell where they stood before.
#
# Ctrl-C, a scheduler's limit and an eviction all look alike: the first sign is a launcher that was asked to stop, a rank that was
# interrupted, or a rank whose signal handler makes a call, and nothing has failed before. From then on the ledgers of all ranks are
# taken as they were at that moment.

_UNWINDING = 2.0  # Seconds between the call that an interrupt ended and the end of its process.
_NUMBER = re.compile(r"got signal: (?P<number>\d{1,2})\b")
_NAMES = {"1": "SIGHUP", "2": "SIGINT", "3": "SIGQUIT", "15": "SIGTERM"}
_SENT = frozenset((*_NAMES.values(), "SIGKILL"))
_MOMENT = 1e-6
_LAST_STEPS = 2  # A rank that makes more after its handler was called had been signalled for another reason than its end.
ENDED = "a signal from outside ended it"


def settle(run: Run) -> None:
    """Find the signal, and take each rank that was alive then as it was."""
    for process in run.processes:
        process.leave_out_exit()
    handled = list(_of_handlers(run))
    signs = sorted([*_of_launchers(run), *_of_ranks(run), *handled], key=lambda sign: sign.when)
    if not signs:
        _of_a_killed_launcher(run)
    if not signs:
        return
    when = signs[0].when - _MOMENT
    if not _had_failed(run, signs[0]):
        end = next((sign for sign in signs if sign.signal), signs[0])
        run.handled = handled
        run.outside = end._replace(when=when)
    for process in run.processes:
        if not _was_gone(run, process, signs[0]):
            process.stand(when)
            for failure in process.failures:
                if failure.when >= when:
                    failure.consequence = failure.consequence or ENDED


def _was_gone(run: Run, process: LoggedProcess, first: OutsideEnd) -> bool:
    """Tell whether a rank had ended before the signal: by its last words, or as its launcher reports, if it left none and something had failed."""
    if process.end is not None:
        return process.over[0] < first.when - _MOMENT
    death = process.death or (run.death(process.rank) if process.rank is not None else None)
    return run.outside is None and death is not None and (death.when < first.when or _had_died(death, process, first))


def _of_launchers(run: Run) -> Iterator[OutsideEnd]:
    for launcher in run.launchers:
        call = launcher.first(schema.LauncherSignal)
        if call is not None:
            yield OutsideEnd(call.when, call.begin.signal, say("the launcher"), call.at)
            continue
        failure = launcher.end.failure if isinstance(launcher.end, schema.LauncherEnd) else None
        if failure is not None and failure.type.rpartition(".")[2] in ("SignalException", "KeyboardInterrupt"):
            number = _NUMBER.search(failure.message)
            name = "SIGINT" if "Keyboard" in failure.type else ""
            if number is not None:
                name = _NAMES.get(number["number"], "")
            when, at = launcher.over
            yield OutsideEnd(when, name, say("the launcher"), at)


def _of_a_killed_launcher(run: Run) -> None:
    """If every launcher ended silently, without even a word on a rank, what killed it hit the ranks too: a rank that lost another only shows when."""
    lost = [failure.when for failure in run.failures if failure.fatal and failure.process is not None and not failure.process.is_launcher]
    unexplained = any(failure.fatal and not failure.consequence for failure in run.failures)
    if not lost or unexplained or not run.launchers or not all(map(_is_silent, run.launchers)):
        return
    for process in run.processes:
        process.stand(min(lost) - _MOMENT)


def _is_silent(launcher: LoggedProcess) -> bool:
    return launcher.start is not None and launcher.end is None and launcher.first(schema.LauncherChild) is None and not alive(launcher)


def _of_ranks(run: Run) -> Iterator[OutsideEnd]:
    for failure in run.failures:
        if failure.fatal and failure.consequence == INTERRUPTED and failure.process is not None and not failure.process.is_launcher:
            when = _unwound(failure.process, failure.when)
            yield OutsideEnd(when, "SIGINT", say("rank {rank}", rank=failure.rank), failure.at)


def _of_handlers(run: Run) -> Iterator[OutsideEnd]:
    """Yield each rank whose handler made a call, such as Lightning's, which broadcasts that SIGTERM came, and which trained no further."""
    for process in run.processes:
        kept = process.ledger
        called = kept.handler if kept is not None else None
        name = _NAMES.get(str(called.signal)) if called is not None else None
        if kept is not None and called is not None and name is not None and _steps_since(kept, called.entered_ns) <= _LAST_STEPS:
            at = LogLine(process.ledger_file, called.number)
            rank = say("rank {rank}", rank=process.rank)
            yield OutsideEnd(kept.when(called.entered_ns) + process.offset, name, rank, at, called)


def _steps_since(kept: RankLedger, when_ns: int) -> int:
    """Return how many steps ended after this time."""
    times, ended, count = kept.steps, kept.steps.ended_ns, 0
    for took in reversed(times.took):
        if ended <= when_ns:
            break
        ended, count = ended - 1000 * took, count + 1
    return count


def _unwound(process: LoggedProcess, when: float) -> float:
    """Return when the interrupt ended the call that the rank was in, which is a moment before the rank ended."""
    kept = process.ledger
    if kept is None:
        return when
    ended = [phase.left_ns for phase in kept.phases if phase.state == "raised"]
    ended += [record.left_ns for record in process.whole_ledger().records if record.state == "raised"]
    times = [kept.when(time) + process.offset for time in ended]
    return min([time for time in times if when - _UNWINDING <= time <= when], default=when)


def _had_failed(run: Run, first: OutsideEnd) -> bool:
    """Tell whether something had gone wrong before: then a launcher or a person may have ended the rest because of it."""
    if any(failure.fatal and not failure.consequence and failure.process is not None and failure.when < first.when for failure in run.failures):
        return True
    return any(_had_died(death, run.ranks.get(-1 if death.rank is None else death.rank), first) for death in run.deaths)


def _had_died(death: Death, process: Optional[LoggedProcess], first: OutsideEnd) -> bool:
    """Tell whether a rank had died before, by itself. Lightning's broadcast may meet another call, for which gloo aborts the rank."""
    if not death.signal:
        return bool(death.exit_code) and (process.over[0] if process is not None else 0.0) < first.when - _UNWINDING
    if death.signal in _SENT and (first.did is None or death.signal == first.signal):
        return False
    return process is None or _moved(process) < first.when


def _moved(process: LoggedProcess) -> float:
    """Return when a process has moved last."""
    kept = process.ledger
    return max(process.last_when, kept.moved + process.offset if kept is not None else 0.0)
