"""A rank loads a checkpoint while another rank is still writing it."""

from typing import Iterator, List, Tuple

from ddp_probe.judging import change, save_changes
from ddp_probe.judging.ledgers import as_site
from ddp_probe.judging.load_calls import STREAM, Broken, Race, Saves, broken, last_meeting, race, survived
from ddp_probe.judging.rule import WARNING, Evidence, Finding, Rule, failed, shown
from ddp_probe.judging.who import ranks
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import Run
from ddp_probe.shared import schema
from ddp_probe.shared.schema import Site
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import at, named, place, quoted

RULE = Rule(
    id="DDP503",
    slug="checkpoint-read-while-written",
    cause="checkpoint_write_read_race",
    title="A rank loads a checkpoint while another process is still writing it.",
    symptom=(
        "On some ranks, and not every time, torch.load raises 'failed finding central directory' or 'unexpected EOF'; later the file is complete."
    ),
    evidence="A save and a load of one file overlap in time, or the file's size or time changed during the load.",
    remedy="Let the other ranks wait until the file is written: call torch.distributed.barrier() on all ranks after the save and before the load.",
    restart="after",  # Once the file is whole it can be read; nothing makes the ranks wait for it.
    needs=("checkpoint.load",),
    fix="settled-load",
)


# What a save calls its path, by what writes it; the other ones write folders.
_BESIDE = say("Write to a temporary name first: torch.save(state, path + '.tmp'); os.replace(path + '.tmp', path).")
_KEYWORDS = {"": "f", "put": "filename", "save_file": "filename"}


def check(run: Run) -> Iterator[Finding]:
    """Find the loads that ended a process while the file was written; if there is none, those that the job caught."""
    written = Saves(run)
    met = _met(written, broken(run))
    if not met:
        yield from _survived(run, written)
        return
    load, with_writer = met[0]
    yield RULE.found(
        ranks=ranks(broken_load.process for broken_load, _ in met),
        verdict=_verdict(load, with_writer),
        evidence=_evidence(load, with_writer),
        when=load.call.when,
        explains=[broken_load.failure for broken_load, _ in met],
        confidence="high" if with_writer.overlap is not None or with_writer.writer is None else "medium",
        change=_change(load, with_writer),
    )


def _met(written: Saves, loads: List[Broken]) -> List[Tuple[Broken, Race]]:
    met = []
    for load in loads:
        with_writer = race(written, load)
        if with_writer is not None and not _refused(load):
            met.append((load, with_writer))
    return met


def _survived(run: Run, written: Saves) -> Iterator[Finding]:
    """Warn of loads that met a writer and were tried again: the next one may read parts of two checkpoints, and nothing fails."""
    met = _met(written, survived(run))
    if not met:
        return
    load, with_writer = met[0]
    who = ranks(broken_load.process for broken_load, _ in met)
    processes = {id(broken_load.process): broken_load.process for broken_load, _ in met}
    count = sum(process.count_failed(schema.Load) for process in processes.values())
    first = _verdict(load, with_writer)
    if count == 1:
        verdict = say(
            "One load failed on {who} during a save, and the job caught the exception and continued; the first: {first}",
            who=named(who),
            first=first,
        )
    else:
        verdict = say(
            "{count} loads failed on {who} during a save, and the job caught the exception and continued; the first: {first}",
            count=count,
            who=named(who),
            first=first,
        )
    yield RULE.found(
        ranks=who,
        verdict=verdict,
        evidence=_evidence(load, with_writer),
        when=load.call.when,
        change=_change(load, with_writer),
        severity=WARNING,
    )


def _refused(load: Broken) -> bool:
    """Tell whether the loader refused a complete file because of its content, which a writer does not change."""
    return load.file.complete is True or load.file.kind in ("git-lfs", "html")


