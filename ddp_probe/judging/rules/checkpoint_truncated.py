"""A checkpoint is empty, or its end is missing."""

from typing import Iterator, List

from ddp_probe.judging.load_calls import Broken, Saves, broken, race, saved_before
from ddp_probe.judging.rule import Evidence, Finding, Printed, Rule, failed, shown
from ddp_probe.judging.who import ranks, told
from ddp_probe.reading.model import Run
from ddp_probe.wording.words import cut, place

_LOADING = r"torch[./\\](?:serialization|load)|load_checkpoint|_legacy_load|load_state_dict"

RULE = Rule(
    id="DDP501",
    slug="checkpoint-truncated",
    cause="truncated_checkpoint",
    title="The end of the checkpoint is missing: it was never written completely, or was cut off.",
    symptom="torch.load raises 'failed finding central directory', 'not a ZIP archive', 'unexpected EOF', 'pickle data was truncated' or EOFError.",
    evidence="The file's kind, its size and its missing end, read before the load, and no process that was writing to it at the time.",
    remedy=(
        "Load an older checkpoint, or write this one again. Write each checkpoint to a temporary name and rename it with os.replace(temporary, path)."
    ),
    needs=("checkpoint.load",),
    printed=(
        Printed(
            (
                r"PytorchStreamReader failed reading (?:zip archive|file [^\n:]+): (?P<why>failed finding\s+central directory|not a ZIP archive"
                r"|invalid header or archive is corrupted|file read failed|decompression failed[^\n.]*)"
            ),
            says="The file was not complete when it was read ({why}): cut off, or still being written.",
        ),
        Printed(
            r"unexpected EOF(?:, expected (?P<missing>\d+) more bytes)?\. The file might be corrupted",
            says="The file lacks {missing} bytes at its end.",
        ),
        Printed(
            r"(?:inline_container\.cc:\d+\][ .]*file not found: |PytorchStreamReader failed locating file )(?P<part>[\w./-]*data(?:/\d+|\.pkl))",
            says="The file lacks its part {part}.",
        ),
        Printed(r"unexpected EOF, expected \d+ more bytes"),
        Printed(r"pickle data was truncated", beside=_LOADING),
        Printed(r"invalid load key, '\\x00'", says="The file begins with zero bytes: its content was never written to disk."),
        Printed(r"EOFError(?::(?: Ran out of input)?)?\s*$", beside=_LOADING, says="The file is empty or ends before its first object."),
        Printed(r"storage has wrong (?:byte )?size: expected -?\d+ got -?\d+"),
        Printed(r"OSError: \[Errno 22\] Invalid argument", beside=r"serialization\.py"),
        Printed(r"Error while deserializing header: (?:incomplete metadata|MetadataIncompleteBuffer|HeaderTooSmall|InvalidHeaderLength)"),
        Printed(
            r"Unable to (?:synchronously )?open (?:object|file) \(?[^\n]*truncated file: eof = (?P<size>\d+)", says="The file ends at byte {size}."
        ),
    ),
    yields_to=("checkpoint-read-while-written",),
)


def check(run: Run) -> Iterator[Finding]:
    """Find the loads that ended a process because the file was not complete, while no other process wrote to it."""
    texts = {id(match.failure) for match in told(RULE, run)}
    written = Saves(run)
    short = [load for load in broken(run) if _short(load, id(load.failure) in texts) and race(written, load) is None]
    if not short:
        return
    first = short[0]
    yield RULE.found(
        ranks=ranks(load.process for load in short),
        verdict="%s %s; it was loaded at %s." % (first.file.path or "The file", _state(written, first), place(first.call.site)),
        evidence=[item for load in short[:2] for item in _evidence(load)],
        when=first.call.when,
        explains=[load.failure for load in short],
        remedy=_remedy(first),
    )


def _short(load: Broken, by_text: bool) -> bool:
    """A zip shows it by its missing end, an empty file by its size; of other kinds only the loader's message tells."""
    if load.file.exists is False:
        return False
    return load.file.kind == "empty" or load.file.complete is False or (by_text and load.file.kind not in ("git-lfs", "html", "json", "text"))


def _state(written: Saves, load: Broken) -> str:
    if load.file.kind == "empty" or load.file.size == 0:
        return "is empty (0 bytes)"
    size = "has %d bytes" % load.file.size if load.file.size is not None else "is cut off"
    what = "and no directory at its end" if load.file.complete is False else "and ends too early (%s)" % cut(load.failure.text, 80).rstrip(".")
    before = saved_before(written, load)
    whole = getattr(before[1].end, "size", None) if before else None
    if before and whole and load.file.size is not None and whole > load.file.size:
        return "%s %s; it had %d when rank %s saved it at %s" % (size, what, whole, before[0].rank, place(before[1].site))
    return "%s %s" % (size, what)


def _evidence(load: Broken) -> List[Evidence]:
    kind = "%s, %s bytes, kind %s" % (load.file.path, load.file.size, load.file.kind or "unknown")
    return [shown(load.call, kind), failed(load.failure)]


def _remedy(load: Broken) -> str:
    return (
        "Load another checkpoint at %s, or write %s again; write each checkpoint to a temporary name and rename it: torch.save(state, "
        "path + '.tmp'), os.replace(path + '.tmp', path)."
    ) % (
        place(load.call.site),
        load.file.path or "this one",
    )
