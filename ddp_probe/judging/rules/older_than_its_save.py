"""A rank loads a file that is older than the save that should have written it in this run."""

from typing import Iterator, List, NamedTuple, Optional

from ddp_probe.judging.load_calls import Saved, Saves
from ddp_probe.judging.rule import WARNING, Finding, Rule, first_of, shown
from ddp_probe.judging.who import ranks
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.wording.text import say
from ddp_probe.wording.words import clock, named, place, quoted

_CLOCKS = 5.0  # Seconds that the clocks of two hosts, which write the times of their files, may differ by.

RULE = Rule(
    id="DDP527",
    slug="older-than-its-save",
    cause="ranks_load_different_files",
    title="A rank loads a file that is older than the save that should have written it in this run.",
    symptom="Nothing fails: a rank continues with the weights of an earlier run or of an earlier epoch.",
    evidence=(
        "A save to the same path finished on another host before the load, but the loaded file was last modified before the file that the save wrote."
    ),
    remedy=(
        "Put the checkpoint into a folder that all hosts share. If they share it, its file system keeps old attributes: let the ranks wait at "
        "a barrier after the save, and give each save its own name."
    ),
    restart="unknown",  # A folder of each host, or a file system that was slow to show the save.
    needs=("checkpoint.load", "checkpoint.save"),
    severity=WARNING,
)


class _Old(NamedTuple):
    """A load of an old file, and the save that it missed."""

    process: LoggedProcess
    call: "LoggedCall[schema.Load]"
    missed: Saved


def check(run: Run) -> Iterator[Finding]:
    """Compare each load with the last save of its path that had ended on another host."""
    saves = Saves(run)
    old_loads: List[_Old] = []
    for process in run.ranks.values():
        for call in process.calls(schema.Load):
            missed = _missed(saves, process, call)
            if missed is not None:
                old_loads.append(_Old(process, call, missed))
    if old_loads:
        yield _finding(old_loads)


def _missed(saves: Saves, process: LoggedProcess, call: "LoggedCall[schema.Load]") -> Optional[Saved]:
    file = call.begin.file
    if file is None or file.mtime is None or not file.path:
        return None
    last = saves.last_ended(process, file.path, call.when)
    if last is None or last[0].host == process.host:
        return None
    saved = last[1].end.mtime if isinstance(last[1].end, schema.Save) else None
    return last if saved is not None and file.mtime < saved - _CLOCKS else None


def _finding(old_loads: List[_Old]) -> Finding:
    process, call, (writer, save) = old_loads[0]
    file = call.begin.file or schema.CheckpointFile()
    who = ranks(old.process for old in old_loads)
    return RULE.found(
        ranks=who,
        verdict=say(
            "{who:capital} on {host} {who:loads|load} {path} of {modified} at {where}, "
            "and not the one that rank {writer} saved on {writer_host} at {writer_where}, {saved}.",
            who=named(who),
            host=process.host,
            path=quoted(file.path),
            modified=clock(file.mtime or 0.0),
            where=place(call.site),
            writer=writer.rank,
            writer_host=writer.host,
            writer_where=place(save.site),
            saved=clock(save.when),
        ),
        evidence=[
            *first_of([shown(old.call, say("load of {path}", path=quoted(file.path))) for old in old_loads]),
            shown(save, say("save of {path}", path=quoted(save.begin.path))),
        ],
        when=call.when,
    )
