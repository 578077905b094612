"""What DDP got: the devices of each rank's model, device_ids, the line that gave them, and the cards of the host."""

import os
import re
from itertools import chain
from typing import List, NamedTuple, Optional, Sequence, Set

from ddp_probe.judging import change
from ddp_probe.judging.facts import fact
from ddp_probe.judging.vendor_words import CARDS, COMMUNICATION
from ddp_probe.judging.who import ranks_of
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import Failed, LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.shared.accelerators import ACCELERATORS
from ddp_probe.shared.schema import Site
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import at, listed, place, quoted

# DDP's refusal of device_ids: torch 1.1 to 1.7 says "single-device CUDA modules" or "GPU modules", newer ones
# "single-device/multiple-device GPU modules or CPU modules"; a terminal may have broken the line.
_REFUSED = r"device_ids and output_device arguments?\s+only work\s+with\s+single-device"
DEVICE_IDS = _REFUSED + r".{0,200}?module\s+parameters?\s*"
ON_CPU = DEVICE_IDS + r"\{device\(type='cpu'\)\}"
CUT_OFF = _REFUSED + r"(?!.{0,200}?module\s+parameters?\s*\{)"  # The text no longer says which devices there were.
ON_CARDS_ALONE = r"SyncBatchNorm layers only work with (?:GPU|CUDA) modules"
# A collective of a card's backend that got a tensor on the CPU: torch 2.x, 1.x, 1.0, and the vendors' copies of the second.
CPU_TENSOR = (
    r"No backend type associated with device type cpu|Tensors must be (?:CUDA|GPU|%s) and dense"
    r"|Only CUDA dense tensor is supported for NCCL|Could not run 'c10d::\w+' with arguments from the 'CPU' backend"
    r"|(?:%s) only supports (?:%s) tensors, but got a tensor on cpu" % (CARDS, COMMUNICATION, CARDS)
)
TWO_DEVICES = (
    r"[Ee]xpected all tensors to be on the same device|found at least two devices|to be on the same device|expected device \w+:\d+ but got"
    r"|Input type \([^)]*\) and weight type \([^)]*\) should be the same|Expected object of (?:device|backend) type"
)
_CUDA = ("cuda", "rocm")


class Wrapped(NamedTuple):
    """A rank that gave its model to DDP."""

    process: LoggedProcess
    call: "LoggedCall[schema.Wrap]"

    @property
    def placement(self) -> schema.Placement:
        """Return where the model was."""
        return self.call.begin.placement or schema.Placement()

    @property
    def devices(self) -> List[str]:
        """Return the devices of its parameters, the device with most first."""
        held = self.placement.devices
        return sorted(held, key=lambda device: (-held[device].count, device))

    @property
    def survived(self) -> bool:
        """Tell whether the wrap returned."""
        return self.call.end is not None and self.call.failure is None

    @property
    def types(self) -> Set[str]:
        """Return the types of those devices."""
        return {device.partition(":")[0] for device in self.devices}

    @property
    def ids(self) -> str:
        """Return device_ids as the call had them, or nothing."""
        given = self.call.begin.device_ids
        return "[%s]" % ", ".join(map(str, given)) if given else ""


@fact
def wraps(run: Run) -> List[Wrapped]:
    """Return what DDP itself was given; FSDP and MMSeparateDistributedDataParallel move a model themselves."""
    placed: List[Wrapped] = []
    for process in run.processes:
        for call in process.calls(schema.Wrap):
            wrapped = Wrapped(process, call)
            if wrapped.devices and not re.search("FullySharded|fully_shard|Separate", call.begin.wrapper):
                placed.append(wrapped)
    return placed


def refused(run: Run, chosen: Sequence[Wrapped]) -> List[Wrapped]:
    """Return those that DDP refused and that ended the rank; if the launcher ended the rank before the answer, the placement decides."""
    return [wrapped for wrapped in chosen if wrapped.call.open or any(failure.fatal for failure in failures(run, [wrapped]))]


def failures(run: Run, chosen: Sequence[Wrapped]) -> List[Failed]:
    """Return the failures that went through these calls."""
    asked = {wrapped.call for wrapped in chosen}
    return [failure for failure in run.failures if any(call in asked for call in failure.calls)]


def later(_run: Run, wrapped: Wrapped, text: str) -> List[Failed]:
    """Return what the rank died of after a wrap that went well, if its text has this."""
    done = wrapped.call.until
    if done is None or wrapped.call.failure is not None:
        return []
    mine = [failure for failure in wrapped.process.failures if failure.fatal and failure.when >= done]
    return [failure for failure in mine if re.search(text, failure.text)]


def card(process: LoggedProcess, call: Optional["LoggedCall[schema.Wrap]"] = None) -> Optional[schema.Card]:
    """Return an accelerator that the program could have used, the vendors' before CUDA; None on a CPU run."""
    seen = (call.begin.accelerators if call is not None else []) or process.started.accelerators
    return next((each for each in seen if _usable(each, process, call.begin.backend if call is not None else "")), None)


