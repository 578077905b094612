"""The program, or a library, was written for another version of torch (or mmcv, mmengine) than the installed one."""

import re
from typing import Dict, Iterator

from ddp_probe.judging.printed import Match, matches, verdict_of
from ddp_probe.judging.rule import Finding, Printed, Rule, failed, first_of
from ddp_probe.judging.vendor_words import ATTRIBUTES, MODULES, PLUGIN_LIBRARY
from ddp_probe.judging.who import RAISED
from ddp_probe.reading.model import Run
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import quoted

# By comparing the names of torch 1.12.1 with those of 2.13.0; older ones, and some of the versions between, are added by hand.
_NAMES: Dict[str, str] = {
    "torch": (
        "_decomp _dynamo _export _foreach_norm _functorch _guards _higher_order_ops _inductor _logging _prims _refs _six _weights_only_unpickler "
        "accelerator AcceleratorError align_tensors amax amin amp ao as_strided_scatter asarray autocast bfloat16 bits16 bits8 broadcast_to "
        "btrifact btrisolve chain_matmul compile compiler complex concat concatenate cond eig empty_permuted Event export fft float4_e2m1fn_x2 "
        "float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu frombuffer func gels gesv get_autocast_dtype "
        "get_autocast_gpu_dtype get_default_device get_device_module get_float32_matmul_precision GradScaler has_cuda has_cudnn has_mkldnn "
        "has_mps heaviside hypot ifft inference_mode int1 int2 int4 irfft is_deterministic is_inference_mode_enabled jagged kron linalg "
        "logaddexp lstsq masked matrix_rank maximum minimum monitor moveaxis movedim mps mtia nan_to_num nested nested_tensor nonzero_static "
        "OutOfMemoryError permute potrf quint4x2 rfft rms_norm set_autocast_dtype set_default_device set_deterministic "
        "set_float32_matmul_precision set_vital signal softmax solve special swapaxes sym_float sym_int sym_max sym_min sym_not sym_sqrt SymBool "
        "symeig SymFloat SymInt Tag tensor_split testing tile trtrs TypedStorage uint16 uint32 uint64 unflatten unravel_index UntypedStorage "
        "use_deterministic_algorithms vdot vmap while_loop xpu"
    ),
    "torch.nn": (
        "attention Buffer ChannelShuffle CircularPad1d CircularPad2d CircularPad3d Flatten GaussianNLLLoss GELU Hardsigmoid Hardswish HuberLoss "
        "LazyConv2d LazyLinear Mish MultiheadAttention RMSNorm SiLU SyncBatchNorm Transformer Unflatten UninitializedParameter ZeroPad1d "
        "ZeroPad3d"
    ),
    "torch.nn.functional": (
        "gaussian_nll_loss gelu grouped_mm hardswish huber_loss interpolate mish one_hot pixel_unshuffle rms_norm scaled_dot_product_attention "
        "scaled_mm silu"
    ),
    "torch.nn.utils": "clip_grads_with_norm_ get_total_norm skip_init",
    "torch.distributed": (
        "_all_gather_base _coalescing_manager _reduce_scatter_base all_gather_coalesced all_gather_into_tensor all_gather_multigpu "
        "all_gather_object all_gather_single all_reduce_multigpu all_to_all all_to_all_single batch_isend_irecv breakpoint broadcast_multigpu "
        "broadcast_object_list DebugLevel device_mesh DeviceMesh DistBackendError DistError DistNetworkError DistStoreError gather_into_tensor "
        "gather_object gather_single "
        "get_debug_level get_global_rank get_group_rank get_node_local_rank get_process_group_ranks init_device_mesh is_backend_available "
        "is_torchelastic_launched is_ucc_available is_xccl_available monitored_barrier P2POp recv_object_list reduce_multigpu reduce_op "
        "reduce_scatter_multigpu reduce_scatter_single reduce_scatter_tensor scatter_object_list send_object_list shrink_group split_group Work"
    ),
    "torch.distributed.fsdp": (
        "BackwardPrefetch CPUOffloadPolicy FSDPModule fully_shard MixedPrecision MixedPrecisionPolicy register_fsdp_forward_method "
        "ShardedStateDictConfig ShardingStrategy StateDictType"
    ),
    "torch.distributed.checkpoint": "async_save DefaultSavePlanner FileSystemWriter HuggingFaceStorageWriter load save state_dict",
    "torch.distributed.distributed_c10d": (
        "_get_default_store _get_default_timeout _get_pg_default_device _pg_map _world default_pg_nccl_timeout default_pg_timeout "
        "get_global_rank is_xccl_available ProcessGroupNCCL"
    ),
    "torch.cuda": (
        "_sleep amp caching_allocator_enable change_current_allocator clock_rate CUDAGraph CUDAPluggableAllocator default_generators "
        "get_allocator_backend get_arch_list graph is_bf16_supported is_tf32_supported max_memory_cached max_memory_reserved mem_get_info "
        "memory_cached memory_reserved memory_stats MemPool OutOfMemoryError power_draw reset_peak_memory_stats set_per_process_memory_fraction "
        "temperature use_mem_pool"
    ),
    "torch.cuda.amp": "amp_definitely_not_available custom_bwd custom_fwd",
    "torch.amp": "autocast custom_bwd custom_fwd GradScaler is_autocast_available",
    "torch.optim": "Adafactor AdamW Muon NAdam RAdam",
    "torch.optim.lr_scheduler": "_LRScheduler ChainedScheduler ConstantLR LinearLR LRScheduler MultiplicativeLR OneCycleLR PolynomialLR SequentialLR",
    "torch.utils": "generate_methods_for_privateuse1_backend rename_privateuse1_backend swap_tensors",
    "torch.utils.data": "ChainDataset DataLoader2 default_collate IterableDataset StackDataset",
    "torch.utils._pytree": (
        "_register_pytree_node KeyPath keystr PyTreeSpec register_pytree_node tree_all_only tree_flatten_with_path tree_leaves tree_map_only "
        "tree_map_with_path tree_structure treespec_dumps"
    ),
    "torch.backends": "cpu cusparselt kleidiai mha miopen mps nnpack opt_einsum xnnpack xpu",
    "torch.backends.cuda": (
        "can_use_efficient_attention can_use_flash_attention cudnn_sdp_enabled enable_cudnn_sdp enable_flash_sdp enable_math_sdp "
        "enable_mem_efficient_sdp flash_sdp_enabled is_built is_flash_attention_available math_sdp_enabled mem_efficient_sdp_enabled "
        "preferred_blas_library preferred_linalg_library sdp_kernel SDPAParams SDPBackend"
    ),
    "torch.library": (
        "custom_op impl impl_abstract infer_schema Library opcheck register_autocast register_autograd register_fake register_kernel "
        "register_torch_dispatch register_vmap triton_op wrap_triton"
    ),
    "torch.autograd": "forward_ad inference_mode set_multithreading_enabled",
    "torch.jit": "export freeze fuser ignore optimize_for_inference unused",
    "torch.linalg": "cross det inv lstsq lu_solve matrix_norm norm solve_ex svd vecdot vector_norm",
    "torch.serialization": (
        "add_safe_globals clear_safe_globals FILE_LIKE get_safe_globals get_unsafe_globals_in_checkpoint LoadEndianness MAP_LOCATION "
        "safe_globals set_default_mmap_options skip_data"
    ),
    "torch.testing": "_internal all_types assert_allclose assert_close floating_types get_all_dtypes get_all_fp_dtypes integral_types make_tensor",
    "torch.profiler": "ExecutionTraceObserver itt profile record_function schedule tensorboard_trace_handler",
}
_MODULES = (
    "_C._distributed_c10d _custom_op _decomp _dynamo _export _functorch _guards _higher_order_ops _inductor _logging _numpy _prims _refs "
    "_six _strobelight _subclasses accelerator amp ao compiler cuda.amp cuda.graphs cuda.memory cuda.nccl distributed._composable "
    "distributed._functional_collectives distributed._shard distributed._sharded_tensor distributed._symmetric_memory distributed._tensor "
    "distributed.algorithms distributed.autograd distributed.c10d_logger distributed.checkpoint distributed.constants distributed.deprecated "
    "distributed.device_mesh distributed.elastic distributed.fsdp distributed.launcher distributed.nn distributed.optim distributed.pipeline "
    "distributed.pipelining distributed.remote_device distributed.rpc distributed.run distributed.tensor distributed.utils export fft func "
    "fx linalg masked monitor mps mtia nested nested_tensor nn.attention nn.intrinsic nn.modules.attention nn.modules.lazy nn.qat "
    "nn.quantized nn.utils._expanded_weights nn.utils.parametrizations nn.utils.parametrize nn.utils.stateless onnx._internal "
    "onnx.symbolic_registry onnx.utils optim._multi_tensor optim.swa_utils package profiler quantization signal special testing "
    "utils._content_store utils._cxx_pytree utils._device utils._mode_utils utils._python_dispatch utils._pytree utils._sympy utils._triton "
    "utils.checkpoint utils.data._utils.worker utils.data.dataloader_experimental utils.data.datapipes utils.data.graph utils.ffi "
    "utils.flop_counter utils.mobile_optimizer xpu"
).split()


