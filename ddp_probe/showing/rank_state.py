"""The state of one rank, from its events: its devices, its progress, its last event and how it ended."""

import os
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple, Union

from ddp_probe.judging import late_ranks
from ddp_probe.judging.memory import main_device, near
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import Death, LoggedProcess, Run
from ddp_probe.reading.whole_ledger import LedgerSite, Record
from ddp_probe.shared import schema
from ddp_probe.shared.schema import Site
from ddp_probe.wording.text import say
from ddp_probe.wording.words import size

ENDED, RUNNING, NO_END, NO_FILE = "ended", "running", "no end line", "no file"
_STOP_SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP")
# The events from which the phase of a rank follows.
PHASES = {name: (event.shown.during, event.shown.after) for name, event in schema.EVENTS.items() if event.shown.during}
_OURS = ("process.", "probe.", "launcher.", "hang.", "stacks", "device.state")


class RankEnd(NamedTuple):
    """How a rank ended: in one word, and what belongs to it."""

    state: str
    exception: str = ""
    exit_code: Optional[int] = None
    signal: str = ""

    @property
    def words(self) -> str:
        """Return it as a table has it: failed ValueError, exit 3, killed SIGKILL."""
        code = "" if self.exit_code is None else str(self.exit_code)
        return " ".join(filter(None, (self.state, self.exception, code, self.signal)))


class RankState(NamedTuple):
    """The state of one rank, as in the table."""

    rank: Optional[int]
    local_rank: Optional[int]
    host: str
    ids: Optional[List[Union[int, str]]]  # device_ids as given to the wrapper.
    ending: RankEnd
    devices: str  # Devices of the parameters. From here on, what the cells of a table say.
    device_ids: str
    card: str  # The current card.
    phase: str
    last: str  # What it did last: an event, or a call of its ledger.
    site: str  # The line of the job that did it.
    end: str
    memory: str = ""  # The most that it held on its card, if that differs between ranks.
    waited: str = ""  # How much longer it waits in a step than a late rank, if there is one.
    near: str = ""  # Which limit of memory is near: of its card, its host or /dev/shm.

    @property
    def cells(self) -> Tuple[str, ...]:
        """Return what the cells of a table say, from `devices` on."""
        return self[5:]


def rank_states(run: Run) -> List[RankState]:
    """Return the state of each rank, including ranks without a file."""
    peaks = _peaks(run)
    waited = late_ranks.waited(run)
    limits = near(run)
    states = [
        _rank_state(process, run)._replace(
            memory=peaks.get(process.file, ""),
            waited=waited.get(-1 if process.rank is None else process.rank, ""),
            near=limits.get(process.file, ""),
        )
        for process in run.processes
    ]
    states += [_absent(rank, run.death(rank)) for rank in run.missing]
    return sorted(states, key=lambda state: -1 if state.rank is None else state.rank)


