"""Ranks of one host load one path, and do not find the same file there."""

from collections import Counter
from itertools import chain
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from ddp_probe.judging.load_calls import Saved, Saves, whole
from ddp_probe.judging.rule import WARNING, Evidence, Finding, Rule, first_of, shown
from ddp_probe.judging.who import ranks
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import clock, counted, listed, named, place, quoted

_FIRST = 8  # The reader keeps this many first calls: the third load of one rank is compared with the third of another.

RULE = Rule(
    id="DDP523",
    slug="checkpoint-differs-between-ranks",
    cause="ranks_load_different_files",
    title="Ranks load the same path but get different files.",
    symptom="Nothing fails: the ranks continue with different weights, so the loss or the accuracy is wrong, or the ranks diverge later.",
    evidence="The loads of one line, of one path, on one host: the file's inode, size or time is not the same for all ranks.",
    remedy=(
        "Let all ranks load after the same save: call torch.distributed.barrier() on all ranks after the save and before the load, or load on "
        "rank 0 and broadcast the weights."
    ),
    restart="unknown",  # Ranks that load too soon, or hosts with folders of their own.
    needs=("checkpoint.load",),
    severity=WARNING,
)


_State = Tuple[Optional[int], Optional[int], Optional[float]]
_Line = Tuple[str, int]


class _Seen(NamedTuple):
    """One load, and the file that it found."""

    process: LoggedProcess
    call: "LoggedCall[schema.Load]"
    file: schema.CheckpointFile

    @property
    def state(self) -> _State:
        return self.file.inode, self.file.size, self.file.mtime


def check(run: Run) -> Iterator[Finding]:
    """Compare the loads that all ranks of a host make at one line, the first with the first and so on."""
    hosts: Dict[str, List[LoggedProcess]] = {}
    for process in run.ranks.values():
        hosts.setdefault(process.host, []).append(process)
    for processes in hosts.values():  # One host at a time: there may be ten thousand.
        for loads in _together(processes):
            states: Dict[_State, List[_Seen]] = {}
            for seen in loads:
                states.setdefault(seen.state, []).append(seen)
            if len(states) > 1:
                by_time = sorted(states.values(), key=lambda group: group[0].file.mtime or 0.0)
                yield _finding(by_time, Saves(run))
                return


def _together(processes: List[LoggedProcess]) -> Iterator[List[_Seen]]:
    """Yield the loads to compare. Most files are found as they were before, or by one rank alone: those take no further look."""
    paths: Dict[str, List[_Seen]] = {}
    for process in processes:
        for call in process.calls(schema.Load)[:_FIRST]:
            file = call.begin.file
            if file is not None and file.path:
                paths.setdefault(whole(process, file.path), []).append(_Seen(process, call, file))
    for loads in paths.values():
        if len(loads) > 1 and len({seen.state for seen in loads}) > 1:
            yield from _in_turn(loads)


def _in_turn(loads: List[_Seen]) -> Iterator[List[_Seen]]:
    """Yield the first loads of a path at a line, and so on; ranks that load it there more or less often than others do so for another reason."""
    in_turn: Dict[Tuple[_Line, int], List[_Seen]] = {}
    times: Dict[_Line, Counter[int]] = {}
    for seen in loads:
        site = seen.call.site
        if site is None:
            continue
        line, process = (site.file, site.line), id(seen.process)
        times.setdefault(line, Counter())[process] += 1
        if _is_settled(seen.call, seen.file):
            in_turn.setdefault((line, times[line][process]), []).append(seen)
    for (line, _), alike in in_turn.items():
        if len(set(times[line].values())) == 1:
            yield alike


def _is_settled(call: "LoggedCall[schema.Load]", file: schema.CheckpointFile) -> bool:
    """Tell whether the load succeeded, and the file did not change meanwhile. A folder changes with each file that is added to it."""
    if call.end is None or call.failure is not None or file.inode is None or file.kind == "directory":
        return False
    return not isinstance(call.end, schema.Load) or call.end.file_after is None


def _finding(groups: List[List[_Seen]], saves: Saves) -> Finding:
    first, last = groups[0][0], groups[-1][0]
    between = _between(saves, last)
    saved: str = ""
    if between is not None:
        writer = named(ranks([between[0]]))
        saved = say(", as {who} saved it at {where}", who=writer, where=place(between[1].site))
    return RULE.found(
        ranks=ranks(seen.process for seen in chain.from_iterable(groups)),
        verdict=say(
            "{path:capital} is not the same file for all ranks that load it at {where}: {states}{saved}.",
            path=quoted(first.file.path),
            where=place(first.call.site),
            states=listed([_state(group) for group in groups[:3]], by="; "),
            saved=saved,
        ),
        evidence=_evidence(groups, between),
        when=min(seen.call.when for seen in chain.from_iterable(groups)),
    )


def _evidence(groups: List[List[_Seen]], between: Optional[Saved]) -> List[Evidence]:
    items = first_of([_shown(group) for group in groups])
    if between is not None:
        items.append(shown(between[1], say("save of {path}", path=quoted(between[1].begin.path))))
    return items


def _shown(group: List[_Seen]) -> Evidence:
    text = say(
        "{who}: inode {inode}, {bytes}",
        who=named(ranks(seen.process for seen in group)),
        inode=group[0].file.inode,
        bytes=_bytes(group[0]),
    )
    return shown(group[0].call, text)


def _state(group: List[_Seen]) -> Text:
    return say(
        "{who} found {bytes} of {time}",
        who=named(ranks(seen.process for seen in group)),
        bytes=_bytes(group[0]),
        time=_time(group[0]),
    )


def _between(saves: Saves, last: _Seen) -> Optional[Saved]:
    """Return the save that made the newer file."""
    for process, save in reversed(saves.of_path(last.process, last.file.path)):
        after = save.end.mtime if isinstance(save.end, schema.Save) else None
        if process.host == last.process.host and after is not None and after == last.file.mtime:
            return process, save
    return None


def _bytes(seen: _Seen) -> Text:
    return counted(seen.file.size or 0, "byte")


def _time(seen: _Seen) -> Text:
    return clock(seen.file.mtime) if seen.file.mtime is not None else say("an unknown time")