def _words(text: str) -> str:
    return "(?:%s)'" % "|".join(text.split())


# The beginnings of patterns: what follows them reads the names.
ATTRIBUTE = r"(?=module '(?:%s))" % "|".join("%s' has no attribute '%s" % (re.escape(module), _words(names)) for module, names in _NAMES.items())
IMPORTED = r"(?=cannot import name '(?:%s)')" % "|".join("%s from '%s" % (_words(names), re.escape(module)) for module, names in _NAMES.items())
MODULE = r"(?=No module named 'torch\.(?:%s)[.'])" % "|".join(re.escape(name) for name in _MODULES)
# Beside an exception: the innermost line outside torch is a library's, and not the job's own.
FROM_LIBRARY = r"(?:site|dist)-packages[/\\](?!torch[/\\])[^\n]*(?:\n[^\n]*(?:[/\\]torch[/\\]|<frozen)[^\n]*)*\Z"


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
    title="The code needs a different version of a framework from the one installed.",
    symptom=(
        "AttributeError or ImportError for a name in torch, a keyword that a torch function does not know, an assertion about versions, "
        "or an internal assertion of DDP's reducer."
    ),
    evidence="The exception names what the installed version lacks: a name that is known to differ between versions of torch, "
    "or one that an installed library uses. "
    "Any other name in the job's own line may be a typo, or a submodule that was not imported. The versions are in process.start.",
    remedy=(
        "Install the version that the code was written for, or change the call to one that this version has. For OpenMMLab, take mmcv, "
        "mmengine and torch from the same row of its compatibility table."
    ),
    restart="no",  # Code and version stay.
    needs=("process.end", "process.start"),
    printed=(
        Printed(
            r"AttributeError: module '(?P<module>(?:mmcv|mmengine|mmdet|mmseg|distutils|numpy)(?:\.\w+)*)' has no attribute '(?P<name>\w+)'",
            unless=_CIRCULAR,
            says="{module} of the installed version has no {name}.",
        ),
        Printed(
            r"module '(?P<module>(?:%s|torch\.(?:%s))(?:\.\w+)*)' has no attribute '(?P<name>\w+)'" % (MODULES, ATTRIBUTES),
            unless=_CIRCULAR,
            says="{module} of the installed version has no {name}: the plugin does not fit the torch, the toolkit or the library that asks for it.",
        ),
        Printed(
            r"type object 'ReduceOp' has no attribute '(?P<name>\w+)'",
            says="torch.distributed.ReduceOp of the installed version has no {name}.",
        ),
        Printed(
            r"Caught StopIteration in replica \d+ on device \d+",
            says="A replica of DataParallel has no parameters since torch 1.5, and the library asks for the first one: it is older than this torch.",
            ranks=False,
        ),
        Printed(
            r"Failed to find function (?P<name>(?:Hccl|acl|Hcom)\w+)",
            says="The installed CANN has no {name}, which torch_npu calls: it is older than this torch_npu needs.",
            ranks=False,
        ),
        Printed(
            r"EC0010[^\n]*Failed to import Python module \[AttributeError: `?(?P<name>np\.\w+)",
            says="CANN's compiler of operators uses {name}, which the installed NumPy does not have: take a NumPy below 2.0.",
        ),
        Printed(
            PLUGIN_LIBRARY + r"(?P<symbol>\w+)",
            says="The vendor's plugin needs {symbol}, which the installed torch or toolkit does not have: it was built for another version.",
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
        Printed(
            (
                r"(?P<plugin>Intel[^\n]{0,4} Extension for PyTorch\*?) needs to work with PyTorch(?:/\w+)? (?P<need>[\d.*]+), but PyTorch(?:/\w+)?"
                r" (?P<has>\S+) is found"
            ),
            says="{plugin} needs PyTorch {need}, and finds {has}.",
            ranks=False,
        ),
        Printed(
            r"Mismatch in kernel C\+\+ signatures",
            says="A plugin registers an operator in the form of another torch: it was built for another version.",
            ranks=False,
        ),
        # Two layouts of a 1x1 kernel are the same bytes; which strides it carries depends on the version of torch.
        Printed(
            r"\[(?P<index>\d+)\] in this process with sizes \[\d+, \d+, 1, 1\] appears not to match strides of the same param",
            says="The strides of parameter {index}, a 1x1 convolution, are ambiguous: use the version of torch that the code names.",
            ranks=False,
        ),
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
            r"Error: (?P<need>(?:torch|accelerate|transformers|peft|trl|deepspeed|tokenizers|datasets)[<>=!~][^\n]{1,60}) is required for a normal "
            r"functioning of this module, but found (?P<has>[\w.=+-]+\w)",
            says="{has} is installed, but {need} is needed.",
            ranks=False,
        ),
        Printed(
            r"Using (?:the )?`Trainer` with `PyTorch` requires `(?P<need>accelerate[^`\n]{1,30})`",
            says="The Trainer needs {need}, which is not installed.",
            ranks=False,
        ),
        Printed(
            r"(?P<what>PyTorch|CUDA|HIP) version mismatch! DeepSpeed ops were compiled and installed with a different version",
            says="DeepSpeed's operators were built for a different {what} from the one that runs: install DeepSpeed again, in this environment.",
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
    recorded = [match for match in matches(RULE, run) if match.failure.process is not None]
    if not recorded:
        return
    guilty = {match.failure.rank for match in recorded if match.printed.ranks}
    yield RULE.found(
        ranks=sorted(rank for rank in guilty if rank is not None),
        verdict=_verdict(recorded[0]),
        evidence=first_of([failed(match.failure) for match in recorded]),
        when=recorded[0].failure.when,
        explains=[match.failure for match in recorded],
    )


def _verdict(match: Match) -> Text:
    process = match.failure.process
    versions = process.started.versions if process is not None else {}
    names = [name for name in ("torch", "mmengine", "mmcv", "python") if name in versions]
    if not names:
        return verdict_of(RULE, match)
    return say(
        "{what:clause} ({versions}).",
        what=verdict_of(RULE, match),
        versions=quoted(", ".join("%s %s" % (name, versions[name]) for name in names)),
    )
