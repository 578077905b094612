"""Recorded logs of the rule cpu-tensor-in-collective."""

COUNTER_ON_CPU_IS_SUMMED_OVER_NCCL = """
{"event":"ddp.init","phase":"begin","rank":0,"span":4,"backend":"nccl","placement":{"parameters":4,"devices":{"cuda:0":{"count":4}},"majority":"cuda:0"}}
{"event":"ddp.init","phase":"end","rank":0,"span":4}
{"event":"process.end","rank":0,"failure":{"type":"RuntimeError","message":"No backend type associated with device type cpu","frames":[{"file":"/train/t.py","line":31,"function":"main"},{"file":"/env/site-packages/torch/distributed/distributed_c10d.py","line":2501,"function":"all_reduce"}]},"exit_code":1,"uncaught":true}
"""

SAME_WORDS_FROM_DDP_EXCHANGE_OF_BUFFERS = """
{"event":"process.end","rank":0,"failure":{"type":"RuntimeError","message":"No backend type associated with device type cpu","frames":[{"file":"/train/t.py","line":31,"function":"main"},{"file":"/env/site-packages/torch/distributed/utils.py","line":286,"function":"_sync_module_states"}]},"exit_code":1,"uncaught":true}
"""

TORCH_1_X_IN_JOB_OWN_REDUCE = """Traceback (most recent call last):
  File "/train/t.py", line 31, in average
    dist.all_reduce(total)
  File "/env/site-packages/torch/distributed/distributed_c10d.py", line 1322, in all_reduce
    work = default_pg.allreduce([tensor], opts)
RuntimeError: Tensors must be CUDA and dense
"""
