"""The processes train alone: no launcher started one per card, or a launcher did and each was told that it is alone."""

import shlex
from typing import Iterator, List, Optional

from ddp_probe.judging import card_use, change
from ddp_probe.judging.rule import WARNING, Evidence, Finding, Printed, Rule, line, shown
from ddp_probe.judging.who import RAISED
from ddp_probe.reading.logged_call import LoggedCall, LogLine
from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.shared.mask_forms import Expression
from ddp_probe.wording.text import say
from ddp_probe.wording.words import at, counted, quoted

_ACCELERATE = Expression(r"(?:^|[/\\])accelerate(?:-launch)?$|accelerate[./\\]commands[./\\](?:launch|accelerate_cli)")
_PROCESSES = Expression(r"--num[-_]processes[= ](\d{1,6})\b")

RULE = Rule(
    id="DDP311",
    slug="launched-without-launcher",
    cause="launched_without_launcher",
    title="The processes train alone: they have no process group, or there is only one process.",
    symptom=(
        "The job finishes, but no faster than on one card. Only one of several cards is busy, or each process writes the same checkpoint and "
        "does not get the gradients of the others."
    ),
    evidence=(
        "One process without a launcher moved its model to one of several cards and trained; or a launcher started several, "
        "mmengine's runner has launcher='none', and no rank called init_process_group."
    ),
    remedy="Start with torchrun --nproc_per_node=<cards> train.py, and give the runner launcher='pytorch' (the command's --launcher pytorch).",
    restart="no",  # The same command starts the same processes.
    needs=("process.start", "mmengine.wrap_model"),
    printed=(
        Printed(
            RAISED
            + r"Expected (?:the (?:script|program) )?to be (?:launched|run) (?:by|with|using|via) (?:`?torchrun|`?python -m torch\.distributed)",
            ranks=False,
        ),
        Printed(
            RAISED + r"[Pp]lease (?:use|run|launch|start)[^\n]{0,60}(?:torchrun|torch\.distributed\.(?:launch|run)|accelerate launch)",
            unless=r"--local[-_]rank",
            ranks=False,
        ),
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """Find ranks that do not know each other, then a program that left cards unused."""
    if any(failure.fatal for failure in run.failures):
        return
    ranks = [process for process in run.processes if (process.world_size or 0) > 1 and process.started.role == "rank"]
    alone = [call for call in map(_believes_alone, ranks) if call is not None]
    if alone and len(alone) == len(ranks):
        yield _each_alone(ranks, alone)
    elif len(run.processes) == 1 and run.processes[0].started.role == "solo" and run.processes[0].started.launcher == "none":
        yield from _asked_for_more(run.processes[0]) or _one_of_many(run.processes[0])


def _asked_for_more(process: LoggedProcess) -> List[Finding]:
    """Find a program that accelerate should have started several times, and started once, without a rank."""
    words = process.started.parent
    if not any(_ACCELERATE.search(word) for word in words):
        return []
    option = _PROCESSES.search(" ".join(words))
    count = int(option.group(1)) if option is not None else 1
    if count < 2:
        return []
    return [
        RULE.found(
            ranks=[],
            verdict=say(
                "accelerate launch was asked for {asked}, but started only one, which trains alone.",
                asked=counted(count, "process", "processes"),
            ),
            evidence=[
                line(
                    LogLine(process.file, 1),
                    say("No rank is set, and the parent process is: {command}", command=quoted(" ".join(words))),
                )
            ],
            when=process.start_when,
            change=_several(process, words, count),
            severity=WARNING,
        )
    ]


def _several(process: LoggedProcess, words: List[str], count: int) -> change.Change:
    """Return what starts several processes: with --cpu accelerate launch starts one, whatever it is asked for."""
    by_torchrun = "torchrun --nproc_per_node=%d %s" % (count, _program(process))
    if "--cpu" in words or not card_use.count(process):
        why = say("accelerate launch starts several processes only with --multi_gpu.")
        return [change.LaunchCommand("ACCELERATE_USE_CPU=true " + by_torchrun), why]
    instead = say("Or give accelerate launch --multi_gpu beside --num_processes {count}.", count=count)
    return [change.LaunchCommand(by_torchrun), instead]


def _program(process: LoggedProcess) -> str:
    """Return the program and its arguments, as a shell is given them."""
    return " ".join(shlex.quote(part) for part in process.started.argv[1:] if part != "-u") or "train.py"


def _believes_alone(process: LoggedProcess) -> "Optional[LoggedCall[schema.WrapModel]]":
    call = process.first(schema.WrapModel)
    joined = process.count(schema.InitProcessGroup) or process.count(schema.Wrap)
    return call if call is not None and not joined and call.begin.distributed is False else None


def _each_alone(ranks: List[LoggedProcess], alone: "List[LoggedCall[schema.WrapModel]]") -> Finding:
    first = alone[0]
    launcher = first.begin.launcher or "none"
    evidence = []
    for process, call in list(zip(ranks, alone))[:4]:
        evidence.append(shown(call, say("rank {rank}: launcher='{name}', not distributed", rank=process.rank, name=launcher)))
    return RULE.found(
        ranks=[],
        verdict=say(
            "{launcher} started {started}, and each of them trains alone: the runner{where} has launcher='{name}', "
            "and no rank joined a process group.",
            launcher=ranks[0].started.launcher,
            started=counted(len(ranks), "process", "processes"),
            where=at(first.site),
            name=launcher,
        ),
        evidence=evidence,
        when=min(call.when for call in alone),
        change=_joined(ranks[0], first, launcher),
        severity=WARNING,
    )


def _joined(process: LoggedProcess, call: "LoggedCall[schema.WrapModel]", launcher: str) -> change.Change:
    """Return the change: OpenMMLab's tools take the launcher as an argument, other programs give it to the Runner or in the configuration."""
    if "--launcher" in process.started.argv:
        return [say("Start it with --launcher pytorch in place of --launcher {name}, so that all ranks train together.", name=launcher)]
    if any(frame.function.endswith("from_cfg") for frame in call.begin.through):
        return [
            change.Lines(call.site, ("$first['launcher'] = 'pytorch'",), call=change.RUNNER, first="cfg"),
            say("Then all ranks train together."),
        ]
    given = change.Argument(call.site, change.RUNNER, "launcher", "'pytorch'")
    return [given, say("Then all ranks train together. In OpenMMLab's tools it is --launcher pytorch.")]


def _one_of_many(process: LoggedProcess) -> Iterator[Finding]:
    moves = [call for call in process.calls(schema.ModuleMove) if call.end is not None and _accelerator(call.end.devices)]
    trained: List[LoggedCall[schema.Save]] = [call for call in process.calls(schema.Save) if call.end is not None]
    wrapped = process.first(schema.WrapModel)
    cards = card_use.count(process) or 0
    if not moves or cards < 2 or not (trained or wrapped) or process.count(schema.InitProcessGroup):
        return
    device = _accelerator(moves[-1].end.devices if moves[-1].end else {})
    evidence: List[Evidence] = [
        line(
            LogLine(process.file, 1),
            say("No launcher has set a rank: {command}", command=quoted(" ".join(process.started.argv))),
        ),
        shown(moves[-1], say("the model is on {device}", device=device)),
    ]
    yield RULE.found(
        ranks=[],
        verdict=say(
            "One process trains on {device}, and {cards} cards are visible: no launcher started it.",
            device=device,
            cards=cards,
        ),
        evidence=evidence,
        when=process.start_when,
        change=[change.LaunchCommand("torchrun --nproc_per_node=%d %s" % (cards, _program(process)))],
        severity=WARNING,
    )


def _accelerator(devices: "dict[str, int]") -> str:
    return next((device for device in devices if card_use.number(device) is not None), "")
