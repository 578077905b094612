"""A checkpoint is empty, or its end is missing."""

from typing import Iterator, Optional

from ddp_probe.judging.load_calls import Broken, Saves, broken, race, saved_before
from ddp_probe.judging.rule import Evidence, Finding, Printed, Rule, failed, shown
from ddp_probe.judging.who import ranks, told
from ddp_probe.reading.model import Run
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import cut, place, quoted

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
    restart="after",  # Another checkpoint, or the same one whole, has to be there first.
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
    evidence = []
    for load in short[:2]:
        evidence += [_shown(load), failed(load.failure)]
    yield RULE.found(
        ranks=ranks(load.process for load in short),
        verdict=say(
            "{file} {state}; it was loaded at {where}.",
            file=quoted(first.file.path) if first.file.path else say("The file"),
            state=_state(written, first),
            where=place(first.call.site),
        ),
        evidence=evidence,
        when=first.call.when,
        explains=[load.failure for load in short],
        remedy=_remedy(first),
    )


def _short(load: Broken, by_text: bool) -> bool:
    """A zip shows it by its missing end, an empty file by its size; of other kinds only the loader's message tells."""
    if load.file.exists is False:
        return False
    return load.file.kind == "empty" or load.file.complete is False or (by_text and load.file.kind not in ("git-lfs", "html", "json", "text"))


def _state(written: Saves, load: Broken) -> Text:
    held = load.file.size
    if load.file.kind == "empty" or held == 0:
        return say("is empty (0 bytes)")
    state = say("{size}{end}", size=_size(held), end=_end(load))
    before = saved_before(written, load)
    whole = getattr(before[1].end, "size", None) if before else None
    if before and whole and held is not None and whole > held:
        return say(
            "{state}; it had {count} when rank {rank} saved it at {where}",
            state=state,
            count=whole,
            rank=before[0].rank,
            where=place(before[1].site),
        )
    return state


def _size(held: Optional[int]) -> Text:
    return say("is cut off") if held is None else say("has {count} bytes", count=held)


def _end(load: Broken) -> Text:
    if load.file.complete is False:
        return say(" and no directory at its end")
    return say(" and ends too early ({error})", error=quoted(cut(load.failure.text, 80).rstrip(".")))


def _shown(load: Broken) -> Evidence:
    text = say(
        "{path}, {size} bytes, kind {kind}",
        path=quoted(load.file.path),
        size=load.file.size,
        kind=load.file.kind or say("unknown"),
    )
    return shown(load.call, text)


def _remedy(load: Broken) -> Text:
    return say(
        "Load another checkpoint at {where}, or write {file} again; write each checkpoint to a temporary name and rename it: "
        "torch.save(state, path + '.tmp'), os.replace(path + '.tmp', path).",
        where=place(load.call.site),
        file=quoted(load.file.path) if load.file.path else say("this one"),
    )
