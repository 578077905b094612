"""The model that the code builds has other shapes, names or classes than the saved one."""

import re
from typing import Iterator, Optional, Pattern

from ddp_probe.judging import change
from ddp_probe.judging.load_calls import edit, renaming
from ddp_probe.judging.printed import verdict_of
from ddp_probe.judging.rule import Finding, Printed, Rule, failed, shown
from ddp_probe.judging.who import ranks, told
from ddp_probe.reading.model import Failed, Run
from ddp_probe.shared import schema
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import listed, place, quoted

# mmcv and mmengine warn of what does not fit and continue without it; a later failure has another cause.
_NOT_STRICT = r"Start running, host|\b(?:Epoch|Iter)(?:\(train\))? *\[\d+\]"

_CUT = "[...]"  # The probe writes this in place of what it leaves out.
_MISSING = re.compile(r"Missing key\(s\) in state_dict: ([^\n]*)")
_UNEXPECTED = re.compile(r"Unexpected key\(s\) in state_dict: ([^\n]*)")

RULE = Rule(
    id="DDP517",
    slug="checkpoint-does-not-fit",
    cause="checkpoint_vs_code_mismatch",
    title="The checkpoint belongs to a different model from the one that the code builds.",
    symptom="load_state_dict raises 'size mismatch for …', or lists missing and unexpected keys; an optimizer rejects its parameter groups.",
    evidence="The exception names the parameters and both shapes.",
    remedy="Build the model with the configuration that the checkpoint was trained with, or leave out the layers that differ: "
    "call state.pop(name) for each of them, then load_state_dict(state, strict=False).",
    restart="no",  # The file and the model stay as they are.
    needs=("process.end",),
    printed=(
        Printed(
            r"size mismatch for (?P<name>[\w.]+): copying a param(?:eter)? with shape (?P<was>torch\.Size\(\[[^\]]*\]\)|\([^)]*\)) from checkpoint, "
            r"(?:the|where the) shape (?:in|is in) current model is (?P<now>torch\.Size\(\[[^\]]*\]\)|\([^)]*\))",
            unless=_NOT_STRICT,
            says="{name} has {was} in the checkpoint and {now} in the model.",
        ),
        Printed(
            (
                r"While copying the parameter named (?P<name>[\w.']+), whose dimensions in the model are (?P<now>\S.*?) and whose dimensions in the"
                r" checkpoint are (?P<was>[^\n]*)"
            ),
            says="{name} has different dimensions in the checkpoint and in the model.",
        ),
        Printed(
            r"Error\(s\) in loading state_dict for \w+:\s+(?:Missing|Unexpected) key\(s\) in state_dict: \"(?P<name>[^\"]+)\"",
            says="The checkpoint and the model differ in {name} first.",
        ),
        Printed(r"Missing key in checkpoint state_dict: (?P<name>[\w.]+)", says="{name} of the model is not in the checkpoint."),
        Printed(
            r"Size mismatch between saved (?P<was>torch\.Size\(\[[^\]]*\]\)) and current: (?P<now>torch\.Size\(\[[^\]]*\]\)) for (?P<name>[\w.]+)",
            says="{name} has {was} in the checkpoint and {now} in the model.",
        ),
        Printed(
            r"checkpoint being loaded used a DP world size of (?P<was>\d+) but the current world size is (?P<now>\d+)",
            says="The optimizer's state is divided among {was} ranks, but there are {now}.",
            ranks=False,
        ),
        Printed(
            r"Number of GPUs used for current experiment is not consistent with the checkpoint|Cannot automatically rescale lr in resuming",
            says=(
                "The checkpoint is from a job with a different number of cards: start as many, or let mmengine scale the learning rate "
                "(auto_scale_lr)."
            ),
            ranks=False,
        ),
        Printed(
            r"Missing optimizer state for parameter '(?P<name>[^'\n]{1,120})' in checkpoint|The (?:requested state|model) contains a key "
            r"'(?P<key>[^'\n]{1,120})' that does not exist in the loaded checkpoint",
            says="The checkpoint lacks a state that the job has.",
        ),
        Printed(
            r"Trying to restore (?P<what>optimizer|learning rate scheduler) state but checkpoint contains only the model"
            r"|You have configured \d+ optimizers but the checkpoint contains \d+",
            says="The checkpoint has no state for this optimizer or scheduler: resume from one that was saved with it, or load only the weights.",
            ranks=False,
        ),
        Printed(
            r"loaded state dict (?:contains a parameter group that doesn't match the size of optimizer's group"
            r"|has a different number of parameter groups)"
        ),
        Printed(
            r"KeyError: '(?P<name>(?:\w+_)?state_dict|model|net|module|optimizer|optim|(?:lr_)?scheduler|scaler|amp|ema|meta|epoch|iteration)'",
            beside=(
                r"\b\w*(?:[Cc]heckpoint|ckpt)\w*\[['\"](?:(?:\w+_)?state_dict|model|net|module|optimizer|optim|(?:lr_)?scheduler|scaler|amp|ema"
                r"|meta|epoch|iteration)['\"]\]"
            ),
            says="The checkpoint has no '{name}', which the code reads from it.",
        ),
        Printed(
            r"Can't get attribute '(?P<name>\w+)' on <module '(?!torch\b)",
            beside=r"serialization\.py",
            says="The checkpoint holds an object of {name}, which the code no longer has.",
        ),
    ),
    yields_to=("module-prefix",),
)


