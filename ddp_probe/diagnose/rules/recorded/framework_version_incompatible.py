"""Recorded logs of the rule framework-version-incompatible."""

TORCH_1_12_HAS_NO_TORCH_COMPILE = """
{"event":"process.start","rank":0,"role":"solo","launcher":"none","versions":{"python":"3.8.18","torch":"1.12.1"}}
{"event":"process.end","rank":0,"uncaught":true,"exit_code":1,"failure":{"type":"AttributeError","message":"module 'torch' has no attribute 'compile'"}}
"""

CPU_BUILD_OF_TORCH_HAS_NO_CUDA = """
{"event":"process.start","rank":0,"world_size":2,"launcher":"torchrun","versions":{"torch":"2.13.0"}}
{"event":"process.end","rank":0,"uncaught":true,"exit_code":1,"failure":{"type":"AttributeError","message":"module 'torch._C' has no attribute '_cuda_setDevice'"}}
"""

SUBMODULE_WAS_NEVER_IMPORTED = """
{"event":"process.start","rank":0,"world_size":2,"launcher":"torchrun","versions":{"torch":"2.13.0"}}
{"event":"process.end","rank":0,"uncaught":true,"exit_code":1,"failure":{"type":"AttributeError","message":"module 'torch.distributed' has no attribute 'fsdp'","frames":[{"file":"/train/t.py","line":12,"function":"main"}]}}
"""

LIBRARY_ASKS_FOR_NAME_THAT_NOBODY = """
{"event":"process.start","rank":0,"world_size":2,"launcher":"torchrun","versions":{"torch":"2.13.0"}}
{"event":"process.end","rank":0,"uncaught":true,"exit_code":1,"failure":{"type":"AttributeError","message":"module 'torch.nn' has no attribute 'SomeLayer'","frames":[{"file":"/train/t.py","line":1,"function":"<module>"},{"file":"/env/lib/python3.11/site-packages/models/head.py","line":7,"function":"<module>"}]}}
"""

PLUGIN_IS_THERE = """
{"event":"process.end","rank":0,"uncaught":true,"exit_code":1,"failure":{"type":"ModuleNotFoundError","message":"No module named 'torch_gcu.core'","frames":[{"file":"/train/t.py","line":3,"function":"<module>"}]}}
"""

MMCV_OF_BEFORE_TORCH_2_WRAPS_MODEL = """Traceback (most recent call last):
  File "/env/site-packages/mmcv/parallel/distributed.py", line 160, in _run_ddp_forward
    self._use_replicated_tensor_module else self.module
  File "/env/site-packages/torch/nn/modules/module.py", line 1614, in __getattr__
    raise AttributeError("'{}' object has no attribute '{}'".format(
AttributeError: 'MMDistributedDataParallel' object has no attribute '_use_replicated_tensor_module'
"""
