"""Recorded logs of the rule cuda-call-without-cuda."""

MODEL_IS_SENT_TO_CUDA_ON_HOST = """
{"event":"module.move","phase":"begin","rank":0,"span":2,"site":{"file":"/train/01_model_cuda_call.py","line":19,"function":"main"},"method":"cuda","destination":"0","model":"pieces.TinyModel"}
{"event":"module.move","phase":"error","rank":0,"span":2,"failure":{"type":"RuntimeError","message":"Cannot access accelerator device when none is available."}}
"""

CPU_BUILD_OF_TORCH = """Traceback (most recent call last):
  File "/train/t.py", line 12, in main
    props = torch.cuda.get_device_properties(0)
  File "/env/site-packages/torch/cuda/__init__.py", line 310, in _lazy_init
    raise AssertionError("Torch not compiled with CUDA enabled")
AssertionError: Torch not compiled with CUDA enabled
"""
