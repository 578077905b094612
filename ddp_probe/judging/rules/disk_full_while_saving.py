"""A checkpoint could not be written: the disk or the quota is full."""

from typing import Iterator, Optional

from ddp_probe.judging.rule import Evidence, Finding, Printed, Rule, failed, shown
from ddp_probe.judging.who import ranks, told
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import Failed, Run
from ddp_probe.shared import schema
from ddp_probe.wording.words import counted, cut, place

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
    found = list(told(RULE, run))
    if not found:
        return
    failure = found[0].failure
    save = _save(failure)
    yield RULE.found(
        ranks=ranks(match.failure.process for match in found),
        verdict=_verdict(failure, save),
        evidence=[failed(failure), *_shown(save)],
        when=failure.when,
        explains=[match.failure for match in found],
    )


def _save(failure: Failed) -> "Optional[LoggedCall[schema.Save]]":
    """Return the save that failed, or else the last one before the failure."""
    inside = next((call for call in failure.calls if isinstance(call.begin, schema.Save)), None)
    if inside is not None or failure.process is None:
        return inside
    before = [call for call in failure.process.calls(schema.Save) if call.when <= failure.when]
    return before[-1] if before else None


def _verdict(failure: Failed, save: "Optional[LoggedCall[schema.Save]]") -> str:
    words = cut(failure.text, 160).rstrip(".")
    if save is None:
        return "Writing failed at %s with %s." % (place(failure.site), words)
    size = getattr(save.end, "size", None) if save in failure.calls else None
    came = " after %d bytes" % size if size is not None else ""
    what = save.begin.path if save in failure.calls else "the checkpoint that it had saved into memory"
    free = getattr(save.end, "free", None) if save in failure.calls else None
    room = " Free on that disk afterwards: %s." % _size(free) if free is not None else ""
    return "Rank %s could not write %s at %s: %s%s.%s" % (failure.rank, what, place(save.site), words, came, room)


def _size(count: int) -> str:
    return counted(count, "byte") if count < 1 << 20 else "%.1f GiB" % (count / (1 << 30))


def _shown(save: "Optional[LoggedCall[schema.Save]]") -> "list[Evidence]":
    return [] if save is None else [shown(save, "save of %s" % save.begin.path)]
