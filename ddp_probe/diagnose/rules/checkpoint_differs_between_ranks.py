"""Ranks of one host load one path, and do not find the same file there."""

from typing import Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from ddp_probe import schema
from ddp_probe.diagnose._loads import Saved, Saves, whole
from ddp_probe.diagnose._who import ranks
from ddp_probe.diagnose.rule import WARNING, Evidence, Example, Finding, Rule, first_of, shown
from ddp_probe.diagnose.words import capital, clock, counted, named, place
from ddp_probe.read.logged_call import LoggedCall
from ddp_probe.read.model import LoggedProcess, Run

_FIRST = 8  # The reader keeps this many first calls: the third load of one rank is compared with the third of another.

RULE = Rule(
    id="DDP523",
    slug="checkpoint-differs-between-ranks",
    cause="ranks_load_different_files",
    title="Ranks load the same path, and do not find the same file there.",
    symptom="Nothing fails: each rank goes on with other weights, so the loss or the accuracy is wrong, or the ranks part later.",
    evidence="The loads of one line, of one path, on one host: the file's inode, size or time is not the same for all ranks.",
    remedy=(
        "Let all ranks load after the same save: call torch.distributed.barrier() on all ranks after the save and before the load, or load on "
        "rank 0 and broadcast the weights."
    ),
    needs=("checkpoint.load",),
    severity=WARNING,
)

EXAMPLES = (
    Example(
        "Rank 1 loads before rank 0 saves again, rank 2 after that.",
        """
{"event":"process.start","rank":0,"host":"a","world_size":3}
{"event":"process.start","rank":1,"host":"a","world_size":3}
{"event":"process.start","rank":2,"host":"a","world_size":3}
{"event":"checkpoint.load","phase":"begin","rank":1,"host":"a","span":1,"site":{"file":"t.py","line":9},"file":{"path":"l.pth","exists":true,"size":70,"inode":4,"mtime":5.0}}
{"event":"checkpoint.load","phase":"end","rank":1,"host":"a","span":1}
{"event":"checkpoint.save","phase":"begin","rank":0,"host":"a","span":1,"site":{"file":"t.py","line":5},"path":"l.pth","existed":true}
{"event":"checkpoint.save","phase":"end","rank":0,"host":"a","span":1,"size":70,"inode":4,"mtime":8.0}
{"event":"checkpoint.load","phase":"begin","rank":2,"host":"a","span":1,"site":{"file":"t.py","line":9},"file":{"path":"l.pth","exists":true,"size":70,"inode":4,"mtime":8.0}}
{"event":"checkpoint.load","phase":"end","rank":2,"host":"a","span":1}
{"event":"process.end","rank":0,"host":"a","exit_code":0}
{"event":"process.end","rank":1,"host":"a","exit_code":0}
{"event":"process.end","rank":2,"host":"a","exit_code":0}
""",
        ranks=(1, 2),
    ),
    Example(
        "Both ranks load each epoch's file: the second file is another one for both.",
        """
{"event":"process.start","rank":0,"host":"a","world_size":2}
{"event":"process.start","rank":1,"host":"a","world_size":2}
{"event":"checkpoint.load","phase":"begin","rank":0,"host":"a","span":1,"site":{"file":"t.py","line":9},"file":{"path":"l.pth","exists":true,"size":70,"inode":4,"mtime":5.0}}
{"event":"checkpoint.load","phase":"end","rank":0,"host":"a","span":1}
{"event":"checkpoint.load","phase":"begin","rank":1,"host":"a","span":1,"site":{"file":"t.py","line":9},"file":{"path":"l.pth","exists":true,"size":70,"inode":4,"mtime":5.0}}
{"event":"checkpoint.load","phase":"end","rank":1,"host":"a","span":1}
{"event":"checkpoint.load","phase":"begin","rank":0,"host":"a","span":2,"site":{"file":"t.py","line":9},"file":{"path":"l.pth","exists":true,"size":70,"inode":4,"mtime":8.0}}
{"event":"checkpoint.load","phase":"end","rank":0,"host":"a","span":2}
{"event":"checkpoint.load","phase":"begin","rank":1,"host":"a","span":2,"site":{"file":"t.py","line":9},"file":{"path":"l.pth","exists":true,"size":70,"inode":4,"mtime":8.0}}
{"event":"checkpoint.load","phase":"end","rank":1,"host":"a","span":2}
{"event":"process.end","rank":0,"host":"a","exit_code":0}
{"event":"process.end","rank":1,"host":"a","exit_code":0}
""",
        answer="clear",
    ),
)

