"""This torch does not have the backend that init_process_group asks for, and no plugin has registered it."""

from typing import Iterator, List

from ddp_probe.judging import change
from ddp_probe.judging.no_cuda import said
from ddp_probe.judging.rule import Finding, Printed, Rule, failed, first_of
from ddp_probe.judging.vendor_words import ATTRIBUTES, BACKENDS, COMMUNICATION, DEVICES
from ddp_probe.judging.who import told
from ddp_probe.reading.model import Failed, LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.shared.accelerators import ACCELERATORS
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import named, place, quoted

RULE = Rule(
    id="DDP205",
    slug="backend-not-available",
    cause="backend_not_available",
    title="This torch does not have the backend that the job asks for.",
    symptom="\"Distributed package doesn't have NCCL built in\", \"Invalid backend: 'eccl'\", 'Unknown backend type hccl'.",
    evidence=(
        "init_process_group fails with one of these messages; the event records the requested backend. If the backend exists but sees no card, "
        "see no-gpu-visible; if it does not support the tensor's device, backend-does-not-fit-device."
    ),
    remedy=(
        "Ask for a backend that this torch has: gloo on a CPU run. For an accelerator, first import its plugin, which registers its backend (import "
        "torch_gcu for eccl, torch_npu for hccl), or install a torch built with it."
    ),
    restart="no",  # This torch stays as it was built.
    needs=("dist.init_process_group",),
    fix="backend",
    printed=(
        Printed(r"Distributed package doesn't have (?P<backend>\w+) b\w{3,5} in\b", says="This torch is built without {backend}."),
        Printed(r"Invalid backend: '(?P<backend>[^']+)'", says="torch does not know a backend named {backend}: nothing has registered it."),
        Printed(r"Unknown (?:c10d )?backend type (?P<backend>\w+)", says="torch does not know a backend named {backend}: nothing has registered it."),
        Printed(
            r"(?:has no attribute|cannot import name) '(?P<backend>ProcessGroup(?:NCCL|UCC|MPI|Gloo|%s))'" % COMMUNICATION,
            says="This torch is built without {backend}.",
        ),
        Printed(
            (
                r"Requires distributed package to be available"
                r"|module 'torch\.distributed' has no attribute '(?:init_process_group|is_initialized|ReduceOp|get_rank|group)'"
                r"|(?:Distributed package|[Tt]orch[. ]distributed|Distributed torch)(?: package)? is not available"
            ),
            says="This torch is built without its distributed package.",
            unless=r"circular import",
        ),
        Printed(
            r"No rendezvous handler for (?P<scheme>env|tcp)://",
            says="This torch cannot meet by {scheme}://: builds for Windows before 1.8 have only file://.",
        ),
        Printed(
            r"Could not retrieve or create the backend|(?:CCL|ccl|%s) (?:backend )?is not (?:available|registered|supported)" % BACKENDS,
            says="The backend could not be created on this host.",
        ),
        Printed(
            r"makeDeviceFor\w+\(\): unsupported gloo device",
            says=(
                "This torch's gloo was built without a way to communicate on this system, as some builds for Windows are: take another "
                "version of torch."
            ),
        ),
        Printed(
            r"UCC +ERROR required TL (?P<backend>\w+) is not part of the context",
            says="This UCC does not have its part {backend}, which UCC_TLS or the job asks for.",
            ranks=False,
        ),
        Printed(
            # dtu is an older name of gcu; of the others after it there is no record.
            r"Expected one of [\w, ]*device type at start of device string: (?P<kind>%s|dtu|mtia|sdaa|tpu)\b" % DEVICES,
            says="torch does not know the device type {kind}: the plugin that adds it is not imported.",
        ),
        Printed(
            r"[Yy]our assigned backend [^\n]{1,40} is not ava", says="accelerate does not have the backend that the job asks for on this device."
        ),
        Printed(
            r"We detected accelerator (?P<kind>\w+) on your machine\. But we don't know which communication backend",
            says="torch does not know a backend for {kind}: the job names none, and no plugin has registered one.",
        ),
        Printed(
            r"strategies from the (?:DDP|FSDP) family are not supported on the (?P<kind>\w+) accelerator",
            says="There is no distributed backend for {kind}.",
        ),
        Printed(r"PyTorch is not linked with support for (?P<kind>(?!cuda\b)\w+) devices", says="This torch is built without support for {kind}."),
        Printed(
            r"module 'torch' has no attribute '(?P<kind>%s)'" % ATTRIBUTES,
            says="torch has no torch.{kind}: the plugin that adds it is not imported.",
        ),
    ),
    yields_to=("init-failure-swallowed",),
)


def check(run: Run) -> Iterator[Finding]:
    """Find the init_process_group calls that failed because of the backend's name."""
    matches = list(told(RULE, run))
    if not matches:
        return
    first = matches[0].failure
    who = [match.failure.rank for match in matches if match.failure.rank is not None]
    asked = _asked(first)
    yield RULE.found(
        ranks=who,
        verdict=_verdict(first, asked, who),
        evidence=first_of([failed(match.failure) for match in matches]),
        when=first.when,
        change=_change(first, asked),
        explains=[match.failure for match in matches],
    )


def _asked(failure: Failed) -> str:
    return next((call.begin.backend for call in failure.calls if isinstance(call.begin, schema.InitProcessGroup)), "")


def _verdict(first: Failed, asked: str, who: List[int]) -> Text:
    where = place(first.site)
    if asked:
        return say(
            "init_process_group at {where} asks for backend {backend} on {who}: {error}.",
            where=where,
            backend=asked,
            who=named(who),
            error=said(first),
        )
    return say(
        "{where} needs something that this torch lacks on {who}: {error}.",
        where=where,
        who=named(who),
        error=said(first),
    )


def _change(failure: Failed, asked: str) -> change.Change:
    plugins = [accelerator for accelerator in ACCELERATORS if accelerator.modules]
    module = next((plugin.modules[0] for plugin in plugins if asked in plugin.backends), "")
    by_name = any(isinstance(call.begin, schema.InitProcessGroup) for call in failure.calls)
    process = failure.process
    if module and process is not None and not _installed(process, asked):
        return [
            say(
                "{module} registers {backend}, but {python} does not have it: install the vendor's package into that "
                "interpreter, or start the ranks with one that has it. Then import {module} before {where}. On a CPU run "
                "ask for backend='gloo'.",
                module=module,
                backend=asked,
                python=quoted(process.started.executable),
                where=place(failure.site),
            )
        ]
    if module:
        registers = say(
            "Importing it registers {backend}. On a CPU run ask for backend='gloo'.",
            backend=asked,
        )
        return [change.Import(failure.site, module), registers]
    if asked == "nccl" and by_name:
        value = "$was if torch.cuda.is_available() else 'gloo'"
        given = change.Argument(failure.site, change.GROUP, "backend", value, 0, False, "'nccl'", imports=("torch",))
        other = say("For another accelerator, import its plugin and ask for its backend; for NVIDIA cards, install a CUDA build.")
        return [given, other]
    return []


def _installed(process: LoggedProcess, asked: str) -> bool:
    """Tell whether the interpreter has the plugin; a process that does not say may have it."""
    if not process.started.executable:
        return True
    names = {accelerator.name for accelerator in ACCELERATORS if asked in accelerator.backends}
    cards = process.started.accelerators
    return any(card.name in names and (card.importable or card.module) for card in cards)
