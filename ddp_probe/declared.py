"""What probes and remedies declare in their own files, as plain data: ring 0 needs it before those may be loaded.

Printed by scripts/render_docs from ddp_probe/probes and ddp_probe/remedies. Change those, then run scripts/render_docs.
"""

# probe, module, qualname, roles, optional
TARGETS = (
    ("ddp", "torch.nn.parallel.distributed", "DistributedDataParallel.__init__", ("rank", "solo"), False),
    ("ddp", "torch.distributed.fsdp.fully_sharded_data_parallel", "FullyShardedDataParallel.__init__", ("rank", "solo"), False),
    ("ddp", "mmengine.model.wrappers.seperate_distributed", "MMSeparateDistributedDataParallel.__init__", ("rank", "solo"), False),
    ("ddp", "torch.distributed.fsdp._fully_shard._fully_shard", "fully_shard", ("rank", "solo"), True),
    ("init_dist", "mmengine.dist.utils", "init_dist", ("rank", "solo"), False),
    ("launcher", "torch.distributed.launcher.api", "launch_agent", ("launcher", "solo"), False),
    ("launcher", "torch.distributed.elastic.multiprocessing.api", "PContext.start", ("launcher", "solo"), False),
    ("launcher", "torch.distributed.elastic.multiprocessing.api", "PContext.close", ("launcher", "solo"), False),
    ("load", "torch.serialization", "load", ("rank", "solo"), False),
    ("module_move", "torch.nn.modules.module", "Module.to", ("rank", "solo"), False),
    ("module_move", "torch.nn.modules.module", "Module.cuda", ("rank", "solo"), False),
    ("module_move", "torch.nn.modules.module", "Module.cpu", ("rank", "solo"), False),
    ("module_move", "torch.nn.modules.module", "Module.xpu", ("rank", "solo"), False),
    ("process_group", "torch.distributed.distributed_c10d", "init_process_group", ("rank", "solo"), False),
    ("process_group", "torch.distributed.distributed_c10d", "destroy_process_group", ("rank", "solo"), False),
    ("process_group", "torch.distributed.distributed_c10d", "new_group", ("rank", "solo"), False),
    ("save", "torch.serialization", "save", ("rank", "solo"), False),
    ("set_device", "torch.cuda", "set_device", ("rank", "solo"), False),
    ("set_device", "torch.accelerator", "set_device_index", ("rank", "solo"), True),
    ("set_device", "torch.accelerator", "set_device_idx", ("rank", "solo"), True),
    ("set_device", "torch_gcu", "set_device", ("rank", "solo"), True),
    ("set_device", "torch_gcu.gcu", "set_device", ("rank", "solo"), True),
    ("set_device", "torch.gcu", "set_device", ("rank", "solo"), True),
    ("set_device", "torch_npu.npu.utils", "set_device", ("rank", "solo"), True),
    ("set_device", "torch_npu.npu", "set_device", ("rank", "solo"), True),
    ("set_device", "torch_mlu.mlu", "set_device", ("rank", "solo"), True),
    ("set_device", "torch_mlu.core.device.utils", "set_device", ("rank", "solo"), True),
    ("set_device", "torch_mlu.core.mlu_model", "set_device", ("rank", "solo"), True),
    ("set_device", "torch_musa.core.device", "set_device", ("rank", "solo"), True),
    ("set_device", "torch_musa", "set_device", ("rank", "solo"), True),
    ("set_device", "torch_dipu.dipu.device", "set_device", ("rank", "solo"), True),
    ("set_device", "habana_frameworks.torch.hpu", "set_device", ("rank", "solo"), True),
    ("set_device", "torch.xpu", "set_device", ("rank", "solo"), True),
    ("set_device", "intel_extension_for_pytorch.xpu", "set_device", ("rank", "solo"), True),
    ("spawn", "torch.multiprocessing.spawn", "start_processes", ("rank", "solo"), False),
    ("wrap_model", "mmengine.runner.runner", "Runner.wrap_model", ("rank", "solo"), False),
    ("wrap_model", "mmengine._strategy.single_device", "SingleDeviceStrategy._wrap_model", ("rank", "solo"), False),
    ("wrap_model", "mmengine._strategy.distributed", "DDPStrategy._wrap_model", ("rank", "solo"), False),
    ("wrap_model", "mmengine._strategy.fsdp", "FSDPStrategy._wrap_model", ("rank", "solo"), True),
    ("wrap_model", "mmengine._strategy.deepspeed", "DeepSpeedStrategy._wrap_model", ("rank", "solo"), True),
)

# In the order in which they are applied to one call.
REMEDIES = (
    "set-device",
    "backend",
    "rendezvous",
    "mmengine-device",
    "move-model",
    "device-ids",
    "map-location",
    "weights-only",
    "settled-load",
    "atomic-save",
    "timeout",
)

# remedy, module, qualname
REMEDY_TARGETS = (
    ("set-device", "torch.cuda", "set_device"),
    ("backend", "torch.distributed.distributed_c10d", "init_process_group"),
    ("rendezvous", "torch.distributed.distributed_c10d", "init_process_group"),
    ("rendezvous", "mmengine.dist.utils", "init_dist"),
    ("mmengine-device", "mmengine.device.utils", "get_device"),
    ("mmengine-device", "mmengine.dist.utils", "get_comm_device"),
    ("move-model", "torch.nn.parallel.distributed", "DistributedDataParallel.__init__"),
    ("device-ids", "torch.nn.parallel.distributed", "DistributedDataParallel.__init__"),
    ("map-location", "torch.serialization", "load"),
    ("weights-only", "torch.serialization", "load"),
    ("settled-load", "torch.serialization", "load"),
    ("atomic-save", "torch.serialization", "save"),
    ("atomic-save", "mmengine.fileio.backends.local_backend", "LocalBackend.put"),
    ("timeout", "torch.distributed.distributed_c10d", "init_process_group"),
)
