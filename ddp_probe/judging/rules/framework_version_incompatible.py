"""The program, or a library, was written for another version of torch (or mmcv, mmengine) than the installed one."""

from typing import Iterator

from ddp_probe.judging._logged import RAISED
from ddp_probe.judging._torch_names import ATTRIBUTE, FROM_LIBRARY, IMPORTED, MODULE
from ddp_probe.judging._vendor_words import ATTRIBUTES, MODULES
from ddp_probe.judging.printed import matches
from ddp_probe.judging.rule import Finding, Printed, Rule, failed, first_of
from ddp_probe.reading.model import Run

# torch can lack these for other reasons than its version: a missing plugin, a build without distributed, missing hardware, or two installations.
_OTHERWISE = r"_cuda_|%s|mps|cuda|_C\b|_init_names|init_process_group|is_initialized|ReduceOp" % ATTRIBUTES
_CIRCULAR = r"partially initialized|circular import"
_KEYWORDS = (
    r"static_graph|weights_only|device_id|mmap|gradient_as_bucket_view|use_orig_params|find_unused_parameters|device_mesh|init_sync|enable_gqa"
    r"|fused|foreach|set_to_none"
    r"|pin_memory_device|persistent_workers|is_causal|assign|device_type|use_reentrant|non_persistent|recurse|broadcast_buffers"
)

