"""A visible-device variable shows ranks the wrong cards: the same one to all of them, or none."""

import re
from typing import Iterator, List, Mapping, Tuple

from ddp_probe.judging import card_use
from ddp_probe.judging.rule import ERROR, WARNING, Finding, Printed, Rule, failed, first_of, line, shown
from ddp_probe.judging.vendor_words import CARDS
from ddp_probe.judging.who import ranks_of
from ddp_probe.reading.logged_call import LogLine
from ddp_probe.reading.model import Failed, LoggedProcess, Run
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import named, quoted

_NONE_LEFT = r"No (?:CUDA|HIP|%s) (?:GPUs|devices) are available|device >= 0 && device < num_(?:gpus|devices)\b.* INTERNAL ASSERT FAILED" % CARDS

RULE = Rule(
    id="DDP307",
    slug="visible-cards-wrong",
    cause="cuda_visible_devices_wrong",
    title="A visible-device variable gives the ranks the wrong cards.",
    symptom="All ranks train on one card although each is on its 'cuda:0'; or 'No CUDA GPUs are available' on a host that has cards.",
    evidence=(
        "The variable leaves each rank the same single card, and the launcher's environment does not set it that way; or the variable names "
        "only cards that do not exist. If the launcher got too few cards, see more-processes-than-cards."
    ),
    remedy=(
        "Unset the variable for the ranks and choose by LOCAL_RANK, or give each rank its own card. If a script or os.environ[...] in the program "
        "sets it, remove that, or set it before torch is imported."
    ),
    restart="no",  # The variable is set by the job or its script.
    needs=("process.start", "ddp.init"),
    printed=(
        Printed(_NONE_LEFT, unless=r"Found no NVIDIA driver|Torch not compiled with CUDA|No HIP GPUs"),
        Printed(
            r"No slot '?(?P<slot>\d+)'? specif\w+ on host",
            beside=r"Detected \w*VISIBLE_DEVICES=",
            says="DeepSpeed counts the cards that the variable leaves, and reads the variable's numbers as theirs: card {slot} is not among them.",
            ranks=False,
        ),
        Printed(
            r"HIP error: invalid device ordinal",
            beside=r"\bray::|\bray\.exceptions",
            says="Ray gives each worker cards by a variable, and the worker counts them differently: ROCm has HIP_ and ROCR_VISIBLE_DEVICES.",
        ),
        Printed(r"No HIP GPUs are available", beside=r"_VISIBLE_DEVICES|\b[Rr]ay\b|RayWorker|TaskRunner"),
        Printed(
            r"\b(?P<name>\w+_VISIBLE_DEVICES)\b[^\n]{0,80}(?:must be configured in ascending order|is set to empty string)",
            says="{name} has a value that the runtime does not accept.",
        ),
        Printed(
            r"device (?P<card>\d+) is not visible \((?P<name>\w+_VISIBLE_DEVICES)=(?P<value>[^)\n]*)\)",
            says="The job asks for card {card}, which {name}={value} does not show.",
        ),
        Printed(
            r"raylet with \d+ GPUs, but (?P<name>\w+_VISIBLE_DEVICES) contains|Inconsistent values found in `?\w+_VISIBLE_DEVICES|(?:use"
            r"|set) \w+_VISIBLE_DEVICES (?:instead of|when) \w+_VISIBLE_DEVICES"
        ),
        Printed(
            r"invalid literal for int\(\) with base 10: '(?P<card>(?:GPU|MIG)-[0-9a-f]{4}[^']*)'",
            says="A visible-device variable names a card by its UUID {card}, and the program needs a number.",
        ),
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """Find ranks that share the only card that they see, and ranks that see none."""
    groups = [group for group in card_use.shared(run) if card_use.why(run, group) == card_use.HIDDEN]
    if groups:
        yield _same(run, groups)
    hidden = [
        (failure, failure.process)
        for failure in run.failures
        if failure.process is not None and failure.fatal and _found(failure) and card_use.visible(failure.process)
    ]
    if hidden:
        yield _none(hidden)


def _found(failure: Failed) -> bool:
    return re.search(_NONE_LEFT, failure.text, re.DOTALL) is not None


def _same(run: Run, groups: "List[List[card_use.CardUse]]") -> Finding:
    first, losses = groups[0], card_use.lost(run)
    variables = _settings(first[0].visible)
    starts = [line(_start(use.process), say("rank {rank}: {variables}", rank=use.process.rank, variables=variables)) for use in first[:4]]
    return RULE.found(
        ranks=card_use.misplaced(run, groups),
        verdict=say(
            "{who:capital} of {host} each see one card, and it is the same one: {variables}.",
            who=named(ranks_of(use.process for use in first)),
            host=first[0].process.host,
            variables=variables,
        ),
        evidence=[*starts, *[shown(use.call, _wraps(use)) for use in first[:2]]],
        when=card_use.began(groups),
        remedy=say(
            "Remove {variables} from what starts the ranks ({command}), and choose the card by LOCAL_RANK: "
            "set_device(int(os.environ['LOCAL_RANK'])).",
            variables=variables,
            command=_command(run),
        ),
        explains=losses,
        severity=ERROR if losses else WARNING,
    )


def _settings(variables: Mapping[str, str]) -> Text:
    return quoted(" ".join("%s=%s" % item for item in sorted(variables.items())))


def _wraps(use: card_use.CardUse) -> Text:
    template = "{who} {who:wraps|wrap} a model on {device}, the only card that {who:it sees|they see}"
    return say(template, who=named(ranks_of([use.process])), device=use.device)


def _none(hidden: "List[Tuple[Failed, LoggedProcess]]") -> Finding:
    failure, process = hidden[0]
    variables = _settings(card_use.visible(process))
    return RULE.found(
        ranks=[refused.rank for refused, _ in hidden if refused.rank is not None],
        verdict=say(
            "{who:capital} {who:sees|see} no card: {variables} names only cards that do not exist.",
            who=named([failure.rank or 0]),
            variables=variables,
        ),
        evidence=first_of([failed(refused) for refused, _ in hidden]),
        when=failure.when,
        remedy=say("Unset it, or name cards that the host has: {variables}.", variables=variables),
        explains=[refused for refused, _ in hidden],
    )


def _start(process: LoggedProcess) -> LogLine:
    return LogLine(process.file, 1)


def _command(run: Run) -> Text:
    for launcher in run.launchers:
        for call in launcher.every():
            entrypoint = getattr(call.begin, "entrypoint", "")
            if entrypoint:
                return quoted(entrypoint)
    return say("a script, or the program itself")