def check(run: Run) -> Iterator[Finding]:
    """Find the failures that name what does not fit."""
    matches = [match for match in told(RULE, run) if not _prefixed(match.failure)]
    if not matches:
        return
    failure = matches[0].failure
    load = failure.process.final(schema.Load) if failure.process is not None else None
    path = say("the checkpoint")
    if load is not None and load.begin.file is not None:
        path = quoted(load.begin.file.path)
    more = len(re.findall(r"size mismatch for ", failure.message)) - 1
    evidence = [failed(failure)]
    if load is not None:
        evidence.append(shown(load, say("load of {path}", path=path)))
    yield RULE.found(
        ranks=ranks(match.failure.process for match in matches),
        verdict=say(
            "{path} does not fit the model at {where}: {what:clause}{more}.",
            path=path,
            where=place(failure.site),
            what=_keys(failure) or verdict_of(RULE, matches[0]),
            more=say(" ({count} more differ)", count=more) if more > 0 else "",
        ),
        evidence=evidence,
        when=failure.when,
        explains=[match.failure for match in matches],
        change=_change(failure),
    )


def _keys(failure: Failed) -> Optional[Text]:
    """Return the names that are on one side only, unless a size says more."""
    sides = []
    missing = _names(_MISSING, failure.message)
    if missing is not None:
        sides.append(say("{names} of the model not in the file", names=missing))
    unexpected = _names(_UNEXPECTED, failure.message)
    if unexpected is not None:
        sides.append(say("{names} of the file not in the model", names=unexpected))
    if len(sides) == 2 or (sides and "size mismatch" not in failure.message):
        return listed(sides, by="; ")
    return None


def _names(pattern: Pattern[str], message: str) -> Optional[Text]:
    """Return the first names of a list; if it was cut when it was recorded, their number is not known."""
    match = pattern.search(message)
    names = re.findall(r'"([^"\s]+)"', match.group(1)) if match else []
    if match is None or not names:
        return None
    if _CUT in match.group(1):
        return say("{names} and others", names=listed(names[:3]))
    return listed(names, 3)


def _change(failure: Failed) -> change.Change:
    """Prefer one renaming that explains all names to loading less of the file."""
    renamed = renaming(failure.message)
    if renamed is None:
        return []
    alike = say(
        "All {count} names differ by this alone: '{old}' in the file is '{new}' in the model.",
        count=renamed.names,
        old=renamed.old,
        new=renamed.new,
    )
    return [edit(renamed, failure.site), alike]


def _prefixed(failure: Failed) -> bool:
    """Tell whether the names differ by a wrapper's prefix, which is another rule's cause."""
    return (
        "size mismatch" not in failure.message
        and re.search(r'"(?:module|_orig_mod|_forward_module|_fsdp_wrapped_module)\.', failure.message) is not None
    )
