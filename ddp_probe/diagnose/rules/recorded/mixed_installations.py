"""Recorded logs of the rule mixed-installations."""

EXTENSION_ASKS_FOR_SYMBOL_THAT_TORCH_DOES = """
{"event":"process.start","rank":0,"world_size":2,"launcher":"torchrun"}
{"event":"process.end","rank":0,"uncaught":true,"exit_code":1,"failure":{"type":"ImportError","message":"/env/site-packages/mmcv/_ext.cpython-38-x86_64-linux-gnu.so: undefined symbol: _ZN2at5emptyEN3c108ArrayRefIlEE"}}
"""

ATTRIBUTE_OF_PROGRAM_OWN_IS_NOT_THERE = """
{"event":"process.start","rank":0,"world_size":2,"launcher":"torchrun"}
{"event":"process.end","rank":0,"uncaught":true,"exit_code":1,"failure":{"type":"AttributeError","message":"'Trainer' object has no attribute '_init_names'"}}
"""

LOADER_MISSES_SYMBOL = """Traceback (most recent call last):
  File "/train/t.py", line 1, in <module>
    import torch
  File "/env/site-packages/torch/__init__.py", line 237, in <module>
    from torch._C import *
ImportError: /env/site-packages/torch/lib/libtorch_cuda.so: undefined symbol: ncclCommRegister
"""