def _usable(accelerator: schema.Card, process: LoggedProcess, backend: str) -> bool:
    if accelerator.count == 0 or any(value.strip() in ("", "-1") for value in accelerator.visible.values()):
        return False
    if accelerator.name in _CUDA and "+cpu" in process.started.versions.get("torch", ""):
        return False
    meant = any(backend in known.backends for known in ACCELERATORS if known.name == accelerator.name)
    return bool(accelerator.initialised or accelerator.device_files or (meant and accelerator.module and accelerator.name not in _CUDA))


def seen(accelerator: schema.Card) -> Text:
    """Return an accelerator for use in a sentence: 8 gcu cards are there."""
    if accelerator.count:
        template = "{count} {kind} {count:card is|cards are} there"
        return say(template, count=accelerator.count, kind=accelerator.name)
    return say("{kind} cards are there", kind=accelerator.name)


def runner(wrapped: Wrapped) -> Optional["LoggedCall[schema.WrapModel]"]:
    """Return mmengine's wrap_model around a wrap."""
    if not any(frame.function.rpartition(".")[2] == "wrap_model" for frame in wrapped.call.begin.through):
        return None
    return next((call for call in reversed(wrapped.process.calls(schema.WrapModel)) if call.at.line < wrapped.call.at.line), None)


def giver(wrapped: Wrapped) -> Text:
    """Return the line that gave device_ids: the job's, or a library's that the job called."""
    site = wrapped.call.site
    own = place(site)
    through = wrapped.call.begin.through
    makers = [frame for frame in through if frame.function.rpartition(".")[2] != "__init__"] or through
    if not makers:
        return own
    frame = next((frame for frame in makers if frame.function.rpartition(".")[2] == "wrap_model"), makers[-1])
    return say(
        "{function} ({line}), called from {caller}",
        function=frame.function.rpartition(".")[2],
        line=place(Site(frame.file.rpartition("site-packages/")[2], frame.line)),
        caller=own,
    )


def remedied(wrapped: Wrapped, *names: str) -> bool:
    """Tell whether a remedy with this name was active in the rank: the call did not do what it was written to do."""
    return any(call.begin.remedy in names and not call.begin.precaution for call in wrapped.process.calls(schema.Remedied))


def moves(wrapped: Wrapped) -> List["LoggedCall[schema.ModuleMove]"]:
    """Return the moves between devices before a wrap that went well, in order; a change of dtype alone does not count."""
    calls = [call for call in wrapped.process.calls(schema.ModuleMove) if call.at.line < wrapped.call.at.line]
    return [call for call in calls if call.end is not None and call.failure is None and call.begin.destination]


def move_text(call: "LoggedCall[schema.ModuleMove]") -> Text:
    """Return a move as a sentence has it: TinyModel.to(gcu:0) at /train/t.py:29."""
    code = "%s.%s(%s)" % (call.begin.model.rpartition(".")[2], call.begin.method, call.begin.destination)
    return say("{code}{at}", code=quoted(code), at=at(call.site))


def all_ids(chosen: Sequence[Wrapped]) -> str:
    """Return device_ids for a sentence on several ranks; if they differ by rank, as the source has them, or what they follow."""
    values = {each.ids for each in chosen}
    if len(values) < 2:
        return chosen[0].ids if chosen else ""
    written = _in_source(chosen[0])
    if written:
        return written
    if all(each.ids == "[%s]" % each.process.local_rank for each in chosen):
        return "[LOCAL_RANK]"
    if all(each.ids == "[%s]" % each.process.rank for each in chosen):
        return "[RANK]"
    return listed(sorted(value or "None" for value in values), 4)


def _in_source(wrapped: Wrapped) -> str:
    """Return device_ids as the job's call has them, if its source is at hand."""
    from ddp_probe.judging import job_calls  # Imported here for the reason given in Rule.found.

    names = job_calls.names(change.Argument(wrapped.call.site, change.WRAP, "device_ids", "None", 1))
    return names.get("was", "") if names is not None else ""


def wrapping_ranks(chosen: Sequence[Wrapped]) -> List[int]:
    """Return whose wraps these are."""
    return sorted(set(ranks_of(wrapped.process for wrapped in chosen)))


class OnCpu(NamedTuple):
    """Ranks whose model was on the CPU when DDP got it, although the host has a card."""

    found: List[Wrapped]
    explains: List[Failed]
    ended: bool  # It ended the job; else the job trains on the CPU and says nothing.


def on_cpu(run: Run, by_mmengine: bool) -> OnCpu:
    """Return the models left on the CPU, those that mmengine left there or the others: DDP refuses them, the first step fails, or nothing fails."""
    of_cpu = [wrapped for wrapped in wraps(run) if wrapped.types == {"cpu"}]
    left = [wrapped for wrapped in of_cpu if _left_by_mmengine(wrapped) == by_mmengine]
    lost = refused(run, [wrapped for wrapped in left if wrapped.ids and card(wrapped.process, wrapped.call)])
    lost += [wrapped for wrapped in left if wrapped not in lost and _no_way_for_cpu(run, wrapped)]
    if lost:
        return OnCpu(lost, failures(run, lost), True)
    silent = [wrapped for wrapped in left if _though_ready(wrapped)]
    after = list(chain.from_iterable(later(run, wrapped, TWO_DEVICES) for wrapped in silent))
    return OnCpu(silent, after, bool(after))