def _verdict(load: Broken, with_writer: Race) -> Text:
    reader = say(
        "{who} {who:loads|load} {path} at {where}",
        who=named(ranks([load.process])),
        path=quoted(load.file.path),
        where=place(load.call.site),
    )
    writer, save = with_writer.writer, with_writer.save
    if writer is None or save is None:
        return say(
            "{reader:capital} while the file is being written: it {growth} during the load.",
            reader=reader,
            growth=_growth(load),
        )
    if with_writer.overlap is not None:
        return say(
            "{reader:capital} while rank {writer} writes it at {where}; the two overlap by {overlap:.1f} ms.",
            reader=reader,
            writer=writer.rank,
            where=place(save.site),
            overlap=with_writer.overlap,
        )
    return say(
        "{reader:capital} while it is being written: it {growth} during the load, and rank {writer} had saved into memory at "
        "{where}, which is written to disk afterwards.",
        reader=reader,
        growth=_growth(load),
        writer=writer.rank,
        where=place(save.site),
    )


def _growth(load: Broken) -> Text:
    after = getattr(load.call.end, "file_after", None)
    if after is None or after.size == load.file.size:
        return say("was written to")
    return say("changed from {before} to {after} bytes", before=load.file.size, after=after.size)


def _is_of_the_job(save: "LoggedCall[schema.Save]") -> bool:
    """Tell whether the job's line names the path: a hook of mmengine makes it up."""
    return all(frame.function.rpartition(".")[2] == "save_checkpoint" for frame in save.begin.through)


def _evidence(load: Broken, with_writer: Race) -> List[Evidence]:
    size: str = ""
    if load.file.size is not None:
        size = say(", {count} bytes then", count=load.file.size)
    text = say("load of {path}{size}", path=quoted(load.file.path), size=size)
    items = [shown(load.call, text), failed(load.failure)]
    save, writer = with_writer.save, with_writer.writer
    if save is None:
        return items
    if save.begin.path == STREAM:
        items.append(shown(save, say("save into memory")))
    else:
        items.append(shown(save, say("save of {path}", path=quoted(save.begin.path))))
    if writer is not None and with_writer.overlap is not None:
        met = last_meeting(writer, save.when, load.process, load.call.when)
        if met is not None:
            text = say(
                "the last collective before the load is number {number}, {call}{where}: the save begins after it, so nothing "
                "makes the load wait for the save",
                number=met.number,
                call=met.op,
                where=at(as_site(met.site)),
            )
            items.append(shown(load.call, text))
    return items


def _change(load: Broken, with_writer: Race) -> change.Change:
    """Change the writer: a file that gets its name only when it is complete is safe to read, and a barrier hangs if not all ranks load."""
    readers = say(
        "If no rank waits for the file before the load at {where}, let all ranks call torch.distributed.barrier() after the "
        "save and before that load.",
        where=place(load.call.site),
    )
    save = with_writer.save
    if save is None or save.begin.path == STREAM:
        return [_BESIDE, readers]
    keyword = _KEYWORDS.get(save.begin.by.rpartition(".")[2])
    if keyword is None or not _is_of_the_job(save):
        return [readers]
    site = save.site
    if site is None:
        return [_BESIDE, readers]
    streams = _saves_streams(with_writer, site)
    beside = save_changes.whole(site, keyword, opened=save.begin.opened is True, others=streams)
    return [*beside, readers]


def _saves_streams(with_writer: Race, site: Site) -> bool:
    """Tell whether the line that saved the file has also saved into memory, or into a file that the job had opened."""
    saves = with_writer.writer.calls(schema.Save) if with_writer.writer is not None else ()
    # mmengine saves into memory first, by another call.
    by = with_writer.save.begin.by if with_writer.save is not None else ""
    for save in saves:
        is_here = save.site is not None and (save.site.file, save.site.line) == (site.file, site.line)
        if is_here and save.begin.by == by and (save.begin.path == STREAM or save.begin.opened):
            return True
    return False
