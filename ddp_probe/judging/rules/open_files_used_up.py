"""A process has as many files open as its limit allows; DataLoader workers hand over each tensor as one more."""

from ddp_probe.judging.rule import Printed, Rule

# The host's own limit, ENFILE, has another remedy.
_OF_THE_PROCESS = r"Too many open files(?! in system)"

RULE = Rule(
    id="DDP243",
    slug="open-files-used-up",
    cause="too_many_open_files",
    title="A process has used up its limit of open files.",
    symptom=(
        "'[Errno 24] Too many open files', 'received 0 items of ancdata', or 'Too many open files. Communication with the workers is no "
        "longer possible', often after hours of training."
    ),
    evidence=(
        "The message says so. 'received 0 items of ancdata' is what Python says when a file that a DataLoader worker sent had no free place "
        "in the rank that received it. 'Too many open files in system' is the limit of the host, which is another cause."
    ),
    remedy=(
        "Raise the limit before the job starts: ulimit -n 65535; in Docker, --ulimit nofile=65535:65535. With workers, also call "
        "torch.multiprocessing.set_sharing_strategy('file_system') at the start of the program, in the workers too, so that tensors take no "
        "open file. If the number grows all the time (ls /proc/PID/fd | wc -l), find what is opened and not closed, or which batches are kept "
        "in a list: keep copies of them."
    ),
    restart="no",  # The limit and what opens the files stay.
    needs=("process.end",),
    printed=(
        Printed(
            r"received 0 items of ancdata|%s\. Communication with the workers" % _OF_THE_PROCESS,
            says="Tensors of the DataLoader's workers could not be received: the limit of open files was used up.",
        ),
        Printed(r"unable to open shared memory object </torch_\w+>[^\n]*%s" % _OF_THE_PROCESS),
        Printed(
            r"\[Errno 24\] %s: '(?P<path>[^'\n]+)'" % _OF_THE_PROCESS,
            says="{path} could not be opened: the process had used up its limit of open files.",
        ),
        Printed(r"\[Errno 24\] %s" % _OF_THE_PROCESS),
    ),
)
