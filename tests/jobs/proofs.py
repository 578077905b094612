"""What in the recorded log of each job proves its cause, and which causes the probe does not see.

PROOFS has the facts by the job's label; a fact without processes is about the ranks that the registry names, less those that the launcher ended
before they came so far. NOT_SEEN has, for every other job, the
reason, and facts that hold as long as the reason does: who teaches the probe to see the cause moves the job from there to PROOFS.
"""

from typing import Dict, NamedTuple, Tuple

from facts_of_a_run import Fact, absent, differ, fact, same


class Unseen(NamedTuple):
    """Why no log of the probe proves the cause of a job, and what shows that this is still so."""

    reason: str
    because: Tuple[Fact, ...]


_HEALTHY = (absent(".* error"), absent("probe.warning"), absent("probe.fault"), fact("process.end", {"failure": None, "exit_code": 0}, "all"))
_DEVICE_IDS = {"failure/type": "ValueError", "failure/message": "device_ids and output_device arguments only work with"}
_ON_CPU = fact("ddp.init begin", {"placement/majority": "^cpu$", "device_ids/0": r"\d", "warning": "is about to fail"})
_NO_CARD = fact("ddp.init begin", {"accelerators": None})
_EIGHT_CARDS = fact("ddp.init begin", {"accelerators/0/count": 8, "accelerators/0/initialised": True})
_IN_WRAP_MODEL = fact("mmengine.wrap_model error", _DEVICE_IDS)
_NO_CUDA = "_cuda_setDevice|Found no NVIDIA driver|Cannot access accelerator device when none is available"
_MIXED = fact("ddp.init error", {"failure/type": "ValueError", "failure/message": "input module must be on the same type of devices"})
_CARD_ZERO = fact("ddp.init begin", {"placement/majority": r"^(gcu|xla):0$", "accelerators/0/current": 0}, "all")
_ENDED_WELL = fact("process.end", {"failure": None}, "all")
_SWALLOWED = fact("device.set error", {"failure/message": _NO_CUDA, "site/function": "setup_distributed", "target": "torch.cuda.set_device"})
_IN_BARRIER = fact("hang.suspected", {"operation": "^barrier$", "number": 9})
_GROUP_MADE = fact("dist.init_process_group end", {"group_size": 2})
_NO_DIRECTORY = fact("checkpoint.load error", {"failure/message": "failed finding central directory", "file/kind": "zip"})
_TIMED_OUT = fact("process.end", {"failure/message": "Timed out waiting"}, "any")
_ABORTED = fact("launcher.child", {"signal": "SIGABRT"}, "launcher")
_NO_STATE_DICT = absent("(module|checkpoint).(load_)?state_dict.*")
# argparse prints its reason and exits with 2; the log has what it was given.
_REFUSED = (fact("launcher.child", {"exit_code": 2}, "launcher"), fact("process.end", {"failure": None}), absent("dist.init_process_group"))


def _init_fails(message: str, **where: str) -> Fact:
    return fact("dist.init_process_group error", {"failure/message": message, **where})


def _load_fails(message: str, where: Dict[str, object]) -> Fact:
    return fact("checkpoint.load error", {"failure/message": message, **where})