_State = Tuple[Optional[int], Optional[int], Optional[float]]
_Key = Tuple[str, str, Tuple[str, int], int]


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
    groups = (loads for processes in hosts.values() for loads in _together(processes).values())  # One host at a time: there may be ten thousand.
    for loads in groups:
        states: Dict[_State, List[_Seen]] = {}
        for seen in loads:
            states.setdefault(seen.state, []).append(seen)
        if len(states) > 1:
            yield _finding(sorted(states.values(), key=lambda group: group[0].file.mtime or 0.0), Saves(run))
            return


def _together(processes: List[LoggedProcess]) -> Dict[_Key, List[_Seen]]:
    """Return the loads to compare; ranks that load a path at a line more or less often than others do so for another reason."""
    found: Dict[_Key, List[_Seen]] = {}
    times: Dict[Tuple[str, str, Tuple[str, int]], Set[int]] = {}
    for process in processes:
        nth: Dict[Tuple[str, Tuple[str, int]], int] = {}
        for call in process.calls(schema.Load)[:_FIRST]:
            file, site = call.begin.file, call.site
            if file is None or site is None or not file.path:
                continue
            path, line = whole(process, file.path), (site.file, site.line)
            nth[path, line] = nth.get((path, line), 0) + 1
            if _is_settled(call, file):
                found.setdefault((process.host, path, line, nth[path, line]), []).append(_Seen(process, call, file))
        for (path, line), count in nth.items():
            times.setdefault((process.host, path, line), set()).add(count)
    return {key: loads for key, loads in found.items() if len(times[key[:3]]) == 1}


def _is_settled(call: "LoggedCall[schema.Load]", file: schema.CheckpointFile) -> bool:
    """Tell whether the load succeeded, and the file did not change meanwhile. A folder changes with each file that is added to it."""
    if call.end is None or call.failure is not None or file.inode is None or file.kind == "directory":
        return False
    return not isinstance(call.end, schema.Load) or call.end.file_after is None


def _finding(groups: List[List[_Seen]], saves: Saves) -> Finding:
    first, last = groups[0][0], groups[-1][0]
    between = _between(saves, last)
    return RULE.found(
        ranks=ranks(seen.process for group in groups for seen in group),
        verdict="%s: %s%s."
        % (
            capital("%s is not the same file for all ranks that load it at %s" % (first.file.path, place(first.call.site))),
            "; ".join(
                "%s found %s of %s" % (named(ranks(seen.process for seen in group)), _bytes(group[0]), _time(group[0])) for group in groups[:3]
            ),
            ", as %s saved it at %s" % (named(ranks([between[0]])), place(between[1].site)) if between is not None else "",
        ),
        evidence=_evidence(groups, between),
        when=min(seen.call.when for group in groups for seen in group),
    )


def _evidence(groups: List[List[_Seen]], between: Optional[Saved]) -> List[Evidence]:
    items = [
        shown(group[0].call, "%s: inode %s, %s" % (named(ranks(seen.process for seen in group)), group[0].file.inode, _bytes(group[0])))
        for group in groups
    ]
    return first_of(items) + ([shown(between[1], "save of %s" % between[1].begin.path)] if between is not None else [])


def _between(saves: Saves, last: _Seen) -> Optional[Saved]:
    """Return the save that made the newer file."""
    for process, save in reversed(saves.of_path(last.process, last.file.path)):
        after = save.end.mtime if isinstance(save.end, schema.Save) else None
        if process.host == last.process.host and after is not None and after == last.file.mtime:
            return process, save
    return None


def _bytes(seen: _Seen) -> str:
    return counted(seen.file.size or 0, "byte")


def _time(seen: _Seen) -> str:
    return clock(seen.file.mtime) if seen.file.mtime is not None else "an unknown time"
