"""The shared memory of a host, /dev/shm, has no room for what NCCL or the DataLoader puts there."""

from ddp_probe.judging.rule import Printed, Rule

RULE = Rule(
    id="DDP239",
    slug="shared-memory-too-small",
    cause="shared_memory_too_small",
    title="The host's shared memory (/dev/shm) is full.",
    symptom="A bus error of the DataLoader or of NCCL, 'unable to write to file </torch_…>', 'failed to extend /dev/shm/…'.",
    evidence=(
        "The message names /dev/shm or a segment in it. A bus error elsewhere, without NCCL or a DataLoader in its frames, has other causes; "
        "and 'Permission denied' or 'Too many open files' does not mean that it is full."
    ),
    remedy=(
        "Enlarge it: docker run --shm-size=16g, or --ipc=host; in Kubernetes an emptyDir with medium: Memory at /dev/shm. Remove what earlier "
        "jobs left there (ls /dev/shm). Fewer DataLoader workers need less."
    ),
    restart="after",  # /dev/shm has to be cleared or enlarged first.
    needs=("process.end",),
    printed=(
        Printed(
            r"DataLoader worker \(pid\(?s?\)? [\d, ]+\) is killed by signal: Bus error",
            says="The workers of the DataLoader have no room left in shared memory (/dev/shm).",
        ),
        Printed(
            r"[Uu]nexpected (?:bus|BUS) error encountered in (?:DataLoader )?worker"
            r"|unable to (?:allocate shared memory\(shm\) for|write to) file </torch_\w+>[^\n]*|failed to extend /dev/shm/nccl"
            r"|creating shared memory segment (?:of size \d+ )?(?:/dev/shm/)?nccl"
            r"|posix_fallocate failed[^\n]*No space left|unable to open shared memory object </torch_\w+>[^\n]*No space left"
            r"|No space left on device: '/dev/shm/",
            unless=r"Too many open files|Permission denied|No such file or directory",
            ranks=False,
        ),
        # What NCCL returned to each caller, if the warning above it was cut off.
        Printed(
            r"NCCL INFO (?:[\w/]*/)?transport/shm\.cc:\d+ -> 2\b",
            nowhere=r"Permission denied|Too many open files",
            says="NCCL failed while it created its segment in shared memory (/dev/shm).",
            ranks=False,
        ),
        Printed(
            r"Caught signal 7 \(Bus error|\bSIGBUS\b",
            beside=r"\bnccl[A-Z]\w+\(|libnccl\.so",
            unless=r"libhsa|libamdhip",
            says="NCCL got a bus error, as it does when /dev/shm has no room for its segments.",
            ranks=False,
        ),
    ),
)
