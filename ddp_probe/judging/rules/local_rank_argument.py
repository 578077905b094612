"""The launcher passes the local rank as an argument that the program spells differently, or does not know."""

import os
import re
from typing import Iterator, List, Tuple

from ddp_probe.judging import change
from ddp_probe.judging.rule import MEDIUM, Evidence, Finding, Printed, Rule, line
from ddp_probe.judging.who import ranks_of
from ddp_probe.reading.logged_call import LogLine
from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.shared.schema import Site
from ddp_probe.wording.text import say
from ddp_probe.wording.words import named

_ARGUMENT = re.compile(r"^--local[-_]rank(=\d+)?$")

RULE = Rule(
    id="DDP403",
    slug="local-rank-argument",
    cause="launcher_arg_spelling",
    title="The launcher's --local-rank (or --local_rank) is not an argument of the program.",
    symptom="'error: unrecognized arguments: --local-rank=0', and exit code 2 before anything happens.",
    evidence=(
        "The command line of the rank has the argument that torch.distributed.launch adds (--local_rank up to torch 1.13, --local-rank since 2.0), "
        "and the rank ended with exit code 2, as argparse does, without an exception and before any recorded call."
    ),
    remedy=(
        "Correct the argument that the line names, and put the launcher's arguments before the program. For --local-rank, start with torchrun, "
        "which does not pass it, and read int(os.environ['LOCAL_RANK']); or accept both: parser.add_argument('--local-rank', '--local_rank', "
        "type=int, default=int(os.environ.get('LOCAL_RANK', 0)))."
    ),
    restart="no",  # The program takes no such argument the next time.
    needs=("process.start", "launcher.child"),
    printed=(
        Printed(
            (
                r"(?:unrecognized arguments?|[Uu]nknown (?:command line )?(?:flag|option|argument)s?|[Nn]o such option"
                r"|[Cc]ould not consume arg)[^\n]*?(?P<argument>-{0,2}local[-_]rank)"
            ),
            says="The program does not know the argument {argument} that the launcher passes.",
        ),
        Printed(
            r"not used by the HfArgumentParser: \[[^\]\n]*(?P<argument>--local[-_]rank)",
            says="The program does not know the argument {argument} that the launcher passes.",
        ),
        Printed(
            r"the following arguments are required: [^\n]*(?P<argument>--local[-_]rank)",
            says="The program requires {argument}, which its launcher does not pass.",
        ),
        Printed(
            (
                r"(?:torchrun|launch\.py|run\.py|accelerate|deepspeed)(?: <command>)?[^\n:]{0,40}: error: (?P<what>(?:unrecognized|argument"
                r"|the following|ambiguous|expected|invalid)[^\n]{0,200})"
            ),
            says="The launcher does not accept its command line: {what}.",
            ranks=False,
        ),
        # The line itself says whose argument it is, and who passed it.
        Printed(
            r"(?m:^)(?P<program>[\w./-]{1,200}\.py): error: (?P<what>unrecognized arguments: [^\n]{1,200})",
            says="{program} does not accept all arguments of its command line: {what}.",
            ranks=False,
        ),
        Printed(
            r"(?m:^)(?P<program>[\w./-]{1,200}\.py): error: (?P<what>(?:argument|the following|ambiguous|expected|invalid)[^\n]{1,200})",
            beside=r"torchrun|torch[./]distributed|exitcode\s{0,20}: 2\b|accelerate|deepspeed|srun",
            says="{program} does not accept its command line: {what}.",
            ranks=False,
        ),
        Printed(r"Namespace' object has no attribute '(?P<argument>local_rank)'", says="The program reads args.{argument}, which it was not given."),
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """Find ranks that got the argument and did nothing, if one of them ended with argparse's exit code."""
    arguments = [(process, _given(process)) for process in run.processes]
    given = [(process, argument) for process, argument in arguments if argument and not _worked(process)]
    refused = [process for process, _ in given if process.rank is not None and _exit_code(run, process) == 2]
    if not refused or any(failure.fatal for failure in run.failures):
        return
    ranks = [process.rank for process, _ in given if process.rank is not None]
    spelling = given[0][1].partition("=")[0]
    other = "--local_rank" if spelling == "--local-rank" else "--local-rank"
    launchers = [launcher.start.launcher for launcher in run.launchers if isinstance(launcher.start, schema.LauncherStart)]
    yield RULE.found(
        ranks=ranks,
        verdict=say(
            "{who:capital} ended with exit code 2 before it did anything: {launcher} passes {argument}, which the program does not accept.",
            who=named([refused[0].rank or 0]),
            launcher=launchers[0] if launchers else say("the launcher"),
            argument=spelling,
        ),
        evidence=_evidence(run, given),
        when=min(process.start_when for process, _ in given),
        change=_change(given[0][0], spelling, other),
        confidence=MEDIUM,
    )


def _given(process: LoggedProcess) -> str:
    return next((part for part in process.started.argv[1:] if _ARGUMENT.match(part)), "")


def _worked(process: LoggedProcess) -> bool:
    kinds = (schema.InitProcessGroup, schema.InitDist, schema.SetDevice, schema.ModuleMove, schema.Wrap, schema.WrapModel, schema.Load, schema.Save)
    return any(process.count(kind) for kind in kinds)


def _exit_code(run: Run, process: LoggedProcess) -> "int | None":
    death = run.death(process.rank) if process.rank is not None else None
    return death.exit_code if death is not None else process.exit_code


def _evidence(run: Run, given: List[Tuple[LoggedProcess, str]]) -> List[Evidence]:
    deaths = [death for death in run.deaths if death.exit_code == 2]
    evidence = [line(death.at, say("rank {rank} ended with exit code 2", rank=death.rank)) for death in deaths[:2]]
    for process, argument in given[:4]:
        text = say("{who} {who:was|were} given {argument}", who=named(ranks_of([process])), argument=argument)
        evidence.append(line(LogLine(process.file, 1), text))
    return evidence


def _change(process: LoggedProcess, spelling: str, other: str) -> change.Change:
    """Return the change: accept both spellings."""
    program = next((part for part in process.started.argv[1:] if part.endswith(".py")), "")
    both = change.Spelling(Site(os.path.join(process.started.cwd, program)) if program else None, other, spelling)
    return [both, say("Or start with torchrun, which does not pass it, and read int(os.environ['LOCAL_RANK']).")]
