"""The names in a checkpoint have the prefix of a wrapper that the model does not have, or the other way round."""

import re
from typing import Iterator, Optional

from ddp_probe.checkpoints.tensor_names import Renaming
from ddp_probe.judging import change
from ddp_probe.judging.load_calls import edit, renaming
from ddp_probe.judging.rule import Finding, Printed, Rule, failed, shown
from ddp_probe.judging.who import ranks, told
from ddp_probe.reading.model import Failed, Run
from ddp_probe.shared import schema
from ddp_probe.wording.text import say
from ddp_probe.wording.words import place, quoted

_PREFIX = r"(?P<prefix>module|_orig_mod|_forward_module|_fsdp_wrapped_module)\."

RULE = Rule(
    id="DDP515",
    slug="module-prefix",
    cause="module_prefix_mismatch",
    title="The names in the checkpoint and in the model differ by the prefix of a wrapper.",
    symptom="load_state_dict raises 'Missing key(s) … Unexpected key(s)', and one list is the other with 'module.' before each name.",
    evidence="The exception lists the names of both.",
    remedy="Save and load the model inside the wrapper: torch.save(ddp.module.state_dict(), path) and ddp.module.load_state_dict(state); "
    "for a file that already has the prefix: torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, 'module.').",
    restart="no",  # The names in the file and in the model stay.
    needs=("process.end",),
    printed=(
        Printed(
            (
                r"Missing key\(s\) in state_dict:?\s*\"(?!(?:module|_orig_mod|_forward_module"
                r"|_fsdp_wrapped_module)\.)[^\"]+\".*Unexpected key\(s\) in state_dict:?\s*\""
            )
            + _PREFIX,
            says="The checkpoint's names begin with '{prefix}.' and the model's do not: it was saved from the wrapper.",
        ),
        Printed(
            r"Missing key\(s\) in state_dict:?\s*\""
            + _PREFIX
            + r"[^\"]*\".*Unexpected key\(s\) in state_dict:?\s*\"(?!(?:module|_orig_mod|_forward_module|_fsdp_wrapped_module)\.)",
            says="The model's names begin with '{prefix}.' and the checkpoint's do not: it is loaded into the wrapper.",
        ),
        Printed(
            r"unexpected key (?:in source state_dict: |\\?\")" + _PREFIX,
            says="The checkpoint's names begin with '{prefix}.', and none of them is loaded.",
            ranks=False,
        ),
    ),
)


_SAVE = say("Save without the prefix from now on: torch.save(ddp.module.state_dict(), path).")


def check(run: Run) -> Iterator[Finding]:
    """Find the failures whose two lists differ by a prefix, of all names or of those of one part."""
    failures = [match.failure for match in told(RULE, run)]
    others = [failure for failure in run.failures if failure not in failures and failure.process is not None]
    failures += [failure for failure in others if failure.fatal and _inside(failure)]
    if not failures:
        return
    failure = failures[0]
    renamed = renaming(failure.message)
    first = next(("%s." % match.found.group("prefix") for match in told(RULE, run)), "")
    in_file = renamed.in_file if renamed is not None else first != "" and not re.search(RULE.printed[1].pattern, failure.message, re.DOTALL)
    prefix = first
    if renamed is not None:
        prefix = renamed.old if in_file else renamed.new
    load = failure.process.final(schema.Load) if failure.process is not None else None
    path = quoted(load.begin.file.path) if load is not None and load.begin.file is not None else say("the checkpoint")
    where = place(failure.site)
    if in_file:
        verdict = say(
            "At {where} the names in {path} begin with '{prefix}' and the model's do not.",
            where=where,
            path=path,
            prefix=prefix,
        )
    else:
        verdict = say(
            "At {where} the model's names begin with '{prefix}' and those in {path} do not.",
            where=where,
            path=path,
            prefix=prefix,
        )
    evidence = [failed(failure)]
    if load is not None:
        evidence.append(shown(load, say("load of {path}", path=path)))
    yield RULE.found(
        ranks=ranks(failed_load.process for failed_load in failures),
        verdict=verdict,
        evidence=evidence,
        when=failure.when,
        explains=failures,
        change=_change(failure, renamed, prefix, in_file),
    )


def _inside(failure: Failed) -> bool:
    renamed = renaming(failure.message)
    return renamed is not None and bool(renamed.wrapper)


def _change(failure: Failed, renamed: Optional[Renaming], prefix: str, in_file: bool) -> change.Change:
    if not in_file and prefix == "module.":
        text = "$on.module.load_state_dict($args)"
        return [change.Rewritten(failure.site, change.LOAD_STATE, text), say("Or load before the wrap.")]
    renaming = renamed or Renaming(prefix if in_file else "", "" if in_file else prefix, True, 0)
    return [edit(renaming, failure.site), _SAVE if in_file else say("Or load before the model is wrapped.")]
