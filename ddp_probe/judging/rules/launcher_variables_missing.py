"""The process does not know its rank: RANK, WORLD_SIZE or the master's address is not in its environment."""

import re
import shlex
from typing import Iterator, List

from ddp_probe.judging import card_use, change, own_group
from ddp_probe.judging.printed import matches
from ddp_probe.judging.rule import Finding, Printed, Rule, failed, first_of
from ddp_probe.judging.who import RAISED
from ddp_probe.reading.model import Failed, LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import listed, place

_NAMES = (
    r"(?:(?:LOCAL_|GROUP_|NODE_|ROLE_)?RANK|(?:LOCAL_|GROUP_|ROLE_)?WORLD_SIZE|MASTER_(?:ADDR|PORT)|SLURM_(?:PROCID|LOCALID|NTASKS|NODEID|JOB_ID"
    r"|STEP_ID|(?:JOB_|STEP_)?NODELIST|NNODES)"
    r"|OMPI_COMM_WORLD_\w+|PMI_\w+|MV2_COMM_WORLD_\w+|TORCHELASTIC_\w+)"
)
_SCHEDULER = re.compile(r"SLURM_|OMPI_|PMI_|MV2_")

RULE = Rule(
    id="DDP401",
    slug="launcher-variables-missing",
    cause="launcher_env_missing",
    title="A variable that the launcher sets for each process is missing.",
    symptom="'environment variable RANK expected, but not set', or KeyError: 'RANK', 'LOCAL_RANK', 'MASTER_ADDR', 'SLURM_PROCID'.",
    evidence=(
        "The exception names the variable, and the environment recorded at the start of the process lacks it. A failure of the launcher itself is "
        "another cause."
    ),
    remedy=(
        "Start with a launcher, which sets RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT: torchrun --nproc_per_node=<cards> train.py; "
        "or run without distribution (launcher='none')."
    ),
    restart="no",  # The same command sets the same variables.
    needs=("dist.init_process_group", "process.start"),
    fix="rendezvous",
    printed=(
        Printed(r"environment variable (?P<name>\w+) expected, but not set", says="The environment variable {name} is not set.", ranks=False),
        Printed(
            r"KeyError: ['\"]?(?P<name>%s)\b['\"]?" % _NAMES,
            unless=r"\A(?!.*environ).*\w\[['\"]%s['\"]\]" % _NAMES,  # A key of the program's own.
            says="The environment variable {name} is not set.",
            ranks=False,
        ),
        Printed(
            r"DeepSpeed requires the (?P<name>LOCAL_RANK) environment variable|LOCAL_RANK is not in the environment\. Consider passing"
            r"|Environment variable `(?:JSM_NAMESPACE_\w+|LSB_\w+)` not found",
            says="A variable of the launcher is not set.",
            ranks=False,
        ),
        Printed(
            r"oneCCL: [^\n]*getenv_local_coord: EXCEPTION",
            says="oneCCL does not find its local rank: start with mpirun, or set CCL_PROCESS_LAUNCHER=none, CCL_LOCAL_SIZE and CCL_LOCAL_RANK.",
            ranks=False,
        ),
        Printed(
            r"Error: (?:\[enforce fail at [^\n]*\] )?rank ?< ?size\. (?P<own>\d+) vs (?P<size>\d+)",
            says="The environment or the call says that this is rank {own} of {size}: ranks begin with 0, and WORLD_SIZE is their number.",
            ranks=False,
        ),
        Printed(
            r"Invalid rank (?P<own>\d+), rank should be in the interval \[0, (?P<last>\d+)\]",
            says="The sampler is told that this is rank {own}, and that the last one is {last}: ranks begin with 0.",
            ranks=False,
        ),
        Printed(
            r"(?:Error|Exception|Timeout): [^\n]*(?:[Tt]imed? ?out|[Tt]imeout)",
            beside=r"init_process_group\([^\n]*\bworld_size=(?P<size>\d+), *rank=(?P=size)\b",
            says="init_process_group is called with a rank equal to world_size: ranks begin with 0, so nobody is rank 0 and opens the store.",
            ranks=False,
        ),
        # The head of a traceback that was cut off, or one that a program printed in another order.
        Printed(
            r"(?m:^)'(?P<name>%s)'\s{0,4}(?m:$)" % _NAMES,
            beside=r"environ(?:\.get)?[\[(]['\"]%s['\"]" % _NAMES,
            says="The environment variable {name} is not set.",
            ranks=False,
        ),
        Printed(
            r"TypeError: int\(\) argument must be [^\n]*NoneType",
            beside=r"(?:environ\.get|getenv)\(['\"]%s['\"]" % _NAMES,
            says="A variable of the launcher is not set.",
            ranks=False,
        ),
        # Two processes with one rank: the variables are those of one process, or of two launches.
        Printed(
            r"Bootstrap Root : rank (?P<own>\d+) of (?P<size>\d+) ranks has already checked in",
            says="Two processes say that they are rank {own} of {size}: their launchers give both the same rank.",
            ranks=False,
        ),
        Printed(
            r"Bootstrap Root : mismatch in rank count from procs (?P<one>\d+) : (?P<two>\d+)",
            says="WORLD_SIZE is {one} for one process and {two} for another.",
            ranks=False,
        ),
        Printed(
            r"OMPI was not built with SLURM's PMI\s{1,3}support",
            says=(
                "Open MPI does not learn its rank from srun, as it was built without SLURM's PMI: start with srun --mpi=pmix, if srun --mpi=list has "
                "it, or with mpirun."
            ),
            ranks=False,
        ),
        Printed(r"(?:rank|world size) parameter missing", says="Neither the environment nor the call gives rank and world size.", ranks=False),
        Printed(
            r"ValueError: invalid literal for int\(\) with base 10: ''",
            beside=r"(?:environ(?:\.get)?|getenv)[\[(]['\"]%s['\"]" % _NAMES,
            says="A variable of the launcher is empty.",
            ranks=False,
        ),
        # Without a launcher's variables DeepSpeed asks MPI for its rank.
        Printed(
            r"No module named 'mpi4py'",
            beside=r"mpi_discovery|deepspeed[/\\]comm|init_distributed",
            says="The variables of a launcher are not set, so DeepSpeed looks for MPI.",
            ranks=False,
        ),
        Printed(
            RAISED
            + r"(?:Missing|missing|[Nn]o|must set|[Pp]lease set|is not set|are not set)[^\n]{0,60}\b(?P<name>%s)\b[^\n]{0,40}(?:environment|env)"
            % _NAMES,
            says="The environment variable {name} is not set.",
            ranks=False,
        ),
        Printed(
            RAISED + r"\b(?P<name>%s)\b[^\n]{0,30}(?:(?:is|was|env was) not set|not set in|not found in|must be set)" % _NAMES,
            says="The environment variable {name} is not set.",
            ranks=False,
        ),
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """Find the exception, and how the process was started."""
    matched = matches(RULE, run)
    if not matched:
        return
    first = matched[0].failure
    process = first.process or LoggedProcess("")
    name = matched[0].found.groupdict().get("name") or say("of the launcher")
    has = sorted(key for key in process.started.environment if re.fullmatch(_NAMES, key))
    asked = say(", asked for at {where}", where=place(first.site)) if first.site is not None else ""
    yield RULE.found(
        ranks=[],
        verdict=say(
            "The environment variable {name} is not set{asked}: {started}, and its environment has {has}.",
            name=name,
            asked=asked,
            started=_started(process),
            has=listed(has) if has else say("no variable with its rank"),
        ),
        evidence=first_of([failed(match.failure) for match in matched]),
        when=first.when,
        change=_change(process, name, first),
        explains=[match.failure for match in matched],
    )


def _started(process: LoggedProcess) -> Text:
    launcher = process.started.launcher
    if launcher == "environment":
        return say("it was started by hand")
    if launcher in ("none", ""):
        return say("no launcher started the process")
    return say("it was started by {launcher}", launcher=launcher)


def _change(process: LoggedProcess, name: str, failure: Failed) -> change.Change:
    """A scheduler that has placed the process tells everything; otherwise a launcher has to."""
    launcher = process.started.launcher
    lines, imports = own_group.places(process, launcher)
    if lines:
        return [change.Lines(failure.site, tuple(lines), tuple(imports)), *own_group.notes(process, launcher)]
    command = change.LaunchCommand("torchrun --nproc_per_node=%d %s" % (_processes(process), _for_torchrun(process.started.argv)))
    if _SCHEDULER.match(name):
        by_scheduler = say("Or start it with the scheduler that sets {name}: srun, mpirun.", name=name)
        return [*_as_pytorch(process, failure), command, by_scheduler]
    if launcher in ("none", ""):
        return [command, say("Or run without distribution (launcher='none'), if you want one process.")]
    return [command, say("It sets {name} for each process.", name=name)]


def _as_pytorch(process: LoggedProcess, failure: Failed) -> List[change.Edit]:
    """Return the change of a Runner whose code names another launcher."""
    init = next((call for call in failure.calls if isinstance(call.begin, schema.InitDist)), None)
    if init is None or not init.begin.through or re.search(r"--launcher\b", " ".join(process.started.argv)):
        return []
    return [change.Argument(init.site, change.RUNNER, "launcher", "'pytorch'")]


def _processes(process: LoggedProcess) -> int:
    """Return the number of cards, or of processes that were asked for; two if neither is known."""
    asked = process.started.environment.get("LOCAL_WORLD_SIZE") or process.started.environment.get("WORLD_SIZE") or ""
    return card_use.count(process) or (int(asked) if asked.isdigit() and int(asked) else 2)


def _for_torchrun(argv: List[str]) -> str:
    """Return the program and its arguments, for a Runner that torchrun starts."""
    text = " ".join(shlex.quote(part) for part in argv[1:] if part != "-u") or "train.py"
    return re.sub(r"(--launcher[ =])(?:slurm|mpi|none)\b", r"\1pytorch", text)
