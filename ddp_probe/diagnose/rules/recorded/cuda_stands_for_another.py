"""Recorded logs of the rule cuda-stands-for-another."""

TRANSFER_TO_GCU_IS_IMPORTED = """
{"event":"process.start","rank":0,"accelerators":[{"name":"gcu","device_type":"gcu","module":"torch_gcu","shim":"torch_gcu.transfer_to_gcu"}]}
{"event":"process.end","rank":0,"failure":{"type":"pynvml.NVMLError_LibraryNotFound","message":"NVML Shared Library Not Found"},"exit_code":1,"uncaught":true}
"""

WITH_SHIM_IN_PLACE = """
{"event":"process.start","rank":0,"accelerators":[{"name":"gcu","device_type":"gcu","module":"torch_gcu","shim":"torch_gcu.transfer_to_gcu"}]}
{"event":"process.end","rank":0,"failure":{"type":"FileNotFoundError","message":"[Errno 2] No such file or directory: '/data/000042.png'"},"exit_code":1,"uncaught":true}
"""

NOTICE_OF_TORCH_NPU = """/env/site-packages/torch_npu/contrib/transfer_to_npu.py:209: ImportWarning:
    The torch.Tensor.cuda and torch.nn.Module.cuda are replaced with torch.Tensor.npu and torch.nn.Module.npu now..
    The backend in torch.distributed.init_process_group set to hccl now..
Traceback (most recent call last):
  File "/train/t.py", line 9, in <module>
    torch.cuda.memory._record_memory_history()
AttributeError: module 'torch._C' has no attribute '_cuda_record_memory_history'
"""