RULE = Rule(
    id="DDP805",
    slug="framework-version-incompatible",
    cause="framework_version_incompat",
    title="The code needs another version of a framework than the installed one.",
    symptom=(
        "AttributeError or ImportError for a name in torch, a keyword that a torch function does not know, an assertion about versions, "
        "or an internal assertion of DDP's reducer."
    ),
    evidence="The exception names what the installed version lacks: a name that is known to differ between versions of torch, "
    "or one that an installed library uses. "
    "Any other name in the job's own line may be a typo, or a submodule that was not imported. The versions are in process.start.",
    remedy=(
        "Install the version that the code was written for, or change the call to one that this version has. For OpenMMLab, take mmcv, "
        "mmengine and torch from one row of its compatibility table."
    ),
    needs=("process.end", "process.start"),
    printed=(
        Printed(
            r"AttributeError: module '(?P<module>(?:mmcv|mmengine|mmdet|mmseg|distutils|numpy)(?:\.\w+)*)' has no attribute '(?P<name>\w+)'",
            unless=_CIRCULAR,
            says="{module} of the installed version has no {name}.",
        ),
        Printed(
            r"AttributeError: %smodule '(?P<module>torch(?:\.\w+)*)' has no attribute '(?!(?:%s))(?P<name>\w+)'" % (ATTRIBUTE, _OTHERWISE),
            unless=_CIRCULAR,
            says="{module} of the installed version has no {name}.",
        ),
        Printed(
            r"AttributeError: module '(?P<module>torch(?:\.\w+)*)' has no attribute '(?!(?:%s))(?P<name>\w+)'" % _OTHERWISE,
            beside=FROM_LIBRARY,
            unless=_CIRCULAR,
            says="{module} of the installed version has no {name}.",
        ),
        Printed(
            r"cannot import name '(?P<name>\w+)' from '(?P<module>mmcv(?:\.\w+)*|mmengine(?:\.\w+)*)'",
            unless=_CIRCULAR,
            says="{module} of the installed version has no {name}.",
        ),
        Printed(
            IMPORTED + r"cannot import name '(?P<name>\w+)' from '(?P<module>torch(?!\._C)(?:\.\w+)*)'",
            unless=_CIRCULAR,
            says="{module} of the installed version has no {name}.",
        ),
        Printed(
            r"cannot import name '(?P<name>\w+)' from '(?P<module>torch(?!\._C)(?:\.\w+)*)'",
            beside=FROM_LIBRARY,
            unless=_CIRCULAR,
            says="{module} of the installed version has no {name}.",
        ),
        Printed(
            (
                r"is a zip archive \(did you mean to use torch\.jit\.load\(\)\?\)"
                r"|Attempted to read a PyTorch file with version \d+, but the maximum supported version for reading is \d+"
            ),
            says="The checkpoint is in the format of a later torch than the installed one.",
        ),
        Printed(
            r"Can't get attribute '(?P<name>\w+)' on <module '(?P<module>torch(?:\.\w+)*)'",
            says="The checkpoint needs {name} of {module}, which the installed version does not have.",
        ),
        Printed(
            (
                r"No module named '(?P<module>numpy\._core[\w.]*|mmcv\.(?!_ext)[\w.]+|mmengine\.[\w.]+|(?:%s|torch_(?:hpu"
                r"|dtu))\.(?!_C\b|torch')[\w.]+)'" % MODULES
            ),
            says="The installed version has no {module}.",
        ),
        Printed(MODULE + r"No module named '(?P<module>torch\.(?!_C\b)[\w.]+)'", says="The installed version has no {module}."),
        Printed(r"No module named '(?P<module>torch\.(?!_C\b)[\w.]+)'", beside=FROM_LIBRARY, says="The installed version has no {module}."),
        Printed(
            r"(?:MM)?(?:Distributed)?DataParallel' object has no attribute '(?P<name>_\w+)'",
            says="DistributedDataParallel of the installed torch has no {name}.",
        ),
        Printed(
            r"got an unexpected keyword argument '(?P<name>%s)'" % _KEYWORDS,
            beside=r"torch[/\\.]|mmengine|mmcv|DistributedDataParallel",
            says="The installed version does not know the argument {name}.",
        ),
        Printed(r"'(?P<name>%s)' is an invalid keyword argument" % _KEYWORDS, says="The installed version does not know the argument {name}."),
        Printed(r"rebuilt_param_indices_?[^\n]* INTERNAL ASSERT FAILED", ranks=False),
        Printed(
            (
                r"(?P<what>(?:MMCV|MMEngine|mmcv|mmengine|MMDet\w*"
                r"|mmdet\w*)\s?==\s?[\w.]+) is used but (?:is )?incompatible[^\n]*?install (?P<need>[^\n]+)"
            ),
            says="{what} is installed, and {need} is needed.",
        ),
        Printed(
            RAISED
            + (
                r"(?:requires|needs|[Pp]lease (?:upgrade|install|use))[^\n]{0,60}\b(?:torch|PyTorch|pytorch|mmcv|mmengine)\b ?(?:version )?(?:>=|<="
                r"|==|>|<|~=) ?[\d.]+"
            ),
            unless=r"--index-url",
        ),
        Printed(
            r"[Ii]nstalled CUDA version (?P<here>[\d.]+) does not match the version torch was compiled with (?P<torch>[\d.]+)",
            says="nvcc belongs to CUDA {here}, torch was built for CUDA {torch}.",
        ),
        Printed(
            r"detected CUDA version \((?P<here>[\d.]+)\) mismatches the version that was used to compile\s+PyTorch \((?P<torch>[\d.]+)\)",
            says="nvcc belongs to CUDA {here}, torch was built for CUDA {torch}.",
        ),
    ),
    yields_to=("mixed-installations",),
)


def check(run: Run) -> Iterator[Finding]:
    """Use the exception's words, and add the installed versions."""
    found = [match for match in matches(RULE, run) if match.failure.process is not None]
    if not found:
        return
    first = found[0]
    process = first.failure.process
    versions = process.started.versions if process is not None else {}
    installed = ", ".join("%s %s" % (name, versions[name]) for name in ("torch", "mmengine", "mmcv", "python") if name in versions)
    said = (
        first.printed.says.format_map({"name": "?", "module": "?", **{key: value or "?" for key, value in first.found.groupdict().items()}})
        if first.printed.says
        else RULE.title
    )
    yield RULE.found(
        ranks=sorted({match.failure.rank for match in found if match.failure.rank is not None and match.printed.ranks}),
        verdict="%s%s." % (said.rstrip("."), " (%s)" % installed if installed else ""),
        evidence=first_of([failed(match.failure) for match in found]),
        when=first.failure.when,
        explains=[match.failure for match in found],
    )
