"""A checkpoint is loaded onto the device that it was saved from, which this process does not have or should leave to rank 0."""

from typing import Dict, Iterator, List, Optional, Tuple

from ddp_probe.judging import change
from ddp_probe.judging.printed import Match
from ddp_probe.judging.rule import WARNING, Finding, Printed, Rule, failed, first_of, shown
from ddp_probe.judging.who import ranks, told
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.shared.schema import Site
from ddp_probe.wording.text import say
from ddp_probe.wording.words import place, quoted

_ROW = r"\|?\s*0\s+(?:N/A\s+N/A\s+)?\d+\s+C[^\n]*?"

RULE = Rule(
    id="DDP513",
    slug="map-location-missing",
    cause="missing_map_location",
    title="A checkpoint is loaded onto the device that it was saved from.",
    symptom="'Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False', or several processes hold memory on card 0.",
    evidence="The devices in the file, and a load without map_location.",
    remedy="Load to the CPU and move afterwards: torch.load(path, map_location='cpu').",
    restart="no",  # The same line loads onto the same device.
    needs=("checkpoint.load",),
    fix="map-location",
    printed=(
        Printed(
            r"Attempting to deserialize object on (?:an? )?(?P<device>\w+) device(?P<index> \d+)? but torch\.[\w.]+\(\) is (?P<has>False|\d+)",
            says="The checkpoint was saved from a {device} device, and this process has no such device.",
        ),
        Printed(
            r"don't know how to restore data location of [\w.]+ \(tagged with (?P<device>[^)]+)\)",
            says="The checkpoint was saved from {device}, which this torch does not know.",
        ),
        Printed(
            r"CUDA out of memory",
            beside=r"in (?:_cuda_deserialize|default_restore_location|restore_location)\b",
            says="The checkpoint is loaded onto the card that it was saved from, which does not have the memory for it.",
        ),
        Printed(
            # One process with its model and others with only a context, all on card 0.
            _ROW + r"\d{4,5}MiB[^\n]*\n[^\n0-9]*" + _ROW + r"(?P<context>\d{3}MiB)[^\n]*\n[^\n0-9]*" + _ROW + r"(?P=context)",
            says="Several processes hold {context} each on card 0, which belongs to another process.",
            ranks=False,
        ),
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """Find the loads that failed because of a device, and those of several ranks onto one card."""
    matched = list(told(RULE, run))
    if matched:
        yield _refused(matched)
        return
    for met in _on_one_card(run).values():
        guests = [(process, call) for process, call in met if process.local_rank != _card(_device(call))]
        if len(met) > 1 and guests:
            yield _shared(met, guests)
            return


def _refused(matched: List[Match]) -> Finding:
    failure = matched[0].failure
    load = next((call for call in failure.calls if isinstance(call.begin, schema.Load)), None)
    path = quoted(load.begin.file.path) if load is not None and load.begin.file is not None else say("the checkpoint")
    device = _device(load) if load is not None else ""
    given = load.begin.map_location if load is not None else ""
    site = load.site if load is not None else failure.site
    evidence = [failed(failure)]
    if load is not None:
        evidence.insert(0, shown(load, say("load of {path}, saved from {device}", path=path, device=device)))
    return RULE.found(
        ranks=ranks(match.failure.process for match in matched),
        verdict=say(
            "{path} was saved from {device} and is loaded at {where} with {argument}: this process has no such device.",
            path=path,
            device=device or matched[0].found.groupdict().get("device"),
            where=place(site),
            argument=quoted("map_location=%s" % given) if given else say("no map_location"),
        ),
        evidence=evidence,
        when=failure.when,
        explains=[match.failure for match in matched],
        change=_change(site),
    )


def _shared(met: "List[Tuple[LoggedProcess, LoggedCall[schema.Load]]]", guests: "List[Tuple[LoggedProcess, LoggedCall[schema.Load]]]") -> Finding:
    _, call = guests[0]
    path = quoted(call.begin.file.path) if call.begin.file is not None else say("a checkpoint")
    return RULE.found(
        ranks=ranks(process for process, _ in guests),
        verdict=say(
            "{count} ranks load {path} at {where} without map_location, and all of them load it onto {device}, the card of one of them.",
            count=len(met),
            path=path,
            where=place(call.site),
            device=_device(call),
        ),
        evidence=first_of([shown(load, say("storages of {device}", device=_device(load))) for _, load in guests]),
        when=min(load.when for _, load in met),
        severity=WARNING,
        change=_change(call.site),
    )


def _on_one_card(run: Run) -> "Dict[Tuple[str, str], List[Tuple[LoggedProcess, LoggedCall[schema.Load]]]]":
    """Return the loads that kept the file's device, one of each rank, by host and card."""
    met: Dict[Tuple[str, str], List[Tuple[LoggedProcess, LoggedCall[schema.Load]]]] = {}
    for process in run.processes:
        for call in process.calls(schema.Load):
            if not call.begin.map_location and call.end is not None and call.failure is None and _card(_device(call)) is not None:
                group = met.setdefault((process.host, _device(call)), [])
                if not group or group[-1][0] is not process:
                    group.append((process, call))
    return met


def _device(call: "LoggedCall[schema.Load]") -> str:
    """Return the device of a file's storages, if it is one device and not the CPU."""
    devices = [device for device in (call.end.locations if isinstance(call.end, schema.Load) else []) if device != "cpu"]
    return devices[0] if len(devices) == 1 else ""


def _card(device: str) -> "int | None":
    index = device.partition(":")[2]
    return int(index) if index.isdecimal() else None


def _change(site: Optional[Site]) -> change.Change:
    return [change.Argument(site, change.LOAD, "map_location", "'cpu'", 1), say("Move the model afterwards: model.to(device).")]
