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
from ddp_probe.wording.words import capital, named, place

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
    needs=("checkpoint.load",),
    fix="settled-load",
)


# What a save calls its path, by what writes it; the other ones write folders.
_BESIDE = "Write to a temporary name first: torch.save(state, path + '.tmp'); os.replace(path + '.tmp', path)."
_KEYWORDS = {"": "f", "put": "filename", "save_file": "filename"}


def check(run: Run) -> Iterator[Finding]:
    """Find the loads that ended a process while the file was written; if there is none, those that the job caught."""
    written = Saves(run)
    met = _met(written, broken(run))
    if not met:
        yield from _survived(run, written)
        return
    load, found = met[0]
    yield RULE.found(
        ranks=ranks(one.process for one, _ in met),
        verdict=_verdict(load, found),
        evidence=_evidence(load, found),
        when=load.call.when,
        explains=[one.failure for one, _ in met],
        confidence="high" if found.overlap is not None or found.writer is None else "medium",
        change=_change(load, found),
    )


def _met(written: Saves, loads: List[Broken]) -> List[Tuple[Broken, Race]]:
    return [(load, found) for load in loads for found in [race(written, load)] if found is not None and not _refused(load)]


def _survived(run: Run, written: Saves) -> Iterator[Finding]:
    """Warn of loads that met a writer and were tried again: the next one may read parts of two checkpoints, and nothing fails."""
    met = _met(written, survived(run))
    if not met:
        return
    load, found = met[0]
    who = ranks(one.process for one, _ in met)
    count = sum(process.count_failed(schema.Load) for process in {id(one.process): one.process for one, _ in met}.values())
    loads = "One load" if count == 1 else "%d loads" % count
    yield RULE.found(
        ranks=who,
        verdict="%s failed on %s during a save, and the job caught the exception and continued; the first: %s"
        % (loads, named(who), _verdict(load, found)),
        evidence=_evidence(load, found),
        when=load.call.when,
        change=_change(load, found),
        severity=WARNING,
    )


def _refused(load: Broken) -> bool:
    """Tell whether the loader refused a complete file because of its content, which a writer does not change."""
    return load.file.complete is True or load.file.kind in ("git-lfs", "html")


def _verdict(load: Broken, found: Race) -> str:
    reader = "rank %s loads %s at %s" % (load.process.rank, load.file.path, place(load.call.site))
    if found.writer is None or found.save is None:
        return "%s while the file is being written: it %s during the load." % (capital(reader), _growth(load))
    writer = "rank %s writes it at %s" % (found.writer.rank, place(found.save.site))
    if found.overlap is not None:
        return "%s while %s; the two overlap by %.1f ms." % (capital(reader), writer, found.overlap)
    return "%s while it is being written: it %s during the load, and rank %s had saved into memory at %s, which is written to disk afterwards." % (
        capital(reader),
        _growth(load),
        found.writer.rank,
        place(found.save.site),
    )


def _growth(load: Broken) -> str:
    after = getattr(load.call.end, "file_after", None)
    if after is None or after.size == load.file.size:
        return "was written to"
    return "changed from %s to %s bytes" % (load.file.size, after.size)


def _is_of_the_job(save: "LoggedCall[schema.Save]") -> bool:
    """Tell whether the job's line names the path: a hook of mmengine makes it up."""
    return all(frame.function.rpartition(".")[2] == "save_checkpoint" for frame in save.begin.through)


def _evidence(load: Broken, found: Race) -> List[Evidence]:
    size = "" if load.file.size is None else ", %d bytes then" % load.file.size
    items = [shown(load.call, "load of %s%s" % (load.file.path, size)), failed(load.failure)]
    if found.save is not None:
        items.append(shown(found.save, "save into memory" if found.save.begin.path == STREAM else "save of %s" % found.save.begin.path))
    if found.save is not None and found.writer is not None and found.overlap is not None:
        met = last_meeting(found.writer, found.save.when, load.process, load.call.when)
        if met is not None:
            text = "the last collective before the load is number %d, %s%s: the save begins after it, so nothing makes the load wait for the save"
            items.append(shown(load.call, text % (met.number, met.op, " at %s" % place(as_site(met.site)) if met.site is not None else "")))
    return items


def _change(load: Broken, found: Race) -> change.Change:
    """Change the writer: a file that gets its name only when it is complete is safe to read, and a barrier hangs if not all ranks load."""
    readers = (
        "If no rank waits for the file before the load at %s, let all ranks call torch.distributed.barrier() after the save and before that load."
        % place(load.call.site)
    )
    if found.save is None or found.save.begin.path == STREAM:
        return [_BESIDE, readers]
    keyword = _KEYWORDS.get(found.save.begin.by.rpartition(".")[2])
    if keyword is None or not _is_of_the_job(found.save):
        return [readers]
    site = found.save.site
    if site is None:
        return [_BESIDE, readers]
    beside = save_changes.whole(site, keyword, opened=found.save.begin.opened is True, others=_saves_streams(found, site))
    return [*beside, readers]


def _saves_streams(found: Race, site: Site) -> bool:
    """Tell whether the line that saved the file has also saved into memory, or into a file that the job had opened."""
    saves = found.writer.calls(schema.Save) if found.writer is not None else ()
    alike = [save.begin for save in saves if save.site is not None and (save.site.file, save.site.line) == (site.file, site.line)]
    by = found.save.begin.by if found.save is not None else ""  # mmengine saves into memory first, by another call.
    return any(begin.by == by and (begin.path == STREAM or begin.opened) for begin in alike)