def _peaks(run: Run) -> Dict[str, str]:
    """Return the peak of each rank's card by its file, if one of them is a quarter above the usual and 64 MiB; else nothing."""
    most = {process.file: peak[1] for process in run.processes for peak in [main_device(process)] if peak is not None}
    usual = sorted(most.values())[(len(most) - 1) // 2] if most else 0  # statistics brings random and fractions.
    differ = any(peak > 1.25 * usual + (64 << 20) for peak in most.values())
    return {file: size(peak) for file, peak in most.items()} if differ else {}


def last_files(run: Run) -> Iterator[str]:
    """Yield the file of the job that each rank was in last."""
    for process in run.processes:
        site = _last(process)[1]
        if site is not None:
            yield site.file


def _rank_state(process: LoggedProcess, run: Run) -> RankState:
    last, site = _last(process)
    wrap, ended = process.final(schema.Wrap), ending(process, run)
    ids = None if wrap is None else wrap.begin.device_ids
    return RankState(
        process.rank,
        process.local_rank,
        process.host,
        ids,
        ended,
        _few(parameters_on(process)),
        "" if wrap is None else _listed(ids),
        _card(process),
        _phase(process),
        last,
        "" if site is None else "%s:%d" % (os.path.basename(site.file), site.line),
        ended.words,
    )


def _absent(rank: int, death: Optional[Death]) -> RankState:
    end = (_dead(death) if death is not None else None) or RankEnd(NO_FILE)
    local_rank, host = (None, "") if death is None else (death.local_rank, death.host)
    return RankState(rank, local_rank, host, None, end, "", "", "", "", "", "", end.words)


def parameters_on(process: LoggedProcess) -> Dict[str, int]:
    """Return how many parameters are on each device: at the last wrap, else before mmengine's wrap, else after the last move."""
    for wrap in (process.final(schema.Wrap), process.final(schema.WrapModel)):
        if wrap is not None and wrap.begin.placement is not None:
            counts = {device: tally.count for device, tally in wrap.begin.placement.devices.items()}
            return {} if set(counts) == {"meta"} and _has_trained(process) else counts
    move = process.final(schema.ModuleMove)
    return dict(move.end.devices) if move is not None and move.end is not None else {}


def _has_trained(process: LoggedProcess) -> bool:
    """Tell whether the parameters had data after the wrap: without any no step is made."""
    kept = process.ledger
    return kept is not None and any(phase.name == "optimizer" and phase.times for phase in kept.phases)


def _listed(ids: Optional[List[Union[int, str]]]) -> str:
    return "none" if ids is None else "[%s]" % ", ".join(map(str, ids))


def _few(devices: Iterable[str]) -> str:
    names = sorted(devices)
    return ", ".join(names[:3]) + (" and %d more" % (len(names) - 3) if len(names) > 3 else "")


def _card(process: LoggedProcess) -> str:
    """Return the current card: at the end, else at the last wrap, else as last set."""
    wraps = (process.final(schema.Wrap), process.final(schema.WrapModel))
    seen = [process.ended.accelerators] if process.ended is not None else []
    for cards in (*seen, *(wrap.begin.accelerators for wrap in wraps if wrap is not None)):
        for card in cards:
            if card.current is not None:
                return str(card.current) + _visible(card)
    done = [call for call in process.calls(schema.SetDevice) if call.end is not None and call.failure is None]
    none = process.start is not None and not any(card.count for card in process.started.accelerators)
    return done[-1].begin.device if done and not none else ""


def _visible(card: schema.Card) -> str:
    """Return the visible cards if they are few: card numbers count only visible cards."""
    text = next(iter(card.visible.values()), "")
    return " (sees %s)" % text if 0 < len(text) <= 5 else ""


def _phase(process: LoggedProcess) -> str:
    """Return the phase from the last call that has one."""
    phases = [(call.line, word) for name in PHASES if name in process.kept.kinds for call, word in _with_phase(process, name)]
    return max(phases)[1] if phases else "starting"


def _with_phase(process: LoggedProcess, name: str) -> "Iterator[Tuple[LoggedCall[Any], str]]":
    """Yield the calls of a kind from which a phase follows: the last one, or, if a call that has returned has none, each that has not."""
    doing, done = PHASES[name]
    calls = process.kept.of(name, process.offset) if not done else filter(None, [process.kept.one(name, -1, process.offset)])
    for call in calls:
        word = done if call.end is not None and call.failure is None else doing
        if word:
            yield call, word


def _last(process: LoggedProcess) -> Tuple[str, Optional[Union[Site, LedgerSite]]]:
    """Return what the job did last, by its log or by its ledger, and its line."""
    of_job = [name for name in process.kept.kinds if not name.startswith(_OURS)]
    call = process.waiting or process.kept.latest(of_job, process.offset)
    record = _record_after(process, call)
    if record is not None:
        return _how(record.op, record.is_open, record.state == "raised"), record.site
    return ("", None) if call is None else (_how(call.name, call.open, call.failure is not None), call.site)


def _record_after(process: LoggedProcess, call: "Optional[LoggedCall[Any]]") -> Optional[Record]:
    """Return the last call of the ledger, if the log has nothing later and does not have that call itself."""
    kept = process.ledger
    if kept is None or kept.last is None or (call is not None and call.name.endswith(".%s" % kept.last.op)):
        return None
    return kept.last if call is None or kept.when(kept.last.entered_ns) + process.offset > call.when else None


def _how(name: str, is_open: bool, has_failed: bool) -> str:
    if is_open:
        return say("in {name}", name=name)
    return say("{name} failed", name=name) if has_failed else name


def ending(process: LoggedProcess, run: Run) -> RankEnd:
    """Return how the rank ended. Its own events take precedence: its launcher may stop a rank that is already failing."""
    end = process.ended
    if end is not None and end.uncaught:
        return RankEnd("failed", "" if end.failure is None else end.failure.type.rpartition(".")[2])
    fatal = [failed for failed in process.failures if failed.fatal and failed.type]
    if fatal and end is not None:
        return RankEnd("failed", fatal[0].type.rpartition(".")[2])
    reported = _dead(process.death) if process.death is not None else None
    if reported:
        return reported
    if end is not None:
        return RankEnd("exit", exit_code=end.exit_code) if end.exit_code else RankEnd(ENDED)
    if process.death is not None and process.death.exit_code == 0:
        return RankEnd(ENDED)
    return RankEnd(RUNNING if process.rank in run.running else NO_END)


def _dead(death: Death) -> Optional[RankEnd]:
    if death.signal:
        return RankEnd("stopped" if death.signal in _STOP_SIGNALS else "killed", signal=death.signal)
    return RankEnd("exit", exit_code=death.exit_code) if death.exit_code else None
