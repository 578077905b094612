"""The vocabulary of causes: a finding carries one of these keys, and rules that find the same cause in different ways share it."""

from typing import Dict, Tuple

GROUPS: Dict[str, Tuple[str, ...]] = {
    "rank_to_device_mapping": (
        "nproc_gt_visible_gpus",
        "set_device_missing",
        "local_rank_vs_bound_gpu",
        "cuda_visible_devices_wrong",
        "hardcoded_device_zero",
        "launched_without_launcher",
        "one_card_busy",
    ),
    "module_device_wrong_at_wrap": (
        "model_on_cpu_at_ddp_wrap",
        "mixed_cpu_cuda_params",
        "device_ids_given_for_cpu_run",
        "device_ids_vs_param_device_mismatch",
        "model_parallel_inside_ddp",
        "buffer_on_cpu_with_nccl",
        "cpu_tensor_in_nccl_collective",
    ),
    "accelerator_or_backend_unavailable": (
        "backend_not_available",
        "no_gpu_visible",
        "driver_cuda_mismatch",
        "vendor_runtime_lib_missing",
        "cuda_call_on_non_cuda_host",
        "cuda_shim_misdetection",
        "dtype_unsupported_on_device",
        "device_init_before_set_device",
        "op_unsupported_by_backend",
        "card_slowed_down",
        "card_broken",
    ),
    "ranks_take_different_paths": (
        "rank_divergent_control_flow",
        "rank0_only_collective",
        "uneven_batches",
        "rank_stopped_participating",
        "collective_dtype_mismatch",
    ),
    "work_never_waited_for": ("work_never_waited_for",),
    "comm_path_broken": (
        "comm_failure_reported_as_param_mismatch",
        "wrong_network_interface",
        "master_addr_unreachable",
        "rdma_path_broken",
        "p2p_path_broken",
    ),
    "version_or_build_skew": (
        "version_skew_across_nodes",
        "mixed_installations",
        "framework_version_incompat",
        "op_not_built_for_device",
        "env_var_skew",
        "hardware_skew_across_nodes",
        "torch_fault",
    ),
    "launch_protocol": (
        "launcher_env_missing",
        "launcher_arg_spelling",
        "init_process_group_twice",
        "syncbn_without_process_group",
        "init_failure_swallowed",
        "launcher_ssh_failed",
        "spawned_function_unreachable",
        "world_size_wrong",
        "settings_contradict",
    ),
    "sharded_parameters": (
        "sharded_parameter_used_outside",
        "plain_tensor_meets_dtensor",
        "shard_parameters_not_uniform",
        "zero3_fetch_order",
        "parameter_left_on_meta",
    ),
    "missing_map_location": ("missing_map_location",),
    "checkpoint_file_bad": (
        "truncated_checkpoint",
        "checkpoint_write_read_race",
        "disk_full",
        "not_a_checkpoint_file",
        "folder_on_one_rank_only",
        "ranks_load_different_files",
        "several_ranks_write_one_file",
    ),
    "rank0_long_work_timeout": ("rank0_long_work_timeout",),
    "rank_is_slow": ("one_rank_late",),
    "per_rank_nondeterminism": ("hash_seed_skew", "rank_dependent_model_build", "rank_dependent_buffer_shape", "silent_replica_divergence"),
    "checkpoint_vs_loader": ("weights_only_default", "module_prefix_mismatch", "checkpoint_vs_code_mismatch"),
    "port_or_stale_process": ("master_port_in_use", "stale_process_holds_device"),
    "unused_parameters": ("unused_parameters", "ready_twice"),
    "forward_twice_with_buffers": ("forward_twice_with_buffers",),
    "out_of_memory": ("card_out_of_memory", "host_out_of_memory", "shared_memory_too_small", "memory_grows", "memory_of_one_rank"),
    "host_limits": ("too_many_open_files",),
    "own_failure": ("own_exception",),
    "ended_from_outside": ("ended_from_outside",),
    "site_rule": ("site_rule",),
}


SITE_CAUSE = "site_rule"
"""What a site's own rules find."""


def group_of(cause: str) -> str:
    """Return the group of a cause; empty for a cause that is not in the vocabulary."""
    return next((group for group, causes in GROUPS.items() if cause in causes), "")