PROOFS: Dict[str, Tuple[Fact, ...]] = {
    "00_healthy_ddp": _HEALTHY,
    "00_healthy_branches": (*_HEALTHY, fact("ledger.broadcast", {"seq": 21, "peer": 0}, "all")),
    "00_healthy_runner": _HEALTHY,
    "00_healthy_cards": (*_HEALTHY, differ("ddp.init begin", "placement/majority"), differ("ddp.init begin", "accelerators/0/current")),
    "00_healthy_runner_on_cards": (*_HEALTHY, differ("ddp.init begin", "placement/majority"), differ("ddp.init begin", "accelerators/0/current")),
    "01_runner_sets_cuda_device": (
        fact("mmengine.init_dist begin", {"branch": "^cuda$", "backend": "^gloo$"}),
        fact("device.set error", {"target": "torch.cuda.set_device", "failure/message": _NO_CUDA, "through/-1/function": "_init_dist_pytorch"}),
        absent("dist.init_process_group"),
    ),
    "01_model_cuda_call": (fact("module.move error", {"failure/message": _NO_CUDA}), fact("module.move begin", {"method": "^cuda$"})),
    "02_runner_wraps_cpu_model": (_ON_CPU, _NO_CARD, _IN_WRAP_MODEL, fact("mmengine.wrap_model begin", {"get_device": "^cpu$"})),
    "02_runner_wrapper_cfg_without_device_ids": (_ON_CPU, _NO_CARD, _IN_WRAP_MODEL, fact("mmengine.wrap_model begin", {"wrapper_cfg/type": "."})),
    "02_runner_does_not_know_cards": (_ON_CPU, _EIGHT_CARDS, _IN_WRAP_MODEL, fact("mmengine.wrap_model begin", {"get_device": "^cpu$"})),
    "03_ddp_device_ids_on_cpu": (_ON_CPU, _NO_CARD, fact("ddp.init error", _DEVICE_IDS)),
    "03_model_never_moved": (_ON_CPU, _EIGHT_CARDS, fact("ddp.init error", _DEVICE_IDS), absent("module.move")),
    "03_model_on_cpu_on_one_rank": (
        _ON_CPU,
        _EIGHT_CARDS,
        fact("ddp.init error", _DEVICE_IDS),
        absent("module.move", who=(1,)),
        fact("ddp.init begin", {"placement/majority": "^(gcu|xla):0$"}, (0,)),
    ),
    "03_submodule_left_behind": (
        _MIXED,
        fact("ddp.init begin", {"placement/off_majority/0/name": "head.weight", "placement/off_majority/0/device": "cpu"}),
        fact("module.move end", {"devices": ":[01]"}),
    ),
    "03_converted_after_the_move": (
        _MIXED,
        fact("ddp.init begin", {"placement/off_majority/0/name": r"head\.0\.weight", "placement/off_majority/0/device": "cpu"}),
        fact("module.move begin", {"model": "TinyModel", "destination": ":[01]"}),
    ),
    "03_buffer_left_behind": (
        fact("ddp.init begin", {"placement/majority": "(gcu|xla):", "placement/buffers_off_majority/0": "scale.*cpu"}),
        fact("process.end", {"failure/frames": "Scaled.forward|forward"}),
    ),
    "03_device_ids_of_another_card": (
        fact("ddp.init begin", {"placement/majority": "gcu:0", "device_ids/0": "^1$", "warning": "the first step fails"}, (0,)),
        fact("ddp.init begin", {"placement/majority": "gcu:1", "device_ids/0": "^0$", "warning": "the first step fails"}, (1,)),
        fact("ddp.init end"),
        fact("process.end", {"failure/message": "found at least two devices"}),
    ),
    "03_device_ids_on_old_torch": (
        fact("ddp.init begin", {"placement/majority": "xla:", "device_ids/0": "."}),
        fact("ddp.init end"),
        fact("process.end", {"failure/type": "IndexError", "failure/raised_at/function": "_get_stream"}),
        fact("process.start", {"versions/torch": r"^1\."}),
    ),
    "03_model_over_two_cards": (
        fact("ddp.init error", _DEVICE_IDS),
        fact("ddp.init begin", {"placement/devices": "(gcu|xla):[02].*(gcu|xla):[13]", "placement/off_majority/0/name": "."}),
    ),
    "04_swallowed_then_ddp_fails": (_SWALLOWED, _GROUP_MADE, fact("ddp.init error", _DEVICE_IDS)),
    "04_swallowed_and_silent": (_SWALLOWED, _GROUP_MADE, absent("ddp.init"), fact("process.end", {"failure": None, "process_group": True})),
    "05_runner_launcher_none": (
        fact("mmengine.wrap_model begin", {"launcher": "none", "distributed": False}, "all"),
        fact("process.start", {"launcher": "torchrun", "environment/WORLD_SIZE": "2"}, "all"),
        absent("dist.init_process_group"),
        absent("ddp.init"),
    ),
    "05_hardcoded_card_zero": (_CARD_ZERO, _ENDED_WELL, fact("device.set", {"device": "^0$"})),
    "05_local_rank_unused": (_CARD_ZERO, _ENDED_WELL, absent("device.set"), fact("module.move begin", {"destination": "^(gcu|xla)$"})),
    "05_local_rank_unused_by_eight": (
        _CARD_ZERO,
        _ENDED_WELL,
        absent("device.set"),
        fact("device.state", {"when": "^end$", "devices/0/device": r"^(gcu|xla):0$", "devices/1": None}),
    ),
    "05_same_card_visible_to_all": (_CARD_ZERO, _ENDED_WELL, fact("process.start", {"environment/TOPS_VISIBLE_DEVICES": "^3$"})),
    "05_more_processes_than_cards": (
        fact("device.set error", {"failure/message": "invalid device ordinal 1"}),
        fact("process.start", {"environment/TOPS_VISIBLE_DEVICES": "^0$", "environment/LOCAL_WORLD_SIZE": "^2$"}),
        fact("device.set end", who=(0,)),
    ),
    "05_plain_python_eight_cards": (
        fact("process.start", {"role": "solo", "launcher": "none"}),
        fact("module.move end", {"devices": ":0"}),
        absent("dist.init_process_group"),
    ),
    "06_load_while_written": (
        fact("checkpoint.load error", {"failure/message": "failed finding central directory", "file_after/size": ...}),
        fact("checkpoint.save begin", who=(0,)),
    ),
    "06_truncated_checkpoint": (_NO_DIRECTORY, fact("checkpoint.load error", {"file/complete": False})),
    "06_truncated_legacy_checkpoint": (_load_fails("unexpected EOF", {}), fact("checkpoint.load error", {"file/kind": "legacy"})),
    "06_empty_checkpoint": (fact("checkpoint.load error", {"failure/type": "EOFError"}), fact("checkpoint.load error", {"file/kind": "empty"})),
    "06_git_lfs_pointer": (_load_fails(".", {}), fact("checkpoint.load error", {"file/kind": "git-lfs"})),
    "06_html_page": (_load_fails(".", {}), fact("checkpoint.load error", {"file/kind": "html"})),
    "06_disk_quota_while_saving": (fact("checkpoint.save error", {"failure/message": "unexpected pos|File too large|iostream error"}),),
    "06_disk_full_while_saving": (fact("process.end", {"failure/message": "Errno 28", "failure/raised_at/function": r"\bput$"}),),
    "08_dataset_blocks_in_main": (
        fact("hang.suspected", {"during": "^dataloader$", "threads/0/frames/-1/function": r"__getitem__$"}),
        fact("hang.suspected", {"during": "^backward$", "step": 4}, (0,)),
    ),
    "08_dataset_blocks_in_worker": (
        fact("hang.suspected", {"during": "^dataloader$", "threads/0/frames": "_get_data"}),
        fact("hang.suspected", {"during": "^backward$", "step": 4}, (0,)),
    ),
    "08_backward_skipped_on_one_rank": (
        fact("hang.suspected", {"during": "^backward$", "step": 5}, (0, 2)),
        fact("hang.suspected", {"operation": "^barrier$", "step": 4}),
    ),
    "08_fsdp1_step_skipped": (fact("hang.suspected", {"operation": "^all_gather", "number": 9}, (0, 2)), _IN_BARRIER),
    "08_fsdp2_step_skipped": (fact("hang.suspected", {"operation": "^all_gather", "number": 9}, (0, 2)), _IN_BARRIER),
    "07_divergent_checkpoint_branch": (
        fact("ledger.barrier", {"site/function": "load_resume_state", "seq": 2}, (1,)),
        absent("ledger.barrier", {"seq": 2}, (0,)),
        fact("ledger.phase.backward", {"times": 3, "state": "open|raised"}, (0,)),
        _TIMED_OUT,
    ),
    "08_long_validation_on_rank0": (
        same("ledger.barrier", "seq"),
        fact("ledger.barrier", {"state": "raised"}, "all"),
        fact("hang.suspected", {"threads": "08_long_validation_on_rank0.*validate"}),
        _TIMED_OUT,
    ),
    "08_uneven_batches": (
        fact("ledger.phase.backward", {"times": 3, "state": "returned"}),
        fact("ledger.barrier", {"seq": 1}),
        fact("ledger.phase.backward", {"times": 4, "state": "open|raised"}, (0,)),
        absent("ledger.barrier", who=(0,)),
        _TIMED_OUT,
    ),
    "08_all_reduce_against_broadcast": (
        fact("ledger.broadcast", {"seq": 2}, (0,)),
        fact("ledger.all_reduce", {"seq": 2}, (1,)),
        _TIMED_OUT,
    ),
    "08_collective_on_rank0_only": (
        fact("ledger.all_reduce", {"seq": 1, "site/function": "log_loss"}),
        fact("ledger.barrier", {"seq": 1}, (1,)),
        _TIMED_OUT,
    ),
    "08_different_sizes": (differ("ledger.all_reduce", "elements"), same("ledger.all_reduce", "dtype"), _ABORTED),
    "08_different_dtypes": (differ("ledger.all_reduce", "dtype"), same("ledger.all_reduce", "elements"), _ABORTED),
    "08_different_dtypes_silent": (differ("ledger.all_reduce", "dtype"), same("ledger.all_reduce", "elements"), _ENDED_WELL),
    "08_unused_parameter": (fact("process.end", {"failure/message": "Expected to have finished reduction in the prior iteration"}),),
    "08_barrier_against_all_reduce": (fact("ledger.barrier", {"seq": 2}), fact("ledger.all_reduce", {"seq": 2}, (0, 1))),
    "08_broadcast_against_all_reduce": (fact("ledger.all_reduce", {"seq": 2}), fact("ledger.broadcast", {"seq": 2, "peer": 0}, (0, 1, 3))),
    "08_all_gather_object_on_one_rank": (fact("ledger.all_gather_object", {"seq": 1}), fact("ledger.barrier", {"seq": 1}, (0, 2))),
    "08_broadcast_object_on_rank0_only": (fact("ledger.broadcast_object_list", {"seq": 2}), fact("ledger.all_reduce", {"seq": 2}, (1,))),
    "08_other_root": (fact("ledger.broadcast", {"seq": 2, "peer": 2}), fact("ledger.broadcast", {"seq": 2, "peer": 0}, (0, 1))),
    "08_other_dtype_on_one_rank": (fact("ledger.all_reduce", {"dtype": "^float32$"}), fact("ledger.all_reduce", {"dtype": "^float16$"}, (0, 2))),
    "08_other_shape_in_all_gather": (
        fact("ledger.all_gather", {"seq": 2, "elements": 20}),
        fact("ledger.all_gather", {"seq": 2, "elements": 32}, (0, 1)),
    ),
    "08_other_shape_silent": (
        _ENDED_WELL,
        fact("ledger.broadcast", {"elements": 4, "state": "returned"}),
        fact("ledger.broadcast", {"elements": 6, "state": "returned"}, (1, 2)),
    ),
    "08_batchnorm_evaluates": (fact("ledger.phase.backward", {"times": 12}), fact("ledger.phase.backward", {"times": 13}, (1, 2))),
    "08_batchnorm_skips": (fact("ledger.phase.backward", {"times": 8}), fact("ledger.phase.backward", {"times": 9}, (0, 1))),
    "08_batchnorm_stops": (fact("ledger.phase.backward", {"times": 10}), fact("ledger.phase.backward", {"times": 11}, (0, 2))),
    "08_batchnorm_meets": (fact("ledger.barrier", {"seq": 1}), fact("ledger.phase.forward", {"times": 17}, (1, 2))),
    "08_barrier_that_pairs": (fact("ledger.barrier", {"seq": 2, "site/line": 17}), fact("ledger.barrier", {"seq": 2, "site/line": 26}, (1, 2))),
    "08_metrics_in_another_order": (
        _ENDED_WELL,
        fact("ledger.all_reduce", {"seq": 2, "site/line": 25}),
        fact("ledger.all_reduce", {"seq": 2, "site/line": 22}, (0, 2)),
    ),
    "08_send_without_recv": (
        fact("ledger.send", {"seq": 5, "peer": 1, "state": "raised|open"}, (0,)),
        fact("ledger.barrier", {"state": "raised|open"}, (1,)),
    ),
    "08_recv_from_wrong_rank": (
        fact("ledger.send", {"peer": 2, "state": "raised|open"}, (0,)),
        fact("ledger.recv", {"peer": 1, "state": "raised|open"}, (2,)),
        fact("ledger.barrier", {"state": "raised|open"}, (1,)),
    ),
    "08_circle_of_groups": (
        fact("ledger.all_reduce", {"seq": 1, "state": "raised|open"}, (0,)),
        fact("ledger.all_reduce", {"seq": 1, "state": "raised|open"}, (1,)),
        fact("ledger.all_reduce", {"seq": 1, "state": "raised|open"}, (2,)),
    ),
    "08_work_never_waited_for": (_ENDED_WELL, fact("ledger.all_reduce", {"is_async": True, "state": "^dropped$"})),
    "09_extra_layer_on_one_rank": (
        differ("ddp.init begin", "placement/digest"),
        fact("ddp.init begin", {"placement/parameters": 6}),
        fact("ddp.init begin", {"placement/parameters": 4}, (0, 1)),
    ),
    "09_other_shape_on_one_rank": (differ("ddp.init begin", "placement/digest"), differ("ddp.init begin", "placement/elements")),
    "09_hash_order": (differ("ddp.init begin", "placement/digest"), fact("process.start", {"hash_seed": "random"})),
    "09_hash_order_silent": (differ("ddp.init begin", "placement/digest"), fact("process.start", {"hash_seed": "random"}), fact("ddp.init end")),
    "09_counts_of_another_collective": (
        fact("ddp.init error", {"failure/message": "inconsistent 118287 params"}, (1,)),
        fact("ddp.init begin", {"placement/parameters": 4}, "all"),
        same("ddp.init begin", "placement/digest"),
    ),
    "09_buffer_shape_by_rank": (differ("ddp.init begin", "placement/buffer_devices"), same("ddp.init begin", "placement/digest")),
    "09_weights_loaded_after_wrap": (fact("ddp.init end", who="all"), fact("checkpoint.load end"), absent("checkpoint.load", who=(1,))),
    "10_rank_missing": (_init_fails("environment variable RANK expected"), fact("process.start", {"environment/RANK": None})),
    "10_world_size_missing": (
        _init_fails("environment variable WORLD_SIZE expected"),
        fact("process.start", {"environment/RANK": "0", "environment/WORLD_SIZE": None}),
    ),
    "10_runner_under_plain_python": (fact("mmengine.init_dist error", {"failure/type": "KeyError", "failure/message": "RANK"}),),
    "10_runner_slurm_without_card": (fact("mmengine.init_dist error", {"failure/type": "ZeroDivisionError"}),),
    "10_master_addr_unreachable": (_init_fails("timed out"), fact("dist.init_process_group begin", {"master_addr": r"127\.0\.0\.1"})),
    "10_master_addr_unknown": (_init_fails("timed out|gai error"), fact("dist.init_process_group begin", {"master_addr": r"node-0\.invalid"})),
    "10_rank_never_started": (
        fact("dist.init_process_group error", {"failure/message": "1/2 clients joined|Socket Timeout"}, (0,)),
        fact("process.start", {"world_size": 2}, (0,)),
    ),
    "10_wrong_interface": (_init_fails("Unable to find address for: ib9"), fact("process.start", {"environment/GLOO_SOCKET_IFNAME": "ib9"})),
    "10_unknown_backend": (_init_fails("Unknown backend type eccl|Invalid backend: 'eccl'"),),
    "10_nccl_without_cuda": (_init_fails("doesn't have NCCL built in"),),
    "10_nccl_without_card": (fact(".* error", {"failure/message": "no GPUs found"}),),
    "10_master_port_in_use": (_init_fails("(?i)EADDRINUSE|address already in use"),),
    "10_launch_on_taken_port": (fact("launcher.end", {"failure/message": "(?i)EADDRINUSE|address already in use"}, "launcher"),),
    "10_init_twice": (
        _init_fails("default process group twice"),
        fact("dist.init_process_group begin", {"already_initialised": True}),
        fact("dist.init_process_group begin", {"already_initialised": False}),
    ),
    "10_local_rank_underscore": (fact("process.start", {"argv/-1": "^--local-rank="}), *_REFUSED),
    "10_local_rank_dash": (fact("process.start", {"argv/-1": "^--local_rank="}), *_REFUSED),
    "11_weights_only_resume": (_load_fails("Weights only load failed", {"failure/message": "HistoryBuffer"}),),
    "11_cuda_checkpoint_without_map_location": (
        _load_fails("on a CUDA device but", {}),
        fact("checkpoint.load begin", {"map_location": None}),
    ),
    "11_module_prefix": (
        fact("process.end", {"failure/message": r'(?s)Missing key\(s\).*Unexpected key\(s\) in state_dict: "module\.'}),
        fact("checkpoint.load end"),
    ),
    "11_size_mismatch": (fact("process.end", {"failure/message": r"size mismatch for backbone\.0\.weight"}), fact("checkpoint.load end")),
    "12_holds_the_gil": (absent("hang.suspected", who=(1,)), fact("hang.suspected", {"operation": "^all_reduce$", "number": 4}, (0, 2))),
    "12_stopped_by_sigstop": (absent("hang.suspected", who=(1,)), fact("hang.suspected", {"operation": "^all_reduce$", "number": 4}, (0, 2))),
    "12_killed_by_sigkill": (
        fact("launcher.child", {"signal": "SIGKILL", "child_local_rank": 1}, "launcher"),
        absent("process.end", who=(1,)),
        fact("ddp.init end"),
    ),
    "12_killed_by_sigsegv": (
        fact("launcher.child", {"signal": "SIGSEGV", "child_local_rank": 1}, "launcher"),
        absent("process.end", who=(1,)),
        fact("ddp.init end"),
    ),
    "12_sys_exit_of_one_rank": (
        fact("process.end", {"failure": None, "process_group": False}),
        fact("process.end", {"failure/message": "Connection (closed|reset) by peer"}, (0,)),
    ),
    "12_exit_after_an_exception": (
        fact("process.end", {"failure/type": "KeyError", "failure/raised_at/function": "^lookup$", "site/function": "^main$", "exit_code": 1}),
    ),
    "08_no_sync_on_one_rank": (
        fact("process.end", {"failure/message": "Connection (closed|reset) by peer"}, (0,)),
        fact("process.end", {"failure": None, "exit_code": 0}, (1,)),
    ),
    "12_data_error_on_one_rank": (fact("process.end", {"failure/type": "FileNotFoundError", "failure/message": r"000042\.png"}),),
    "12_out_of_memory": (fact("process.end", {"failure/message": "can't allocate memory"}),),
    "12_open_files_used_up": (fact("process.end", {"failure/message": "received 0 items of ancdata|^Too many open files"}),),
    "13_mixed_versions": (differ("process.start", "versions/mmengine"), fact("process.start", {"versions/mmengine": r"0\.8\.4"})),
    "13_mixed_environment": (
        differ("process.start", "environment/TORCH_DISTRIBUTED_DEBUG"),
        fact("process.start", {"environment/TORCH_DISTRIBUTED_DEBUG": "DETAIL"}),
    ),
    "14_memory_grows": (
        fact("device.state", {"when": "^checkpoint.save begin$", "step": 6, "devices/0/allocated": r"^5\d{7}$"}),
        fact("device.state", {"when": "^checkpoint.save begin$", "step": 30, "devices/0/allocated": r"^25\d{7}$"}),
        _ENDED_WELL,
    ),
    "14_memory_of_one_rank": (
        fact("device.state", {"devices/0/allocated_peak": r"^73\d{7}$"}),
        absent("device.state", {"devices/0/allocated_peak": r"^\d{7,}$"}, (0, 1)),
        same("ddp.init begin", "placement/digest"),
    ),
    "14_slow_rank": (fact("ledger.step", {"forward": r"^(1[5-9]|[2-9]\d)\d{4}$"}), fact("ledger.phase.forward", {"times": 30}, "all"), _ENDED_WELL),
    "14_card_slowed_down": (
        fact("cards.state", {"tool": "^nvidia-smi$", "cards/1/throttled/0": "^hw_thermal$", "cards/0/throttled": None}, "launcher"),
        differ("ddp.init begin", "accelerators/0/current"),
        _ENDED_WELL,
    ),
    "14_control_group_full": (
        fact("launcher.child", {"signal": "SIGKILL", "child_local_rank": 1}, "launcher"),
        fact("device.state", {"system/memory_limit": 3 << 29, "system/oom_kills": 0}, "all"),
        fact("device.state", {"system/oom_kills": 1}, (0,)),
        absent("process.end", who=(1,)),
    ),
}

_NO_FILE = "a program on its own gets a file only once it calls what is watched; this one calls nothing of it, and what it dies of is not kept."

NOT_SEEN: Dict[str, Unseen] = {
    "06_flipped_byte": Unseen(
        "the file is complete and loads; its checksums are not read.",
        (_ENDED_WELL, fact("checkpoint.load end", {"file/complete": True, "file/crc": None})),
    ),
    "11_size_mismatch_silent": Unseen("load_state_dict is not watched, and mmengine prints what does not match.", (_NO_STATE_DICT, _ENDED_WELL)),
    "11_half_on_cpu": Unseen(_NO_FILE, (absent("process.start"),)),
    "11_newer_torch_needed": Unseen(_NO_FILE, (absent("process.start"),)),
}
