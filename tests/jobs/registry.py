"""The collection of programs that fail, one row each: how to start it, how it ends, what it prints, and the root cause that a diagnosis must name.

One table, so the file is long. Each program says in its docstring what is wrong in it. JOBS is the list; shell(job, port) is the line that starts
one in an empty folder, with the stack's own python and torchrun first on PATH; stack() says which of the two stacks this interpreter has. Cards are
those of tests/accelerator.
"""

import shlex
from importlib import metadata
from pathlib import Path
from typing import NamedTuple, Optional, Tuple

FOLDER = Path(__file__).resolve().parent
PLUGIN = FOLDER.parent / "accelerator" / "plugin"
_TORCHRUN = "torchrun --nproc_per_node=%d --master_addr=127.0.0.1 --master_port={port} %s"
_TWO = _TORCHRUN % (2, "{program}")
_THREE = _TORCHRUN % (3, "{program}")
_FOUR = _TORCHRUN % (4, "{program}")
_EIGHT = _TORCHRUN % (8, "{program}")
_PLAIN = "python {program}"
_BY_HAND = "RANK=%d WORLD_SIZE=%d MASTER_ADDR=%s MASTER_PORT={port} python {program}"
_LAUNCH = "python -m torch.distributed.launch --nproc_per_node=2 --master_addr=127.0.0.1 --master_port={port} {program}"
_WITH_SCRIPT = _TORCHRUN % (2, "--no_python bash {folder}/%s python {program}")

# Python 3.8 writes an exception's name, the colon and the text apart, and those of another rank may come in between.
_VALUE = r"ValueError(?:: |\n|ValueError)*"
_RUNTIME = r"RuntimeError(?:: |\n|RuntimeError)*"
_DEVICE_IDS = _VALUE + r"DistributedDataParallel device_ids and output_device arguments only work with .*device\(type='cpu'\)"
_TIMED_OUT = _RUNTIME + r".*gloo.*Timed out waiting \d+ms for (recv|send) operation to complete"
# Of ranks that wait for each other, any may be the first to give up.
_STOPPED_WAITING = _RUNTIME + r".*gloo.*(Timed out waiting \d+ms for (recv|send) operation|Connection (closed|reset) by peer)"
_PEER_GONE = _RUNTIME + r".*gloo.*(Connection closed by peer|Connection reset by peer)"
_ON_CARD_ZERO = (r"\[rank 0\] training finished on \w+:0", r"\[rank 1\] training finished on \w+:0")
_ON_OWN_CARDS = (r"\[rank 0\] training finished on card 0", r"\[rank 1\] training finished on card 1")
_NO_MASTER = r"The client socket has timed out after \d+m?s while trying to connect to"
_NO_DIRECTORY = r"PytorchStreamReader failed reading zip archive: failed finding central directory"
_OTHER_SHAPE = r"\[\d\]: params\[\d+\] in this process with sizes \[.*\] appears not to match sizes of the same param in process 0"
_MIXED = _VALUE + r"DistributedDataParallel's input module must be on the same type of devices, but .* locate in \{.*\}"
_NO_FSDP = "FSDP of torch 1.12 asks for a CUDA card as it wraps, and fully_shard is not there."
_LENGTH = r"enforce fail at .*gloo.* op\.preamble\.length <= op\.nbytes\. \d+ vs \d+"


class Job(NamedTuple):
    """A program that fails, and what is known of its failure."""

    name: str  # The program's file name, up to the suffix.
    cause: Optional[str]  # A key of the vocabulary of causes; None where nothing is wrong.
    ranks: Tuple[int, ...]  # Where the fault is; empty where it is the whole job's.
    expects: Tuple[str, ...]  # Regular expressions, each found in what the job prints; of the first failure only, as torchrun ends the other ranks.
    command: str = _TWO  # {port}, {program} and {folder} are filled in by shell().
    exit: str = "nonzero"  # Or "zero".
    stacks: Tuple[str, ...] = ("new", "legacy")
    reason: str = ""  # Why the other stack does not show it.
    seconds: int = 90  # The time limit; a job takes 1 to 28, by how busy the machine is.
    id: str = ""  # Where one program is two jobs; else the name.
    needs: str = ""  # "accelerator" where the program imports torch_gcu: it runs with PLUGIN on its PYTHONPATH.


