"""torch.load reads weights only, by default since torch 2.6, and the checkpoint holds more."""

import re
from typing import Dict, Iterator, List

from ddp_probe.judging.rule import Finding, Printed, Rule, failed, shown
from ddp_probe.judging.who import ranks, told
from ddp_probe.reading.model import Failed, Run
from ddp_probe.shared import schema
from ddp_probe.shared.schema import Site
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import listed, place, quoted

RULE = Rule(
    id="DDP511",
    slug="weights-only-refused",
    cause="weights_only_default",
    title="torch.load accepts only weights, but the checkpoint holds other classes.",
    symptom="After an update to torch 2.6 or later, resuming raises UnpicklingError: 'Weights only load failed … Unsupported global'.",
    evidence="The exception names the class that is not allowed.",
    remedy="If the file is your own, allow the named classes before the load: torch.serialization.add_safe_globals([…]). "
    "weights_only=False runs any code in the file: do not use it for a file of unknown origin.",
    restart="no",  # The file and the load stay the same.
    needs=("checkpoint.load",),
    fix="weights-only",
    printed=(
        Printed(
            r"Unsupported (?:global|class): (?:GLOBAL )?(?P<name>[\w.]+) was not an allowed global",
            says="weights_only rejects {name}, which is in the checkpoint.",
        ),
        Printed(
            r"Weights only load failed.*Unsupported (?:global|class):?\s+(?:GLOBAL )?(?P<name>[\w.]+)",
            says="weights_only rejects {name}, which is in the checkpoint.",
        ),
        Printed(
            r"Trying to (?:load|call reduce for|instantiate) unsupported (?:GLOBAL|class|unpickled)[^\n]*? (?P<name>[\w.]+\.\w+)",
            beside=r"[Ww]eights.?only",
        ),
        Printed(
            r"Weights only load failed.*(?:types allowlisted via|classes allowlisted via|Can only (?:build|create new object for|build SETITEM))"
        ),
        Printed(
            r"Weights only load failed.*Unsupported operand (?:1[3-9]\d|2[0-4]\d)\b",
            says="weights_only reads pickle protocol 2, and the checkpoint has a later one.",
        ),
        # The words of torch 2.0 to 2.5, and of 2.6 if the reason is cut off; a file that is not a checkpoint has another reason.
        Printed(
            r"Weights only load failed\. (?:Re-running|In PyTorch 2\.6|This file can still be loaded)",
            unless=r"Unsupported operand|invalid load key|Ran out of input|[Ii]nvalid magic|unexpected EOF|truncated",
            says="weights_only rejects the content of the checkpoint.",
        ),
    ),
    yields_to=("not-a-checkpoint-file",),
)


_MMENGINE = "mmengine.logging.history_buffer.HistoryBuffer"


def check(run: Run) -> Iterator[Finding]:
    """Find the failures that name a rejected class."""
    matched = list(told(RULE, run))
    if not matched:
        return
    failure = matched[0].failure
    names = _names([match.failure for match in matched])
    load = next((call for call in failure.calls if isinstance(call.begin, schema.Load)), None)
    path = say("the checkpoint")
    if load is not None and load.begin.file is not None:
        path = quoted(load.begin.file.path)
    site = load.site if load is not None else failure.site
    yield RULE.found(
        ranks=ranks(match.failure.process for match in matched),
        verdict=say(
            "{path}, loaded at {where}, holds {names}, which weights_only={given} rejects.",
            path=path,
            where=place(site),
            names=listed(names) if names else say("other objects"),
            given=_given(load),
        ),
        evidence=[*([shown(load, say("load of {path}", path=path))] if load is not None else []), failed(failure)],
        when=failure.when,
        explains=[match.failure for match in matched],
        remedy=_remedy(names, site),
    )


def _given(load: object) -> Text:
    given = getattr(getattr(load, "begin", None), "weights_only", None)
    return say("True (the default since torch 2.6)") if given is None else quoted(given)


def _names(failures: List[Failed]) -> List[str]:
    names: Dict[str, None] = {}
    for failure in failures:
        for name in re.findall(r"(?:GLOBAL|Unsupported class:?) ([\w.]+)", failure.message):
            names[name.rstrip(".")] = None
    return list(names)


def _remedy(names: List[str], site: "Site | None") -> str:
    if not names:
        return ""
    imports = ["import %s" % name.rpartition(".")[0] for name in names if "." in name]
    lines = "%s; torch.serialization.add_safe_globals([%s])" % ("; ".join(imports), ", ".join(names))
    facts = {"where": place(site), "code": quoted(lines)}
    if _MMENGINE in names:  # The loader names one class at a time; these follow.
        return say(
            "Before {where}: {code}. mmengine's checkpoints also need numpy's ndarray, dtype, _reconstruct, scalar and "
            "the dtype classes in use, and builtins.getattr, for which you can give a narrow replacement as "
            "(object, 'builtins.getattr'). If the file is of unknown origin, do not set weights_only=False: "
            "it runs any code in the file.",
            **facts,
        )
    return say(
        "Before {where}: {code}. The next load may name another class. If the file is of unknown origin, do not set "
        "weights_only=False: it runs any code in the file.",
        **facts,
    )
