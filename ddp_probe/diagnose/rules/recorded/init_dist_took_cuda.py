"""Recorded logs of the rule init-dist-took-cuda."""

RUNNER_WITH_GLOO_ON_HOST_WITHOUT_CARD = """
{"event":"mmengine.init_dist","phase":"begin","rank":0,"span":1,"site":{"file":"/train/01_runner_sets_cuda_device.py","line":13,"function":"main"},"launcher":"pytorch","backend":"gloo","branch":"cuda","branch_because":"IS_MLU_AVAILABLE, IS_NPU_AVAILABLE, IS_MUSA_AVAILABLE: False; so init_dist calls torch.cuda.set_device before init_process_group, whatever the backend."}
{"event":"device.set","phase":"begin","rank":0,"span":2,"site":{"file":"/train/01_runner_sets_cuda_device.py","line":13,"function":"main"},"through":[{"file":"/env/site-packages/mmengine/dist/utils.py","line":130,"function":"_init_dist_pytorch"}],"target":"torch.cuda.set_device","device":"0"}
{"event":"device.set","phase":"error","rank":0,"span":2,"failure":{"type":"AttributeError","message":"module 'torch._C' has no attribute '_cuda_setDevice'"}}
{"event":"mmengine.init_dist","phase":"error","rank":0,"span":1,"failure":{"type":"AttributeError","message":"module 'torch._C' has no attribute '_cuda_setDevice'"}}
"""

TRACEBACK_OF_MMCV = """Traceback (most recent call last):
  File "/env/site-packages/mmcv/runner/dist_utils.py", line 41, in _init_dist_pytorch
    torch.cuda.set_device(local_rank)
  File "/env/site-packages/torch/cuda/__init__.py", line 313, in set_device
    torch._C._cuda_setDevice(device)
AttributeError: module 'torch._C' has no attribute '_cuda_setDevice'
"""
