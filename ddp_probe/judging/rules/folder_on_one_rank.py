"""A folder exists for some ranks only: all make it and one is first, or one makes it and the others do not wait, or use another disk."""

import os
from dataclasses import replace
from typing import Iterator, Optional

from ddp_probe.judging import change, job_calls, save_changes
from ddp_probe.judging.printed import Match, by_text, matches
from ddp_probe.judging.rule import Finding, Printed, Rule
from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.shared.mask_forms import Expression
from ddp_probe.wording.text import say
from ddp_probe.wording.words import place, quoted

_MADE = r"\bin (?:os\.)?(?:makedirs|mkdir\w*|mkdir_or_exist|touch_dir|create_dir\w*)\b|\bmakedirs?\(|\bmkdir(?:_or_exist)?\("
_WRITES = (
    r"open\([^\n]{0,200}['\"][wax]b?\+?['\"]|torch\.save\(|FileHandler|json\.dump|yaml\.dump|SummaryWriter|save_pretrained|\bin (?:_?save\w*|dump"
    r"|_save_checkpoint)\b"
)
_FOLDERS = r"(?:work_?dirs?|outputs?|results?|checkpoints?|ckpts?|logs?|runs|exps?|experiments?|saved?|snapshots?)\b"
_SEVERAL = Expression(
    r"torchrun|torch[./]distributed|ChildFailedError|local_rank|LOCAL_RANK|init_process_group|Process \d+ terminated|DistributedDataParallel"
    r"|_optim_states\.pt|collect_results|shared directory for all ranks|access to the configured storage path"
    r"|deepspeed|accelerate|(?i:multi-?(?:gpu|node))|\b(?:two|three|four|eight|several|\d) (?:processes|nodes|machines)\b|多(?:个机器|机|卡|进程)"
)
_NO_FOLDER = "The folder {path} does not exist for this rank: another rank creates it, or nobody does."
_NO_FOLDER_OF = "The folder of {path} does not exist for this rank: another rank creates it, or nobody does."

