"""The file to load is not a checkpoint: a Git LFS pointer, an HTML page, plain text."""

from itertools import chain
from typing import Dict, Iterator

from ddp_probe.judging.load_calls import Broken, broken
from ddp_probe.judging.rule import Evidence, Finding, Printed, Rule, failed, shown
from ddp_probe.judging.who import ranks, told
from ddp_probe.reading.model import Run
from ddp_probe.wording.text import say
from ddp_probe.wording.words import place, quoted

RULE = Rule(
    id="DDP507",
    slug="not-a-checkpoint-file",
    cause="not_a_checkpoint_file",
    title="The file to load is not a checkpoint.",
    symptom="torch.load raises UnpicklingError: 'invalid load key', or 'Weights only load failed … Unsupported operand' with the code of a letter.",
    evidence="The file's first bytes, read before the load.",
    remedy=(
        "Replace it with the real file: run 'git lfs pull' for a Git LFS pointer; for an HTML page, download again with the link to the file itself."
    ),
    restart="no",  # The file stays what it is.
    needs=("checkpoint.load",),
    printed=(
        Printed(r"invalid load key, '(?P<key>v)'", says="The file begins with 'v', as a Git LFS pointer does (version https://git-lfs…)."),
        Printed(r"invalid load key, '(?P<key><)'", says="The file begins with '<', as an HTML or XML page does."),
        Printed(r"invalid load key, '(?P<key>[^P\\']|\\(?:n|r|t|x1f|ufeff|xef))'", says="The file begins with '{key}', which no checkpoint does."),
        Printed(
            r"Weights only load failed.*Unsupported operand 118\b",
            says="The file begins with 'v', as a Git LFS pointer does (version https://git-lfs…).",
        ),
        Printed(r"Weights only load failed.*Unsupported operand 60\b", says="The file begins with '<', as an HTML or XML page does."),
        Printed(r"Weights only load failed.*Unsupported operand (?:123|91|35|10|31|37)\b", says="The file does not begin as a checkpoint does."),
        Printed(r"Invalid magic number; corrupt file\?", says="The file does not begin as a checkpoint does."),
        Printed(r"Error while deserializing header: (?:header too large|HeaderTooLarge|InvalidHeaderDeserialization)"),
        Printed(
            r"Expected input to be a checkpoint returned by torch\.save|No state_dict found in checkpoint file (?P<path>[^\n]{1,200})"
            r"|\S+ is not a (?:model state|zero) checkpoint|seems a bogus DeepSpeed checkpoint folder"
            r"|The path \S+ does not point to (?:a )?valid (?:full |sharded )?checkpoint",
            says="The file to load is not a checkpoint of this kind.",
        ),
        Printed(r"OSError: Unable to (?:synchronously )?open file \(file signature not found\)"),
    ),
)


_IS: Dict[str, str] = {
    "git-lfs": say("a Git LFS pointer, the placeholder of a file that was not downloaded"),
    "html": say("an HTML page, such as a login or error page"),
    "json": "JSON",
    "text": say("plain text"),
}


def check(run: Run) -> Iterator[Finding]:
    """Find the loads that ended a process because of a file of another kind, or of a first byte that a checkpoint does not have."""
    texts = {id(match.failure): match for match in told(RULE, run)}
    loads = [
        load for load in broken(run) if load.file.kind in _IS or (id(load.failure) in texts and load.file.kind not in ("zip", "legacy", "empty"))
    ]
    if not loads:
        return
    first = loads[0]
    yield RULE.found(
        ranks=ranks(load.process for load in loads),
        verdict=say(
            "{path}, which is loaded at {where}, is {kind} ({size} bytes).",
            path=quoted(first.file.path),
            where=place(first.call.site),
            kind=_is(first),
            size=first.file.size,
        ),
        evidence=list(chain.from_iterable(map(_evidence, loads[:2]))),
        when=first.call.when,
        explains=[load.failure for load in loads],
        remedy=_remedy(first),
    )


def _is(load: Broken) -> str:
    return _IS.get(load.file.kind, say("not a checkpoint: its first byte is wrong"))


def _remedy(load: Broken) -> str:
    """Return what to do about a file of this kind; nothing if its kind is not known."""
    path = quoted(load.file.path)
    remedies = {
        "git-lfs": say("Fetch the real file: git lfs install, then git lfs pull --include={path} in its repository.", path=path),
        "html": say(
            "Download {path} again with the link to the file itself; look at the page to see what the server said.",
            path=path,
        ),
        "json": say("Give the path of the weights; {path} may be their index or their configuration.", path=path),
        "text": say("Give the path of the weights; {path} may hold their path or a checksum.", path=path),
    }
    return remedies.get(load.file.kind, "")


def _evidence(load: Broken) -> "list[Evidence]":
    text = say("{path}, kind {kind}", path=quoted(load.file.path), kind=load.file.kind or say("unknown"))
    return [shown(load.call, text), failed(load.failure)]