JOBS = (
    Job("00_healthy_ddp", None, (), (r"\[rank 0\] training finished", r"\[rank 1\] training finished"), exit="zero"),
    Job("00_healthy_branches", None, (), (r"\[rank 0\] boxes \d+ shared 3", r"\[rank 1\] boxes \d+ shared 3"), exit="zero"),
    Job("00_healthy_runner", None, (), (r"Epoch\(train\)\s+\[1\]\[2/2\]", r"Saving checkpoint at 1 epochs"), exit="zero"),
    Job(
        "00_healthy_cards",
        None,
        (),
        _ON_OWN_CARDS,
        exit="zero",
        needs="accelerator",
    ),
    Job(
        "00_healthy_runner_on_cards",
        None,
        (),
        (r"Epoch\(train\)\s+\[1\]\[1/1\]", r"Saving checkpoint at 1 epochs"),
        _FOUR,
        "zero",
        needs="accelerator",
    ),
    Job(
        "01_runner_sets_cuda_device",
        "cuda_call_on_non_cuda_host",
        (0, 1),
        (r"_init_dist_pytorch", r"torch\.cuda\.set_device", r"no attribute '_cuda_setDevice'|Found no NVIDIA driver on your system"),
    ),
    Job(
        "01_model_cuda_call",
        "cuda_call_on_non_cuda_host",
        (0, 1),
        (r"\.cuda\(local_rank\)", r"Cannot access accelerator device when none is available|Found no NVIDIA driver on your system"),
    ),
    Job("02_runner_wraps_cpu_model", "device_ids_given_for_cpu_run", (0, 1), (r"in wrap_model", _DEVICE_IDS)),
    Job("02_runner_wrapper_cfg_without_device_ids", "device_ids_given_for_cpu_run", (0, 1), (r"in wrap_model", _DEVICE_IDS)),
    Job("02_runner_does_not_know_cards", "model_on_cpu_at_ddp_wrap", (0, 1), (r"in wrap_model", _DEVICE_IDS), needs="accelerator"),
    Job("03_ddp_device_ids_on_cpu", "device_ids_given_for_cpu_run", (0, 1), (_DEVICE_IDS, r"device_ids \[\d\], output_device \d")),
    Job("03_model_never_moved", "model_on_cpu_at_ddp_wrap", (0, 1), (_DEVICE_IDS,), needs="accelerator"),
    Job("03_model_on_cpu_on_one_rank", "model_on_cpu_at_ddp_wrap", (1,), (_DEVICE_IDS,), needs="accelerator"),
    Job("03_submodule_left_behind", "mixed_cpu_cuda_params", (0, 1), (_MIXED,), needs="accelerator"),
    Job("03_converted_after_the_move", "mixed_cpu_cuda_params", (0, 1), (_MIXED,), needs="accelerator"),
    Job("03_buffer_left_behind", "buffer_on_cpu_with_nccl", (0, 1), (r"inputs \* self\.scale",), needs="accelerator"),
    Job(
        "03_device_ids_of_another_card",
        "device_ids_vs_param_device_mismatch",
        (0, 1),
        (r"wrapped", r"found at least two devices, gcu:[01] and gcu:[01]"),
        stacks=("new",),
        reason="DDP of torch 1.12 fails on device_ids of any card but CUDA's, the right one too.",
        needs="accelerator",
    ),
    Job(
        "03_device_ids_on_old_torch",
        "framework_version_incompat",
        (0, 1),
        (r"wrapped", r"_get_stream", r"list index out of range"),
        stacks=("legacy",),
        reason="torch 2.13 takes device_ids for any accelerator.",
        needs="accelerator",
    ),
    Job(
        "03_model_over_two_cards",
        "model_parallel_inside_ddp",
        (0, 1),
        (r"device_ids and output_device arguments only work with .* \{device\(type='\w+', index=\d\), device\(type='\w+', index=\d\)\}",),
        needs="accelerator",
    ),
    Job("04_swallowed_then_ddp_fails", "device_ids_given_for_cpu_run", (0, 1), (r"Not init distributed mode\.", _DEVICE_IDS)),
    Job("04_swallowed_and_silent", "init_failure_swallowed", (0, 1), (r"Not init distributed mode\.", r"training finished"), exit="zero"),
    Job("05_runner_launcher_none", "launched_without_launcher", (), (r"Distributed training: False", r"training finished"), exit="zero"),
    Job("05_hardcoded_card_zero", "hardcoded_device_zero", (0, 1), _ON_CARD_ZERO, exit="zero", needs="accelerator"),
    Job("05_local_rank_unused", "set_device_missing", (0, 1), _ON_CARD_ZERO, exit="zero", needs="accelerator"),
    Job(
        "05_local_rank_unused",
        "set_device_missing",
        tuple(range(8)),
        _ON_CARD_ZERO,
        _EIGHT,
        "zero",
        id="05_local_rank_unused_by_eight",
        needs="accelerator",
    ),
    Job(
        "05_same_card_visible_to_all",
        "cuda_visible_devices_wrong",
        (0, 1),
        _ON_CARD_ZERO,
        _WITH_SCRIPT % "05_same_card_for_all.sh",
        "zero",
        needs="accelerator",
    ),
    Job(
        "05_more_processes_than_cards",
        "nproc_gt_visible_gpus",
        (1,),
        (r"set_device\(local_rank\)", r"invalid device ordinal 1, 1 cards are visible"),
        "TOPS_VISIBLE_DEVICES=0 " + _TWO,
        needs="accelerator",
    ),
    Job(
        "05_plain_python_eight_cards",
        "launched_without_launcher",
        (),
        (r"training finished on 1 of 8 cards",),
        _PLAIN,
        "zero",
        needs="accelerator",
    ),
    Job("06_load_while_written", "checkpoint_write_read_race", (1,), (_NO_DIRECTORY,)),
    Job("06_truncated_checkpoint", "truncated_checkpoint", (0, 1), (_NO_DIRECTORY,)),
    Job("06_truncated_legacy_checkpoint", "truncated_checkpoint", (), (r"unexpected EOF, expected \d+ more bytes",), _PLAIN),
    Job("06_empty_checkpoint", "truncated_checkpoint", (), (r"EOFError",), _PLAIN),
    Job("06_git_lfs_pointer", "not_a_checkpoint_file", (), (r"invalid load key, 'v'|Unsupported operand 118",), _PLAIN),
    Job("06_html_page", "not_a_checkpoint_file", (), (r"invalid load key, '<'|Unsupported operand 60",), _PLAIN),
    Job(
        "06_disk_quota_while_saving",
        "disk_full",
        (0,),
        (r"unexpected pos \d+ vs \d+", r"OSError: \[Errno 27\] File too large|iostream error"),
    ),
    Job("06_disk_full_while_saving", "disk_full", (0,), (r"OSError: \[Errno 28\] No space left on device",)),
    Job("06_flipped_byte", "checkpoint_file_bad", (), (r"eval 2: error (inf|nan|\d.*e\+\d+)",), _PLAIN, "zero"),
    Job("07_divergent_checkpoint_branch", "rank_divergent_control_flow", (0, 1), (r"\[rank 1\] Refresh EMA at epoch 2", _STOPPED_WAITING)),
    Job("08_long_validation_on_rank0", "rank0_long_work_timeout", (0,), (r"Epoch\(val\)", _TIMED_OUT)),
    Job("08_uneven_batches", "uneven_batches", (1,), (r"Epoch\(train\) \[1\]\[3/4\]", r"Epoch\(train\) \[1\]\[3/3\]", _STOPPED_WAITING)),
    Job("08_all_reduce_against_broadcast", "rank_divergent_control_flow", (0, 1), (_STOPPED_WAITING,)),
    Job("08_collective_on_rank0_only", "rank0_only_collective", (0,), (_STOPPED_WAITING,)),
    Job("08_different_sizes", "rank_divergent_control_flow", (0, 1), (_LENGTH, r"Signal 6 \(SIGABRT\)")),
    Job("08_different_dtypes", "rank_divergent_control_flow", (1,), (_LENGTH, r"Signal 6 \(SIGABRT\)")),
    Job(
        "08_different_dtypes_silent",
        "rank_divergent_control_flow",
        (1,),
        (r"\[rank 0\] samples seen by all ranks: 640\.0", r"\[rank 1\] samples seen by all ranks: \d{5,}"),
        exit="zero",
    ),
    Job("08_barrier_against_all_reduce", "rank_divergent_control_flow", (2,), (_STOPPED_WAITING,), _THREE),
    Job("08_broadcast_against_all_reduce", "rank_divergent_control_flow", (2,), (_STOPPED_WAITING,), _FOUR),
    Job("08_all_gather_object_on_one_rank", "rank_divergent_control_flow", (1,), (_STOPPED_WAITING,), _THREE),
    Job("08_broadcast_object_on_rank0_only", "rank0_only_collective", (0,), (_STOPPED_WAITING,)),
    Job("08_other_root", "rank_divergent_control_flow", (2,), (_STOPPED_WAITING,), _THREE),
    Job("08_other_dtype_on_one_rank", "rank_divergent_control_flow", (1,), (_LENGTH, r"Signal 6 \(SIGABRT\)"), _THREE),
    Job("08_other_shape_in_all_gather", "rank_divergent_control_flow", (2,), (_LENGTH, r"Signal 6 \(SIGABRT\)"), _THREE),
    Job(
        "08_other_shape_silent",
        "rank_divergent_control_flow",
        (0,),
        (r"\[rank 1\] anchors \[1\.0, 2\.0, 3\.0, 4\.0, 0\.0, 0\.0\]",),
        _THREE,
        "zero",
    ),
    *(
        Job("08_batchnorm", cause, (rank,), (_STOPPED_WAITING,), _THREE + " " + way, id="08_batchnorm_" + way)
        for way, rank, cause in (
            ("evaluates", 0, "rank_divergent_control_flow"),
            ("skips", 2, "rank_divergent_control_flow"),
            ("stops", 1, "rank_divergent_control_flow"),
            ("meets", 0, "rank0_only_collective"),
        )
    ),
    Job("08_barrier_that_pairs", "rank0_only_collective", (0,), (_STOPPED_WAITING, r"\[rank 1\] second evaluation finished"), _THREE),
    Job("08_metrics_in_another_order", "rank_divergent_control_flow", (1,), (r"\[rank 1\] loss 201 accuracy 102",), _THREE, "zero"),
    Job("08_send_without_recv", "rank_divergent_control_flow", (0, 1), (_STOPPED_WAITING,), _THREE),
    Job("08_recv_from_wrong_rank", "rank_divergent_control_flow", (1, 2), (_STOPPED_WAITING,), _THREE),
    Job("08_circle_of_groups", "rank_divergent_control_flow", (0, 1, 2), (_STOPPED_WAITING,), _THREE),
    Job("08_work_never_waited_for", "work_never_waited_for", (0, 1), (r"\[rank 1\] step 2 loss",), exit="zero"),
    Job(
        "08_dataset_blocks_on_one_rank",
        "rank_stopped_participating",
        (1,),
        (r"\[rank 1\] step 2", _TIMED_OUT),
        _THREE + " 0",
        id="08_dataset_blocks_in_main",
    ),
    Job(
        "08_dataset_blocks_on_one_rank",
        "rank_stopped_participating",
        (1,),
        (r"\[rank 1\] step 2", _TIMED_OUT),
        _THREE + " 1",
        id="08_dataset_blocks_in_worker",
    ),
    Job("08_backward_skipped_on_one_rank", "rank_divergent_control_flow", (1,), (r"\[rank 0\] step 3", _TIMED_OUT), _THREE),
    Job(
        "08_fsdp_step_skipped_on_one_rank",
        "rank_divergent_control_flow",
        (1,),
        (r"\[rank 0\] step 3", _TIMED_OUT),
        _THREE + " 1",
        stacks=("new",),
        reason=_NO_FSDP,
        id="08_fsdp1_step_skipped",
    ),
    Job(
        "08_fsdp_step_skipped_on_one_rank",
        "rank_divergent_control_flow",
        (1,),
        (r"\[rank 0\] step 3", _TIMED_OUT),
        _THREE + " 2",
        stacks=("new",),
        reason=_NO_FSDP,
        id="08_fsdp2_step_skipped",
    ),
    Job("08_unused_parameter", "unused_parameters", (0, 1), (r"Expected to have finished reduction in the prior iteration",)),
    Job(
        "09_extra_layer_on_one_rank",
        "rank_dependent_model_build",
        (2,),
        (r"DDP expects same model across all ranks, but Rank \d has [46] params, while rank \d has inconsistent [46] params",),
        _THREE,
    ),
    Job("09_other_shape_on_one_rank", "rank_dependent_model_build", (2,), (_OTHER_SHAPE,), _THREE),
    Job("09_hash_order", "hash_seed_skew", (), (_OTHER_SHAPE,)),
    Job("09_hash_order_silent", "hash_seed_skew", (), (r"sum of heads\.depth\.weight",), exit="zero"),
    Job(
        "09_counts_of_another_collective",
        "rank_divergent_control_flow",
        (0,),
        (r"DDP expects same model across all ranks, but Rank 1 has \d+ params, while rank 0 has inconsistent 118287 params",),
    ),
    Job("09_weights_loaded_after_wrap", "silent_replica_divergence", (0,), (r"sum of head\.weight",), exit="zero"),
    Job("09_buffer_shape_by_rank", "rank_dependent_buffer_shape", (), (_LENGTH, r"Signal 6 \(SIGABRT\)")),
    Job("10_rank_missing", "launcher_env_missing", (), (r"env:// rendezvous: environment variable RANK expected, but not set",), _PLAIN),
    Job(
        "10_world_size_missing",
        "launcher_env_missing",
        (),
        (r"env:// rendezvous: environment variable WORLD_SIZE expected, but not set",),
        "RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT={port} python {program}",
    ),
    Job("10_runner_under_plain_python", "launcher_env_missing", (), (r"_init_dist_pytorch", r"KeyError: 'RANK'"), _PLAIN),
    Job(
        "10_runner_slurm_without_card",
        "no_gpu_visible",
        (),
        (r"_init_dist_slurm", r"ZeroDivisionError"),
        "SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_STEP_ID=0 SLURM_NODELIST=localhost python {program}",
    ),
    Job("10_master_addr_unreachable", "master_addr_unreachable", (), (_NO_MASTER,), _BY_HAND % (1, 2, "127.0.0.1")),
    Job("10_master_addr_unknown", "master_addr_unreachable", (), (r"node-0\.invalid.*gai error", _NO_MASTER), _BY_HAND % (1, 2, "node-0.invalid")),
    Job("10_rank_never_started", "rank_stopped_participating", (1,), (r"1/2 clients joined|Socket Timeout",), _BY_HAND % (0, 2, "127.0.0.1")),
    Job("10_wrong_interface", "wrong_network_interface", (0, 1), (r"Unable to find address for: ib9",), "GLOO_SOCKET_IFNAME=ib9 " + _TWO),
    Job("10_unknown_backend", "backend_not_available", (0, 1), (r"Unknown backend type eccl|Invalid backend: 'eccl'",)),
    Job(
        "10_nccl_without_cuda",
        "backend_not_available",
        (0, 1),
        (r"Distributed package doesn't have NCCL built in",),
        stacks=("new",),
        reason="torch 1.12.1 has NCCL built in, and misses the card instead.",
    ),
    Job(
        "10_nccl_without_cuda",
        "no_gpu_visible",
        (0, 1),
        (r"ProcessGroupNCCL is only supported with GPUs, no GPUs found",),
        stacks=("legacy",),
        reason="torch 2.13 for CPU has no NCCL built in.",
        id="10_nccl_without_card",
    ),
    Job("10_master_port_in_use", "master_port_in_use", (0,), (r"(?i)EADDRINUSE|address already in use",), _BY_HAND % (0, 1, "127.0.0.1")),
    Job(
        "10_rank_missing",
        "master_port_in_use",
        (),
        (r"(?i)EADDRINUSE|address already in use", r"torch/distributed/run\.py"),
        "bash {folder}/10_launch_on_taken_port.sh {port} {program}",
        id="10_launch_on_taken_port",
    ),
    Job("10_init_twice", "init_process_group_twice", (0, 1), (r"trying to initialize the default process group twice",)),
    Job(
        "10_local_rank_underscore",
        "launcher_arg_spelling",
        (0, 1),
        (r"error: unrecognized arguments: --local-rank=\d",),
        _LAUNCH,
        stacks=("new",),
        reason="torch.distributed.launch passes --local_rank up to torch 1.13.",
    ),
    Job(
        "10_local_rank_dash",
        "launcher_arg_spelling",
        (0, 1),
        (r"error: unrecognized arguments: --local_rank=\d",),
        _LAUNCH,
        stacks=("legacy",),
        reason="torch.distributed.launch passes --local-rank since torch 2.0.",
    ),
    Job(
        "11_weights_only_resume",
        "weights_only_default",
        (),
        (r"Weights only load failed", r"HistoryBuffer"),
        _PLAIN,
        stacks=("new",),
        reason="torch.load has no weights_only before torch 1.13.",
    ),
    Job(
        "11_cuda_checkpoint_without_map_location",
        "missing_map_location",
        (),
        (r"Attempting to deserialize object on a CUDA device but torch\.cuda\.is_available\(\) is False",),
        _PLAIN,
    ),
    Job("11_module_prefix", "module_prefix_mismatch", (), (r"Missing key\(s\)", r'Unexpected key\(s\) in state_dict: "module\.'), _PLAIN),
    Job("11_size_mismatch", "checkpoint_vs_code_mismatch", (), (r"size mismatch for backbone\.0\.weight: copying a param with shape",), _PLAIN),
    Job(
        "11_size_mismatch_silent",
        "checkpoint_vs_code_mismatch",
        (),
        (r"model and loaded state dict do not match exactly", r"size mismatch for head\.weight", r"training finished"),
        _PLAIN,
        "zero",
    ),
    Job(
        "11_half_on_cpu",
        "dtype_unsupported_on_device",
        (),
        (r"not implemented for 'Half'",),
        _PLAIN,
        stacks=("legacy",),
        reason="torch 2.13 multiplies halves on CPU.",
    ),
    Job(
        "11_newer_torch_needed",
        "framework_version_incompat",
        (),
        (r"module 'torch' has no attribute 'compile'",),
        _PLAIN,
        stacks=("legacy",),
        reason="torch.compile is there since torch 2.0.",
    ),
    Job("12_holds_the_gil", "rank_stopped_participating", (1,), (r"\[rank 1\] step 2: 3 captions", _TIMED_OUT), _THREE),
    Job("12_stopped_by_sigstop", "rank_stopped_participating", (1,), (r"\[rank 1\] step 2", _TIMED_OUT), _THREE, seconds=150),
    Job("12_killed_by_sigkill", "rank_stopped_participating", (1,), (r"Signal 9 \(SIGKILL\)",)),
    Job("12_killed_by_sigsegv", "rank_stopped_participating", (1,), (r"Signal 11 \(SIGSEGV\)",)),
    Job("12_sys_exit_of_one_rank", "rank_stopped_participating", (1,), (r"\[rank 1\] early stopping", _PEER_GONE)),
    Job("12_exit_after_an_exception", "rank_stopped_participating", (1,), (r"\[rank 1\] training failed: 'dog'",)),
    Job("08_no_sync_on_one_rank", "rank_stopped_participating", (0, 1), (r"\[rank 1\] training finished", _PEER_GONE)),
    Job("12_data_error_on_one_rank", "rank_stopped_participating", (1,), (r"No such file or directory: .*000042\.png",)),
    Job("12_out_of_memory", "host_out_of_memory", (1,), (r"DefaultCPUAllocator: can't allocate memory",)),
    Job(
        "12_open_files_used_up",
        "too_many_open_files",
        (1,),
        (_RUNTIME + r"(received 0 items of ancdata|Too many open files)",),
        stacks=("legacy",),  # Both stacks print the same; recordings are kept small.
    ),
    Job(
        "13_mixed_versions",
        "version_skew_across_nodes",
        (1,),
        (r"\[rank 0\] mmengine 0\.\d+\.\d+", r"\[rank 1\] mmengine 0\.8\.4", r"\[rank 1\] training finished"),
        _WITH_SCRIPT % "13_second_installation.sh",
        "zero",
    ),
    Job(
        "13_mixed_environment",
        "env_var_skew",
        (1,),
        (r"Timed out waiting 8000ms|wait timeout after 8000ms, keys: .*pg_wrapper|Socket Timeout|Timed out initializing process group",),
        _WITH_SCRIPT % "13_debug_on_rank1.sh",
    ),
    Job("14_memory_grows", "memory_grows", (0, 1), _ON_OWN_CARDS, exit="zero", needs="accelerator"),
    Job(
        "14_memory_of_one_rank",
        "memory_of_one_rank",
        (2,),
        (r"\[rank 2\] training finished on card 2, 1 kept there",),
        _THREE,
        "zero",
        needs="accelerator",
    ),
    Job("14_slow_rank", "one_rank_late", (1,), (r"\[rank 0\] training finished", r"\[rank 1\] training finished"), _THREE, "zero"),
    Job(
        "14_card_slowed_down",
        "card_slowed_down",
        (1,),
        _ON_OWN_CARDS,
        "bash {folder}/14_card_tool.sh " + _TWO,
        "zero",
        needs="accelerator",
    ),
    Job("14_control_group_full", "host_out_of_memory", (1,), (r"Signal 9 \(SIGKILL\)",), "bash {folder}/14_in_control_group.sh " + _TWO),
)


def label(job: Job) -> str:
    """Answer the name that tells two jobs of one program apart."""
    return job.id or job.name


def shell(job: Job, port: int) -> str:
    """Answer the line that a shell in an empty folder starts the job with."""
    return job.command.format(port=port, program=shlex.quote(str(FOLDER / (job.name + ".py"))), folder=shlex.quote(str(FOLDER)))


def stack() -> str:
    """Answer "new" for torch 2 and later, "legacy" before."""
    return "legacy" if metadata.version("torch").startswith("1.") else "new"