RULE = Rule(
    id="DDP521",
    slug="folder-on-one-rank",
    cause="folder_on_one_rank_only",
    title="A folder exists for some ranks but not for others.",
    symptom="os.makedirs raises FileExistsError on all ranks but one, or some ranks raise FileNotFoundError for a folder that another rank makes.",
    evidence="The error's path, and the call that made the folder or wrote into it, on some of several ranks.",
    remedy="Use os.makedirs(path, exist_ok=True) on every rank; or let rank 0 make the folder, and call torch.distributed.barrier() before the "
    "others use it. A name that contains the time differs on each rank: broadcast it. Without a shared disk, the first rank of each node "
    "must make the folder.",
    restart="unknown",  # Code that makes it on one rank, or a host that lacks the mount.
    needs=("process.end",),
    printed=(
        Printed(
            r"FileExistsError: \[(?:Errno 17|WinError 183)\] [A-Z][\w ]+: '(?P<path>[^'\n]+)'",
            beside=_MADE,
            says="{path} existed already: another rank made it a moment before.",
        ),
        Printed(
            r"RuntimeError: Parent directory (?P<path>[^\n]{1,300}?) does not exist",
            says=_NO_FOLDER,
        ),
        Printed(
            r"FileNotFoundError: \[Errno 2\] [A-Z][\w ]+: '(?P<path>[^'\n]{0,300}" + _FOLDERS + r"[^'\n]{0,300})'",
            beside=_MADE + "|" + _WRITES,
            unless=r" -> ",
            says=_NO_FOLDER_OF,
        ),
        Printed(
            r"FileNotFoundError: \[Errno 2\] [A-Z][\w ]+: '(?P<path>[^'\n]{0,300}(?:checkpoint-|global_step)\d+[^'\n]{0,100})'",
            beside=r"\bin (?:rmtree|_rmtree\w*|_rotate_checkpoints|_save_rng_state|_save_checkpoint|_load_rng_state)\b",
            unless=r" -> ",
            says="{path} does not exist for this rank: another rank creates it, or has removed it, or nobody creates it.",
        ),
        # mmengine and mmcv collect results in files: all ranks need one disk.
        Printed(
            r"FileNotFoundError: \[Errno 2\] [A-Z][\w ]+: '(?P<path>[^'\n]{1,300}part_\d+\.pkl)'",
            beside=r"collect_results",
            says="The folder of {path}, in which the ranks collect results, does not exist for this rank: it is on another disk, or was removed.",
        ),
        Printed(
            r"(?P<path>\S+) is not an shared directory for rank (?P<rank>\d+)",
            says="{path} is not on a disk that all ranks share (rank {rank}): give the evaluator a shared folder, or collect_device='gpu'.",
        ),
        Printed(
            r"Expected (?P<all>\d+) of '(?P<name>[^'\n]{1,60})' under '(?P<path>[^'\n]{1,300})' but found (?P<count>\d+) files",
            says="{path} has {count} of {all} files {name}: each node saved to its own disk, or not every rank saved.",
            ranks=False,
        ),
        Printed(
            r"Unable to set up cluster storage with the following settings",
            says="Ray's workers do not see the folder that the head has written to: storage_path must be where all nodes read and write.",
            ranks=False,
        ),
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """Use the error's words, if some ranks did not have the error: a folder that all ranks find is from an earlier run."""
    recorded = [match for match in matches(RULE, run) if match.failure.process is not None]
    if not 0 < len({match.failure.rank for match in recorded}) < max(run.expected or 0, len(run.ranks)):
        return
    first = recorded[0]
    folder = os.path.normpath(first.found.groupdict().get("path") or "")
    for finding in by_text(RULE, run):
        if first.printed.says in (_NO_FOLDER, _NO_FOLDER_OF):
            yield _of_nobody(finding, first, _holder(run, folder))
        else:
            yield finding


def _holder(run: Run, folder: str) -> Optional[LoggedProcess]:
    """Return a process that has saved into a folder, so that it exists for that one."""
    for process in run.processes:
        saved = [call for call in process.calls(schema.Save) if call.end is not None and call.failure is None]
        if any(os.path.dirname(os.path.normpath(call.begin.path)) == folder for call in saved):
            return process
    return None


def _of_nobody(finding: Finding, match: Match, holder: Optional[LoggedProcess]) -> Finding:
    """Say who has the folder; if nobody is seen to have it, the rank that needs it has to make it."""
    failure, path = match.failure, quoted(match.found.group("path"))
    is_folder = match.printed.says == _NO_FOLDER
    folder = say("The folder {path}", path=path) if is_folder else say("The folder of {path}", path=path)
    if holder is not None:
        verdict = say(
            "{folder} does not exist for this rank, and rank {rank} has saved into it: this rank was too early, or its host has another disk.",
            folder=folder,
            rank=holder.rank,
        )
        return replace(finding, verdict=verdict)
    verdict = say(
        "{folder} does not exist for this rank, and no rank is recorded creating it or saving into it.",
        folder=folder,
    )
    if failure.site is not None and any(isinstance(call.begin, schema.Save) for call in failure.calls):
        edit = save_changes.with_folder(failure.site)
        remedy: str = change.words(edit, job_calls.names)
        return replace(finding, verdict=verdict, remedy=remedy, edits=change.edits(edit))
    remedy = say(
        "Make the folder before {where}: os.makedirs(folder, exist_ok=True), on each host that writes into it.",
        where=place(failure.site),
    )
    return replace(finding, verdict=verdict, remedy=remedy)


def read(run: Run) -> Iterator[Finding]:
    """Use the error's words, if the plain log shows several ranks."""
    several = any(failure.rank is not None for failure in run.failures) or any(_SEVERAL.search(log.text) for log in run.texts)
    return by_text(RULE, run, plain=True) if several else iter(())
