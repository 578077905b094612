"""A checkpoint could not be written: the disk or the quota is full."""

from typing import Iterator, List, Optional

from ddp_probe.judging.rule import Evidence, Finding, Printed, Rule, failed, shown
from ddp_probe.judging.who import ranks, told
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import Failed, Run
from ddp_probe.shared import schema
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import counted, cut, place, quoted, size

# Shared memory and file watches report the same error number, and are not a disk.
_NO_DISK = r"shm|/torch_\d|SemLock|semaphore|inotify|multiprocessing/(?:synchronize|heap|context)"

RULE = Rule(
    id="DDP505",
    slug="disk-full-while-saving",
    cause="disk_full",
    title="A checkpoint could not be written: the disk or the quota is full.",
    symptom=(
        "torch.save raises 'unexpected pos', 'iostream error' or 'write(): fd … failed', or an OSError 28, 122 or 27; the other ranks lose their "
        "peer."
    ),
    evidence="The exception of the save, and the size that the file reached.",
    remedy=("Free space or raise the quota, keep fewer checkpoints (mmengine: CheckpointHook(max_keep_ckpts=…)), and delete the partial file."),
    restart="after",  # Space has to be freed first.
    needs=("checkpoint.save",),
    fix="atomic-save",
    printed=(
        Printed(r"\[Errno 28\] No space left on device|No space left on device \(os error 28\)", unless=_NO_DISK, says="The disk is full."),
        Printed(r"\[Errno 122\] Disk quota exceeded|Disk quota exceeded \(os error 122\)", says="The disk quota is used up."),
        Printed(r"\[Errno 27\] File too large", says="The file has reached the largest size that this process may write."),
        Printed(
            r"inline_container\.cc:\d+\][ .]*unexpected pos (?P<pos>\d+) vs (?P<done>\d+)", says="The file could not be written past byte {done}."
        ),
        Printed(r"PytorchStreamWriter failed (?:writing|closing)[^\n]*"),
        Printed(r"basic_ios::clear: iostream error|ios_base::clear[^\n]*iostream error"),
        Printed(r"write\(\): fd \d+ failed with (?P<why>[^\n]+)", says="Writing failed with: {why}."),
        Printed(r"Error while serializing: (?:IoError|I/O error)[^\n]*(?:code: (?:28|122)|StorageFull|os error (?:28|122))"),
        Printed(r"errno = (?:28|122), error message = '(?P<why>[^']+)'", says="Writing failed with: {why}."),
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """Find the exceptions that report a full disk; the save before them names the file."""
    matched = list(told(RULE, run))
    if not matched:
        return
    failure = matched[0].failure
    save = _save(failure)
    yield RULE.found(
        ranks=ranks(match.failure.process for match in matched),
        verdict=_verdict(failure, save),
        evidence=[failed(failure), *_shown(save)],
        when=failure.when,
        explains=[match.failure for match in matched],
    )


def _save(failure: Failed) -> "Optional[LoggedCall[schema.Save]]":
    """Return the save that failed, or else the last one before the failure."""
    inside = next((call for call in failure.calls if isinstance(call.begin, schema.Save)), None)
    if inside is not None or failure.process is None:
        return inside
    before = [call for call in failure.process.calls(schema.Save) if call.when <= failure.when]
    return before[-1] if before else None


def _verdict(failure: Failed, save: "Optional[LoggedCall[schema.Save]]") -> Text:
    error = quoted(cut(failure.text, 160).rstrip("."))
    if save is None:
        return say("Writing failed at {where} with {error}.", where=place(failure.site), error=error)
    if save not in failure.calls:
        return say(
            "Rank {rank} could not write the checkpoint that it had saved into memory at {where}: {error}.",
            rank=failure.rank,
            where=place(save.site),
            error=error,
        )
    written, free = getattr(save.end, "size", None), getattr(save.end, "free", None)
    return say(
        "Rank {rank} could not write {path} at {where}: {error}{reached}.{free}",
        rank=failure.rank,
        path=quoted(save.begin.path),
        where=place(save.site),
        error=error,
        reached=say(" after {count} bytes", count=written) if written is not None else "",
        free=say(" Free on that disk afterwards: {size}.", size=_size(free)) if free is not None else "",
    )


def _size(count: int) -> Text:
    return counted(count, "byte") if count < 1 << 20 else size(count)


def _shown(save: "Optional[LoggedCall[schema.Save]]") -> List[Evidence]:
    return [] if save is None else [shown(save, say("save of {path}", path=quoted(save.begin.path)))]
