"""A framework was configured for another number of ranks than the launcher started."""

from ddp_probe.judging.rule import Printed, Rule

_MANY = r"(?P<size>\d+)"
# Among what a number is divided.
_PARTS = (
    r"(?:world[_ -]?size|WORLD_SIZE|(?:number of |# ?|num_|n_?)(?:gpus|GPUs|processes|devices|ranks|cards)\b|GPU count|number of workers \(\d+\) used"
    r"|CUDA device count|(?:tensor|pipeline|data|context|sequence|expert|model)[-_ ](?:model[-_ ])?parallel(?:ism)?(?:[-_ ](?:world[-_ ])?size)?\b"
    r"|(?:tp|pp|dp|cp|ep)[-_ ]size\b|number of generations per prompt|num_generations\b"
    r"|micro[-_ ]batch[-_ ]size \(?\d+\)? times (?:the )?data[-_ ]parallel[-_ ]size)"
)

RULE = Rule(
    id="DDP425",
    slug="number-of-ranks-does-not-fit",
    cause="world_size_wrong",
    title="The configuration is for a different number of ranks from the number launched.",
    symptom=(
        "'does not match the world size', 'does not match num_processes', 'is not divisible by tensor_model_parallel_size', "
        "'Mesh should not be bigger than default world size', 'Invalid parallel dims', or DeepSpeed's 'train_batch_size is not equal to'."
    ),
    evidence="The exception that the framework raises on each rank before the first step, with both numbers.",
    remedy=(
        "Make the two numbers equal: --nproc_per_node times --nnodes, or --ntasks-per-node times --nodes, is what the configuration has to multiply "
        "to. Lightning: Trainer(devices=…, num_nodes=…). DeepSpeed: train_batch_size is micro batch times accumulation times ranks; 'auto' under the "
        "HF Trainer. Megatron, torchtitan, Accelerate: the product of the parallel sizes. Without its launcher a job has one rank."
    ),
    restart="no",  # Both numbers are settings.
    needs=("process.end",),
    printed=(
        Printed(
            r"`devices=(?P<devices>\d+)` and `num_nodes=(?P<nodes>\d+)` in Lightning, but [^\n]*does not match the world size \(%s\)" % _MANY,
            says="Lightning was given devices={devices} and num_nodes={nodes}, but WORLD_SIZE is {size}.",
            ranks=False,
        ),
        Printed(
            r"You set `(?P<name>\w+)=(?P<own>\d+)` in Lightning, but the number of [^\n]*`(?P<option>--[\w-]+)=(?P<size>\d+)` does not match",
            says="Lightning was given {name}={own}, but SLURM {option}={size}.",
            ranks=False,
        ),
        Printed(
            r"You set `--ntasks=%s` in your SLURM bash script, but this variable is not supported" % _MANY,
            says="SLURM was given --ntasks={size}, but Lightning reads --ntasks-per-node.",
            ranks=False,
        ),
        Printed(
            r"ParallelismConfig total_size \((?P<own>\d+)\) does not match\s+num_processes \(%s\)" % _MANY,
            says="The parallel sizes of Accelerate's ParallelismConfig multiply to {own}, but WORLD_SIZE is {size}.",
            ranks=False,
        ),
        Printed(
            r"(?i:world.size)`? ?\(%s\)\s+is not divisible by\s+(?:\d|tensor|pipeline|total_model_size|`?tensor)[^\n]*" % _MANY,
            says="WORLD_SIZE is {size}, which is not a multiple of the product of the model-parallel sizes.",
            ranks=False,
        ),
        Printed(
            r"Mesh should not be bigger than default world size(?: (?P<size>\d+))?, but found (?P<own>\d+) ranks",
            says="The device mesh has {own} places, which is more than the launched ranks.",
            ranks=False,
        ),
        Printed(
            r"(?s:Invalid parallel dims: .{1,300}?!= ?(?i:world_size)\(%s\))" % _MANY,
            says="The parallel sizes do not multiply to WORLD_SIZE, which is {size}.",
            ranks=False,
        ),
        Printed(
            r"There are not enough slots available in the system to satisfy the (?P<size>\d+)\s+slots",
            says="mpirun was asked for {size} processes, but its hosts have fewer slots.",
            ranks=False,
        ),
        Printed(
            r"Process number should not be larger than total available slots|A sequential map was requested, but not enough node entries"
            r"|All nodes which are allocated for this job are already filled",
            says="The launcher was asked for more processes than its hosts have slots.",
            ranks=False,
        ),
        Printed(
            r"The sizes `data_parallel_size=\d+` and `tensor_parallel_size=\d+` multiplied should equal the world size \(%s\)"
            r"|data_parallel_size \(\d+\) \* tensor_model_parallel_size \(\d+\) must equal world_size"
            r"|num_stages \(\d+\) must divide distributed world size" % _MANY,
            says="The parallel sizes do not multiply to the number of ranks that were launched.",
            ranks=False,
        ),
        Printed(
            r"[Tt]he new group's (?:world size should be less or equal to|rank should be within) (?:the )*world[_ ]size set by init_process_group"
            r"|The arg 'group_size' \(\d+\) must not exceed the world size|The world size \(\d+\) must be divisible by 'group_size=",
            says="The job creates a group of more ranks than were launched, or of different ranks.",
            ranks=False,
        ),
        Printed(
            r"train_batch_size is not\s+equal\s+to\s+micro_batch_per_gpu \* gradient_acc_step \* world_size\s*"
            r"(?P<batch>\d+) != (?P<micro>\d+) \*\s+(?P<steps>\d+) \*\s+%s" % _MANY,
            says="DeepSpeed's train_batch_size {batch} is not {micro} (micro batch) x {steps} (accumulation) x {size} (WORLD_SIZE).",
            ranks=False,
        ),
        Printed(
            r"(?:Error|Exception): (?P<what>[^\n]{0,200}?(?:(?:must|should|needs? to) be (?:evenly )?(?:a )?(?:round )?"
            r"(?:multiple of|divisible by|divided by)|not (?:a )?multiple of|not divisible by) (?:the )?(?:total )?%s)" % _PARTS,
            says="A size of the job does not fit the number of parts that it is divided into: {what}.",
            ranks=False,
        ),
        Printed(r"Error: [^\n]{0,40}[Bb]atch ?size should match the number of (?:gpus|GPUs)", ranks=False),
        Printed(
            r"AssertionError: (?P<whole>\d+) is not divisible by (?P<parts>\d+)",
            beside=r"ensure_divisib|parallel_state|tensor_parallel|model_parallel|[Mm]egatron|vllm|sglang",
            says="{whole} parts of the model cannot be divided among {parts} ranks.",
            ranks=False,
        ),
        Printed(
            r"AssertionError|assert [^\n]{0,60}batch_?size % ",
            beside=(
                r"assert [^\n]{0,60}batch_?size % (?:len\((?:\w+\.)?(?:devices|gpus|gpu_ids|device_ids)\)|\w*(?:gpus?|world_size|[Ww]orld"
                r"|n_devices)\b)"
            ),
            says="The job asserts that its batch size is a multiple of the number of cards.",
            ranks=False,
        ),
        Printed(
            r"DeviceMesh only support homogeneous hardware, but found (?P<size>\d+) ranks and (?P<cards>\d+) \w+ devices",
            says="The world size is {size}, which is not a multiple of {cards}, the number of cards of this host.",
            ranks=False,
        ),
        Printed(
            r"Assertion failed: mpiSize == tp \* pp",
            says="The parallel sizes do not multiply to the number of ranks that were launched.",
            ranks=False,
        ),
    ),
)
