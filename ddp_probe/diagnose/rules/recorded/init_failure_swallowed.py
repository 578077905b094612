"""Recorded logs of the rule init-failure-swallowed."""

SET_DEVICE_FAILS_IN_EXCEPT = """
{"event":"dist.init_process_group","phase":"begin","rank":0,"span":1,"site":{"file":"/train/04_swallowed_then_ddp_fails.py","line":20,"function":"setup_distributed"},"backend":"gloo"}
{"event":"dist.init_process_group","phase":"end","rank":0,"span":1,"group_size":2}
{"event":"device.set","phase":"begin","rank":0,"span":2,"site":{"file":"/train/04_swallowed_then_ddp_fails.py","line":21,"function":"setup_distributed"},"target":"torch.cuda.set_device","device":"0"}
{"event":"device.set","phase":"error","rank":0,"span":2,"failure":{"type":"AttributeError","message":"module 'torch._C' has no attribute '_cuda_setDevice'"}}
{"event":"ddp.init","phase":"begin","rank":0,"span":3,"site":{"file":"/train/04_swallowed_then_ddp_fails.py","line":35,"function":"main"},"device_ids":["0"],"placement":{"parameters":4,"devices":{"cpu":{"count":4}},"majority":"cpu"}}
{"event":"ddp.init","phase":"error","rank":0,"span":3,"failure":{"type":"ValueError","message":"DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device GPU modules or CPU modules, but got device_ids [0]"}}
"""

TWO_RANKS_TRAIN_ALONE_WITH_GROUP = """
{"event":"process.start","rank":0,"world_size":2,"launcher":"torchrun"}
{"event":"dist.init_process_group","phase":"begin","rank":0,"span":1,"site":{"file":"/train/04_swallowed_and_silent.py","line":18,"function":"setup_distributed"},"backend":"gloo"}
{"event":"dist.init_process_group","phase":"end","rank":0,"span":1,"group_size":2}
{"event":"device.set","phase":"begin","rank":0,"span":2,"site":{"file":"/train/04_swallowed_and_silent.py","line":19,"function":"setup_distributed"},"target":"torch.cuda.set_device","device":"0"}
{"event":"device.set","phase":"error","rank":0,"span":2,"failure":{"type":"AttributeError","message":"module 'torch._C' has no attribute '_cuda_setDevice'"}}
{"event":"process.end","rank":0,"process_group":true}
"""

NCCL_IS_TRIED = """
{"event":"process.start","rank":0,"world_size":2,"launcher":"torchrun"}
{"event":"dist.init_process_group","phase":"begin","rank":0,"span":1,"backend":"nccl"}
{"event":"dist.init_process_group","phase":"error","rank":0,"span":1,"failure":{"type":"RuntimeError","message":"Distributed package doesn't have NCCL built in"}}
{"event":"dist.init_process_group","phase":"begin","rank":0,"span":2,"backend":"gloo"}
{"event":"dist.init_process_group","phase":"end","rank":0,"span":2,"group_size":2}
{"event":"ddp.init","phase":"begin","rank":0,"span":3,"placement":{"parameters":4,"devices":{"cpu":{"count":4}},"majority":"cpu"}}
{"event":"ddp.init","phase":"end","rank":0,"span":3}
{"event":"process.end","rank":0}
"""

WORDS_OF_SET_UP_THAT_MANY_DETECTORS = """Not init distributed mode.
Traceback (most recent call last):
  File "/train/t.py", line 40, in main
    if torch.distributed.get_rank() == 0:
  File "/env/site-packages/torch/distributed/distributed_c10d.py", line 2314, in get_rank
    default_pg = _get_default_group()
ValueError: Default process group has not been initialized, please make sure to call init_process_group.
"""
