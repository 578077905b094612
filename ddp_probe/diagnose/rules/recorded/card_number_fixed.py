"""Recorded logs of the rule card-number-fixed."""

TWO_RANKS_CALL_SET_DEVICE_0_ON = """
{"event":"process.start","rank":0,"local_rank":0,"world_size":2,"launcher":"torchrun","accelerators":[{"name":"gcu"}]}
{"event":"device.set","phase":"begin","rank":0,"local_rank":0,"span":1,"site":{"file":"/train/05_hardcoded_card_zero.py","line":19,"function":"main"},"target":"torch_gcu.gcu.set_device","device":"0"}
{"event":"device.set","phase":"end","rank":0,"local_rank":0,"span":1}
{"event":"process.start","rank":1,"local_rank":1,"world_size":2,"launcher":"torchrun","accelerators":[{"name":"gcu"}]}
{"event":"device.set","phase":"begin","rank":1,"local_rank":1,"span":1,"site":{"file":"/train/05_hardcoded_card_zero.py","line":19,"function":"main"},"target":"torch_gcu.gcu.set_device","device":"0"}
{"event":"device.set","phase":"end","rank":1,"local_rank":1,"span":1}
{"event":"ddp.init","phase":"begin","rank":0,"local_rank":0,"span":4,"placement":{"parameters":4,"devices":{"gcu:0":{"count":4}},"majority":"gcu:0"},"accelerators":[{"name":"gcu","device_type":"gcu","initialised":true,"count":8}]}
{"event":"ddp.init","phase":"begin","rank":1,"local_rank":1,"span":4,"placement":{"parameters":4,"devices":{"gcu:0":{"count":4}},"majority":"gcu:0"},"accelerators":[{"name":"gcu","device_type":"gcu","initialised":true,"count":8}]}
"""

NCCL_FINDS_TWO_RANKS_ON_CARD = """Traceback (most recent call last):
  File "/train/t.py", line 31, in main
    model = DistributedDataParallel(model.to("cuda:0"))
torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1691, invalid usage (run with NCCL_DEBUG=WARN for details), NCCL version 2.19.3
ncclInvalidUsage: This usually reflects invalid usage of NCCL library.
Last error:
Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 4000
"""
