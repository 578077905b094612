"""Prints docs/ledger.md from ddp_probe/shared/ledger_schema.py and from what the ledger watches."""

from typing import Iterator

from ddp_probe.reading.ledger_file import CODES
from ddp_probe.shared import ledger_schema
from ddp_probe.shared.ledger_codec import RowCodec
from ddp_probe.traced.ledger import collectives, optimizers, phases
from docs_parts.markdown import NOTE, prose

_HEAD = """
From the first `init_process_group` on, each rank keeps a record of every call of torch.distributed in a file beside its log,
`rank00003.<host>.<pid>.ledger`. The file has a fixed size of about 250 KB, which does not count towards `DDP_PROBE_MAX_BYTES`. It can be read at any
time: it is written four times a second, and after SIGKILL by the rank's launcher, which holds the same memory. Whatever is done to the file, the
job goes on. Without a launcher that the probe is in (srun, mpirun, a shell), the file itself is mapped: cutting it short while its rank runs ends
that rank by SIGBUS. `DDP_PROBE_LEDGER=off` switches it off. `ddp_probe/reading/whole_ledger.py` reads it.

A record is valid if its first and last field are the same number. Numbers are in the byte order of the process. Times are nanoseconds of the
host's monotonic clock; the header has the wall clock for one of them.

The sums and the steps say who waits for whom: [device-state.md](device-state.md#who-waits-for-whom).

Not recorded: functional collectives (`torch.distributed._functional_collectives`, and what torch.compile and DTensor make of them),
what the reducer of DistributedDataParallel does in C++ (the phases `forward` and `backward` show it), calls of the process group itself, work whose
future is awaited, and a vendor's own functions. A rank that waits in one of them is known by its phase, and by its stacks if it hangs.

Phases are not recorded where torch.compile traces them: DistributedDataParallel.forward or an optimizer's step inside a compiled function. An import
is not a phase; the stacks show it.
"""
_AS_TEXT = """
`rank00003.<host>.<pid>.ledger.txt` is the same as lines of JSON, a small part of the size, in which names can be replaced. Wherever a ledger is
read, either will do; the file in bytes comes first if both are there. `ddp_probe/reading/ledger_file.py` turns one into the other without loss. The
probe never writes it; `scripts/record_jobs` does, of ranks that have ended.

    {"ledger":1,"lines":4,"rank":3,"world_size":8,"pid":123,"wall_ns":1700000000000000000,"mono_ns":800,"moved_ns":950}
    {"text":1,"kind":"site","is":"/job/train.py\\n12\\nmain"}
    {"text":2,"kind":"dtype","is":"float32"}
    {"phase":"dataloader","stamp":5,"entered_ns":700,"state":"open","count":5,"site":1}
    {"record":1,"entered_ns":801,"left_ns":900,"state":"returned","seq":1,"elements":16,"site":1,"tensors":1,"op":"all_reduce","dtype":2}

The first line is the header, and counts the others. `record` is the index, `left_ns` and `state` are `left`, and the other names are those
above. A field that is 0 is left out, a peer of -1 too, and a size that is as this version writes it.
"""

_RECORDER = """
## Beside torch's Flight Recorder

torch keeps records of its own, those of collectives that C++ issues included, and with NCCL writes them when a collective times out: one file a rank,
named by `TORCH_FR_DUMP_TEMP_FILE` (`TORCH_NCCL_DEBUG_INFO_TEMP_FILE` in older versions) with the rank at its end. The probe sets neither.
`report` uses the dumps that lie in the run's folder under a name that ends in `rank_3` or `rank3`, also with `.json`, `.pickle` or `.pkl`:

    TORCH_FR_DUMP_TEMP_FILE=/scratch/nccl_trace_rank_ DDP_PROBE=1 torchrun --nproc_per_node=8 train.py
    cp /scratch/nccl_trace_rank_* ddp_probe_runs/latest/
    python -m ddp_probe report

The last collective of a rank on each side becomes evidence, with its state. If a dump and a ledger cannot both be true, a note says what each
holds, and the finding is less certain. A dump is a pickle; it is read as plain data, and one that holds anything else is refused with a note.
"""


def ledger_page() -> str:
    """Return docs/ledger.md."""
    lines = [
        NOTE % "ddp_probe/shared/ledger_schema.py and ddp_probe/traced/ledger",
        "# The ledger",
        "",
        *_HEAD.strip().splitlines(),
        *_areas(),
        *_codes(),
        *_watched(),
        "",
        "## As text",
        "",
        *_AS_TEXT.strip().splitlines(),
        *_RECORDER.splitlines(),
    ]
    return "\n".join(lines) + "\n"


def _areas() -> Iterator[str]:
    for area in ledger_schema.AREAS:
        yield from ("", "## %s" % area.name.capitalize(), "", area.doc, "", "| at | field | type | meaning |", "|---|---|---|---|")
        rows = RowCodec(area.fields)
        for field in area.fields:
            yield "| %d | `%s` | `%s` | %s |" % (rows.offset(field.name), field.name, field.code, prose(field.doc))


def _codes() -> Iterator[str]:
    for name, listed in CODES.items():
        yield from ("", "## %s" % name.capitalize(), "", "| code | name | |", "|---|---|---|")
        for one in listed:
            yield "| %d | `%s` | %s |" % (one.code, one.name, prose(one.doc))


def _watched() -> Iterator[str]:
    yield from ("", "## Watched functions", "", "A function that the installed versions do not have is passed over.", "")
    yield from ("| function | recorded as | how |", "|---|---|---|")
    for target in collectives.targets():
        yield "| `%s` | a record | its code is swapped |" % str(target)
    for name, module, qualname in phases.SWAPPED:
        when = " once there is an optimizer of its class" if name == "optimizer" else ""
        yield "| `%s.%s` | phase `%s` | its code is swapped%s |" % (module, qualname, name, when)
    for target in optimizers.makers():
        yield "| `%s` | nothing: it shows that there is an optimizer of a class | its code is swapped |" % str(target)
    for name, module, qualname in phases.WRAPPED:
        yield "| `%s.%s` | phase `%s` | it is wrapped |" % (module, qualname, name)
