"""Recorded logs of the rule set-device-missing."""

TWO_RANKS_MOVE_THEIR_MODEL_TO_ACCELERATOR = """
{"event":"process.start","rank":0,"local_rank":0,"world_size":2,"launcher":"torchrun","accelerators":[{"name":"gcu"}]}
{"event":"process.start","rank":1,"local_rank":1,"world_size":2,"launcher":"torchrun","accelerators":[{"name":"gcu"}]}
{"event":"module.move","phase":"begin","rank":0,"local_rank":0,"span":2,"site":{"file":"/train/05_local_rank_unused.py","line":21,"function":"main"},"method":"to","destination":"gcu"}
{"event":"module.move","phase":"end","rank":0,"local_rank":0,"span":2,"devices":{"gcu:0":4}}
{"event":"module.move","phase":"begin","rank":1,"local_rank":1,"span":2,"site":{"file":"/train/05_local_rank_unused.py","line":21,"function":"main"},"method":"to","destination":"gcu"}
{"event":"module.move","phase":"end","rank":1,"local_rank":1,"span":2,"devices":{"gcu:0":4}}
{"event":"ddp.init","phase":"begin","rank":0,"local_rank":0,"span":3,"site":{"file":"/train/05_local_rank_unused.py","line":21,"function":"main"},"placement":{"parameters":4,"devices":{"gcu:0":{"count":4}},"majority":"gcu:0"},"accelerators":[{"name":"gcu","device_type":"gcu","initialised":true,"current":0,"count":8}]}
{"event":"ddp.init","phase":"begin","rank":1,"local_rank":1,"span":3,"site":{"file":"/train/05_local_rank_unused.py","line":21,"function":"main"},"placement":{"parameters":4,"devices":{"gcu:0":{"count":4}},"majority":"gcu:0"},"accelerators":[{"name":"gcu","device_type":"gcu","initialised":true,"current":0,"count":8}]}
"""

SLURM_SHOWS_EACH_TASK_ONE_CARD = """
{"event":"process.start","rank":0,"local_rank":0,"world_size":2,"launcher":"slurm"}
{"event":"process.start","rank":1,"local_rank":1,"world_size":2,"launcher":"slurm"}
{"event":"ddp.init","phase":"begin","rank":0,"local_rank":0,"span":3,"placement":{"parameters":4,"devices":{"cuda:0":{"count":4}},"majority":"cuda:0"},"accelerators":[{"name":"cuda","device_type":"cuda","initialised":true,"current":0,"count":1}]}
{"event":"ddp.init","phase":"begin","rank":1,"local_rank":1,"span":3,"placement":{"parameters":4,"devices":{"cuda:0":{"count":4}},"majority":"cuda:0"},"accelerators":[{"name":"cuda","device_type":"cuda","initialised":true,"current":0,"count":1}]}
"""

FIRST_BARRIER_FINDS_TWO_RANKS_ON_ONE = """Traceback (most recent call last):
  File "/train/t.py", line 31, in main
    dist.barrier()
  File "/env/site-packages/torch/distributed/distributed_c10d.py", line 4159, in barrier
    work = group.barrier(opts=opts)
torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:268, invalid usage (run with NCCL_DEBUG=WARN for details), NCCL version 2.21.5
ncclInvalidUsage: This usually reflects invalid usage of NCCL library.
Last error:
Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 4000
"""

OLDER_NCCL_DOES_NOT_NAME_CARD = """Traceback (most recent call last):
  File "/train/t.py", line 18, in main
    dist.all_gather_object(found, mine)
  File "/env/site-packages/torch/distributed/distributed_c10d.py", line 1661, in all_gather_object
    all_gather(object_size_list, local_size, group=group)
RuntimeError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1035, invalid usage, NCCL version 2.10.3
ncclInvalidUsage: This usually reflects invalid usage of NCCL library (such as too many async ops, too many collectives at once, mixing streams in a group, etc).
"""
