"""The launcher cannot use its settings: an endpoint without a port, a host file that it cannot read, a number that it does not know."""

from ddp_probe.judging.rule import Printed, Rule

_STEP = r"More processors requested than permitted|Invalid generic resource \(gres\) specification|Requested node configuration is not available"

RULE = Rule(
    id="DDP427",
    slug="launch-settings-refused",
    cause="launcher_arg_spelling",
    title="The launcher cannot use its settings.",
    symptom=(
        "'Port is absent in endpoint', 'The port number of the rendezvous endpoint', 'Hostfile contains a bad entry', or 'torchrun: command not "
        "found', before any rank has started."
    ),
    evidence="The launcher's own words, which name the setting.",
    remedy=(
        "Correct the setting named in that line, on each host. torchrun: --rdzv_endpoint=HOST:PORT with a port from 1 to 65535, or --master_addr and "
        "--master_port with --node_rank. DeepSpeed: a host file with one line 'HOST slots=N' for each host."
    ),
    restart="no",  # The launcher reads the same settings again.
    needs=("launcher.start",),
    printed=(
        # torchrun: the endpoint, and what the static rendezvous needs; the words differ between torch 1.9 and 2.x in - and _ alone.
        Printed(
            r"[Pp]ort is (?:absent|missing) in endpoint: ?(?P<endpoint>\S+?)\.? Try",
            says="The launcher's endpoint {endpoint} has no port: it needs HOST:PORT.",
            ranks=False,
        ),
        Printed(
            r"The (?P<part>port number|hostname) of the rendezvous endpoint '(?P<endpoint>[^'\n]*)' must be",
            says="The launcher cannot use the {part} of its endpoint '{endpoint}'.",
            ranks=False,
        ),
        Printed(
            r"(?:rank|endpoint) is absent in RendezvousParameters|Endpoint is missing in endpoint\.",
            says="The launcher was not given its --node_rank, or the --master_addr and --master_port of the first host.",
            ranks=False,
        ),
        Printed(
            r"Unsupported nproc_per_node value: (?P<value>[^\n]{1,60})",
            says="--nproc_per_node={value} is neither a number nor a word that torchrun knows, such as auto or gpu.",
            ranks=False,
        ),
        Printed(r"nnodes=(?P<value>\S{1,60}) is not in \"MIN:MAX\" format", says="--nnodes={value} is neither a number nor MIN:MAX.", ranks=False),
        Printed(
            r"The rendezvous backend '[^'\n]+' is not registered|rendezvous configuration (?:string must be in format|option '[^'\n]+' must)",
            says="The launcher has no rendezvous of the kind that its arguments name, or cannot read its --rdzv_conf.",
            ranks=False,
        ),
        Printed(
            r"Error initializing torch\.distributed using \w+:// rendezvous: port number missing",
            says="The address of init_process_group has no port: it needs tcp://HOST:PORT.",
            ranks=False,
        ),
        Printed(r"port must have value from 0 to 65535 but was (?P<port>-?\d+)", says="{port} is not a port: the last one is 65535.", ranks=False),
        # DeepSpeed's host file and its options.
        Printed(
            r"Hostfile (?P<what>contains (?:a bad entry|multiple entries for)|is empty or not formatted correctly)[^\n]*unable to proceed",
            says="DeepSpeed cannot read its host file, which {what}: each line is 'HOST slots=N'.",
            ranks=False,
        ),
        Printed(
            r"Hostname '(?P<host>[^'\n]+)' not found in hostfile",
            says="DeepSpeed should use the host {host}, which its host file lacks.",
            ranks=False,
        ),
        Printed(
            r"Num nodes is >1 but no extra nodes available via hostfile|Launching training without ssh, but --node_rank is not set correctly",
            says="DeepSpeed should start several hosts, but has no host file with them, or no --node_rank.",
            ranks=False,
        ),
        # accelerate.
        Printed(
            r"You need to use at least 2 processes to use `--multi_gpu`|Less than two GPU ids were configured and tried to run on"
            r"|Error: The node_rank must be less than the number of nodes|you need to specify the main process port",
            says="accelerate cannot start these processes from its arguments and its configuration.",
            ranks=False,
        ),
        # HCCL's list of ranks and cards.
        Printed(
            r"EI00(?:04|14|17)\)?:[^\n]*(?P<what>[Tt]he ranktable or rank is invalid|parse the ranktable file|for ranktable variable \S+ is invalid"
            r"|missing in the ranktable file)",
            says="HCCL cannot use its rank table ({what}): write it for these hosts and cards, or leave RANK_TABLE_FILE out.",
            ranks=False,
        ),
        # Two launchers in one another, or a variable that is the same for all processes.
        Printed(
            r"LOCAL_RANK \((?P<own>-?\d+)\) != OMPI_COMM_WORLD_LOCAL_RANK \((?P<mpi>\d+)\)",
            says="LOCAL_RANK is {own}, but MPI counts {mpi}: something sets LOCAL_RANK for all processes of a host; take it from MPI.",
            ranks=False,
        ),
        Printed(
            r"Mismatch in local rank setting, args\.local_rank=(?P<given>-?\d+) but env\['LOCAL_RANK'\]=(?P<own>-?\d+)",
            says="LOCAL_RANK is {own}, but the program's argument local_rank is {given}: leave the argument out, or read it from LOCAL_RANK.",
            ranks=False,
        ),
        Printed(
            r"MPI (?P<what>rank|world size) (?P<mpi>\d+) does not match torch (?:rank|world size) (?P<own>\d+)",
            says="The {what} is {own} for torch, but {mpi} for MPI: another launcher's variables are set in the processes that mpirun starts.",
            ranks=False,
        ),
        Printed(
            r"ValueError: Invalid launcher type: (?P<name>\S+)",
            says="mmengine has no launcher '{name}': --launcher is none, pytorch, slurm or mpi.",
            ranks=False,
        ),
        # The scheduler or the shell.
        Printed(
            r"srun: error: Unable to create step for job \d+: (?P<why>%s)" % _STEP,
            beside=r"torch|python|train|RANK",
            says="SLURM does not start the step: {why}.",
            ranks=False,
        ),
        Printed(
            r"execve\(\): (?:torchrun|accelerate|deepspeed|horovodrun|mpirun): No such file or directory"
            r"|(?m:^)[^\n]{0,80}: (?:torchrun|accelerate|deepspeed|horovodrun): (?:command )?not found",
            says="The launcher is not on PATH where it should run: activate the environment there, or write python -m torch.distributed.run.",
            ranks=False,
        ),
    ),
)
