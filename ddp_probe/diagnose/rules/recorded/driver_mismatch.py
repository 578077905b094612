"""Recorded logs of the rule driver-mismatch."""

DRIVER_FOR_CUDA_11_4_UNDER_TORCH = """
{"event":"device.set","phase":"begin","rank":0,"span":1,"site":{"file":"/train/t.py","line":12},"target":"torch.cuda.set_device","device":"0"}
{"event":"device.set","phase":"error","rank":0,"span":1,"failure":{"type":"RuntimeError","message":"The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver by downloading and installing a new version from the URL: http://www.nvidia.com/Download/index.aspx"}}
"""

NO_DRIVER_AT_ALL_IS_ANOTHER_CAUSE = """
{"event":"device.set","phase":"begin","rank":0,"span":1,"site":{"file":"/train/t.py","line":12},"target":"torch.cuda.set_device","device":"0"}
{"event":"device.set","phase":"error","rank":0,"span":1,"failure":{"type":"RuntimeError","message":"Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver from http://www.nvidia.com/Download/index.aspx"}}
"""

WARNING_THAT_TORCH_GIVES_WHEN_IT_COUNTS = """/env/site-packages/torch/cuda/__init__.py:52: UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 804: forward compatibility was attempted on non supported HW (Triggered internally at /pytorch/c10/cuda/CUDAFunctions.cpp:115.)
  return torch._C._cuda_getDeviceCount() > 0
RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 804: forward compatibility was attempted on non supported HW
"""

CUDA_DOES_NOT_START = """RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing env variable CUDA_VISIBLE_DEVICES after program start. Setting the available devices to be zero.
"""
