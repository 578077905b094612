"""Several ranks rename the same checkpoint folder, and all but the first fail."""

from ddp_probe.judging.rule import Printed, Rule

# One process alone can lose its temporary file as well.
_RANKS = r"\[?\b[Rr]ank ?\d|local_rank|torchrun|torch[/\\.]distributed|DistributedDataParallel|world_size|nproc_per_node"
_FILE = r"[^'\n]*\.(?:pth?|tar|bin|json|ckpt|safetensors)"

RULE = Rule(
    id="DDP519",
    slug="save-folder-renamed-twice",
    cause="checkpoint_write_read_race",
    title="Several ranks rename or remove the same checkpoint, and all but the first fail.",
    symptom="'No such file or directory: tmp-checkpoint-49 -> checkpoint-49', or 'Directory not empty', on some ranks while a checkpoint is saved.",
    evidence="The error of a rename from one checkpoint name to another, or of a removal that finds a file already gone.",
    remedy="Rename and remove on one rank per file system, and let the others wait for it in a barrier. This is a known bug of transformers 4.36: "
    "upgrade it; if the nodes share no file system, set save_on_each_node=True.",
    restart="no",  # All ranks rename it at the next save, too.
    needs=("process.end",),
    printed=(
        Printed(
            r"\[Errno 2\] [A-Z][\w ]+: '(?P<new>[^'\n]+)\.te?mp' -> '(?P=new)'",
            beside=_RANKS,
            says="The temporary file of {new} is gone: another rank of the host, or a host on the same folder, has renamed it already.",
        ),
        Printed(
            r"\[Errno (?:2|17|39)\] [A-Z][\w ]+: '(?![^'\n]*\.te?mp')(?P<old>[^'\n]*(?:checkpoint|ckpt)[^'\n]*)' -> "
            r"'(?P<new>[^'\n]*(?:checkpoint|ckpt)[^'\n]*)'",
            says="{old} could not be renamed to {new}: another rank did so first, or the folder is on another node.",
        ),
        Printed(
            r"FileNotFoundError: \[Errno 2\] [A-Z][\w ]+: '(?P<old>%s)' -> '(?P<new>%s)'" % (_FILE, _FILE),
            beside=_RANKS + r"|srun: error|slurmstepd|mpirun",
            says="{old} could not be renamed to {new}: another rank, or a host on the same folder, did so first.",
        ),
        Printed(
            r"FileNotFoundError: \[Errno 2\] [A-Z][\w ]+: '(?P<old>[^'\n]*(?:\.(?:pth?|bin|json|safetensors)|global_step\d+|checkpoint-\d+))'(?! ->)",
            beside=r"\bos\.(?:unlink|rmdir)[(,] ?(?:entry\.name|fullname)",
            says="{old} was gone while its folder was being removed: another rank, or a host on the same folder, removes it too.",
        ),
        Printed(
            r"\[Errno (?:2|39)\] [A-Z][\w ]+: '(?P<old>[^'\n]*\btmp-checkpoint-\d+[^'\n]*)'(?! ->)",
            says="{old} is gone: another rank has renamed the folder already, or it is on another node.",
        ),
    ),
)
