"""Recorded logs of the rule backend-not-available."""

ECCL_AND_NOBODY_HAS_IMPORTED_PLUGIN = """
{"event":"dist.init_process_group","phase":"begin","rank":1,"span":1,"site":{"file":"/train/10_unknown_backend.py","line":14,"function":"main"},"backend":"eccl"}
{"event":"dist.init_process_group","phase":"error","rank":1,"span":1,"failure":{"type":"AssertionError","message":"Unknown backend type eccl"}}
"""

NCCL_WITH_TORCH_BUILT_FOR_CPU = """
{"event":"dist.init_process_group","phase":"begin","rank":0,"span":1,"site":{"file":"/train/10_nccl_without_cuda.py","line":14,"function":"main"},"backend":"nccl"}
{"event":"dist.init_process_group","phase":"error","rank":0,"span":1,"failure":{"type":"RuntimeError","message":"Distributed package doesn't have NCCL built in"}}
"""

BACKEND_IS_MISSING = """
{"event":"dist.init_process_group","phase":"begin","rank":0,"span":1,"backend":"nccl"}
{"event":"dist.init_process_group","phase":"error","rank":0,"span":1,"failure":{"type":"RuntimeError","message":"Distributed package doesn't have NCCL built in"}}
{"event":"dist.init_process_group","phase":"begin","rank":0,"span":2,"backend":"gloo"}
{"event":"dist.init_process_group","phase":"end","rank":0,"span":2}
{"event":"process.end","rank":0}
"""

TORCH_BUILT_FOR_CUDA_IS_ASKED = """Traceback (most recent call last):
  File "/train/t.py", line 12, in main
    model.to("xpu")
RuntimeError: PyTorch is not linked with support for xpu devices
"""

TORCH_2_6_ON_MAC = """ValueError: We detected accelerator mps on your machine. But we don't know which communication backend to use for this accelerator. Please specify the `backend` argument in the `init_process_group` call.
"""