def _no_way_for_cpu(run: Run, wrapped: Wrapped) -> bool:
    texts = [failure.text for failure in failures(run, [wrapped]) if failure.fatal]
    return any(re.search(CPU_TENSOR, text) or re.search(ON_CARDS_ALONE, text) for text in texts)


def _left_by_mmengine(wrapped: Wrapped) -> bool:
    call = runner(wrapped)
    return call is not None and call.begin.get_device == "cpu"


def _though_ready(wrapped: Wrapped) -> bool:
    """Tell whether the program had initialised a card, moved nothing to it, and DDP accepted the model on the CPU."""
    accelerator = card(wrapped.process, wrapped.call)
    well = wrapped.call.until is not None and wrapped.call.failure is None
    changed = remedied(wrapped, "move-model", "mmengine-device")
    return bool(accelerator and accelerator.initialised and well and not changed and all(call.begin.destination == "cpu" for call in moves(wrapped)))


# What to change in the wrap of a model: its device, the wrapper's device_ids, mmengine's model_wrapper_cfg.

_WRAPPER = "MMDistributedDataParallel"
_CFG = "dict(type='%s', device_ids=None)" % _WRAPPER
_LOCAL = "int(os.environ['LOCAL_RANK'])"


def move_to_card(wrapped: Wrapped, kind: str) -> change.Change:
    """Move the whole model to this rank's card in the call that wraps it."""
    device = "torch.device('%s', %s)" % (kind, _LOCAL)
    if _by_a_library(wrapped):
        return [change.Lines(wrapped.call.site, ("model.to(%s)" % device,), ("os", "torch"), call="by a library")]
    return [change.Argument(wrapped.call.site, change.WRAP, "module", "$was.to(%s)" % device, 0, was=say("the model"), imports=("os", "torch"))]


def only_on_a_card(wrapped: Wrapped) -> change.Change:
    """Give device_ids to models on a card only: another run of the program may have cards."""
    if runner(wrapped) is not None:
        return _in_the_config(wrapped)
    value = "$was if $device.type != 'cpu' else None"
    return [
        change.Argument(wrapped.call.site, change.WRAP, "device_ids", value, 1, False, "[local_rank]"),
        change.Argument(wrapped.call.site, change.WRAP, "output_device", value, 2, False, "local_rank"),
    ]


def without_ids(wrapped: Wrapped) -> change.Change:
    """Leave device_ids out."""
    if runner(wrapped) is not None:
        return _in_the_config(wrapped)
    site = wrapped.call.site
    return [change.Argument(site, change.WRAP, "device_ids", "", 1), change.Argument(site, change.WRAP, "output_device", "", 2)]


def _in_the_config(wrapped: Wrapped) -> change.Change:
    """The Runner reads model_wrapper_cfg from its configuration: a file, the argument of from_cfg, or its argument cfg."""
    outer, site = runner(wrapped), wrapped.call.site
    config = _config_file(wrapped)
    given = outer.begin.wrapper_cfg if outer is not None else {}
    if given:
        where = Site(config, 1) if config else site
        left_out = say("Left out, wrap_model makes it [LOCAL_RANK].")
        return [change.Key(where, _WRAPPER, "device_ids", "None"), left_out]
    if config:
        return [change.ConfigLine(config, "model_wrapper_cfg = %s" % _CFG)]
    if _from_cfg(wrapped):
        line = "$first['model_wrapper_cfg'] = %s" % _CFG
        in_file = say("In a config file it is: {code}.", code=quoted("model_wrapper_cfg = %s" % _CFG))
        return [change.Lines(site, (line,), call=change.RUNNER, first="cfg"), in_file]
    value = "dict(model_wrapper_cfg=%s)" % _CFG
    merged = "dict($was, model_wrapper_cfg=%s)" % _CFG
    given_already = say("If the Runner is given a cfg already, add model_wrapper_cfg to it.")
    return [change.Argument(site, change.RUNNER, "cfg", value, replace=merged), given_already]


def _from_cfg(wrapped: Wrapped) -> bool:
    outer = runner(wrapped)
    return outer is not None and any(frame.function.endswith("from_cfg") for frame in outer.begin.through)


def _config_file(wrapped: Wrapped) -> str:
    """Return the config file that the command names, for a Runner that is made from one."""
    started = wrapped.process.started
    if not _from_cfg(wrapped):
        return ""
    named: List[str] = [part for part in _arguments(started.argv) if part.endswith(".py") and not part.startswith("-")]
    return os.path.join(started.cwd, named[0]) if named else ""


def _arguments(argv: List[str]) -> List[str]:
    """Return the program's arguments: what follows it."""
    program: Optional[int] = next((number for number, part in enumerate(argv) if number and part.endswith(".py")), None)
    return argv[program + 1 :] if program is not None else argv[1:]


def _by_a_library(wrapped: Wrapped) -> bool:
    return any(frame.function.rpartition(".")[2] != "__init__" for frame in wrapped.call.begin.through)
