"""Recorded logs of the rule syncbn-without-process-group."""

BATCH_NORM_ASKS_FOR_GROUP_SIZE = """
{"event":"process.start","rank":0,"role":"solo","launcher":"none"}
{"event":"process.end","rank":0,"uncaught":true,"exit_code":1,"failure":{"type":"ValueError","message":"Default process group has not been initialized, please make sure to call init_process_group.","frames":[{"file":"/train/t.py","line":30,"function":"main"},{"file":"/env/site-packages/torch/nn/modules/batchnorm.py","line":866,"function":"SyncBatchNorm.forward"},{"file":"/env/site-packages/torch/distributed/distributed_c10d.py","line":1025,"function":"_get_default_group"}]}}
"""

SAMPLER_ASKS_FOR_RANK = """
{"event":"process.start","rank":0,"role":"solo","launcher":"none"}
{"event":"process.end","rank":0,"uncaught":true,"exit_code":1,"failure":{"type":"ValueError","message":"Default process group has not been initialized, please make sure to call init_process_group.","frames":[{"file":"/train/t.py","line":30,"function":"main"},{"file":"/env/site-packages/torch/utils/data/distributed.py","line":68,"function":"DistributedSampler.__init__"}]}}
"""

TORCH_RAISES_IN_FORWARD_OF_BATCH_NORM = """Traceback (most recent call last):
  File "/train/t.py", line 30, in main
    loss = model(inputs).sum()
  File "/env/site-packages/torch/nn/modules/batchnorm.py", line 758, in forward
    world_size = torch.distributed.get_world_size(process_group)
  File "/env/site-packages/torch/distributed/distributed_c10d.py", line 430, in _get_default_group
    raise RuntimeError(
RuntimeError: Default process group has not been initialized, please make sure to call init_process_group.
"""
