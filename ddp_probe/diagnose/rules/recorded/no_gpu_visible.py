"""Recorded logs of the rule no-gpu-visible."""

SLURM_BRANCH_DIVIDES_BY_DEVICE_COUNT = """
{"event":"mmengine.init_dist","phase":"begin","rank":0,"span":1,"site":{"file":"/train/10_runner_slurm_without_card.py","line":13,"function":"main"},"launcher":"slurm","backend":"gloo","branch":"cuda"}
{"event":"mmengine.init_dist","phase":"error","rank":0,"span":1,"failure":{"type":"ZeroDivisionError","message":"integer modulo by zero","frames":[{"file":"/env/site-packages/mmengine/dist/utils.py","line":198,"function":"_init_dist_slurm"}]}}
"""

NCCL_IS_BUILT_IN_AND_FINDS_NO = """
{"event":"dist.init_process_group","phase":"begin","rank":1,"span":1,"site":{"file":"/train/10_nccl_without_cuda.py","line":14,"function":"main"},"backend":"nccl"}
{"event":"dist.init_process_group","phase":"error","rank":1,"span":1,"failure":{"type":"RuntimeError","message":"ProcessGroupNCCL is only supported with GPUs, no GPUs found!"}}
"""

JOB_DIVIDES_BY_LENGTH_OF_ITS_OWN = """
{"event":"process.end","rank":0,"failure":{"type":"ZeroDivisionError","message":"integer modulo by zero","frames":[{"file":"/train/t.py","line":31,"function":"average"}]},"exit_code":1,"uncaught":true}
"""

JOB_OF_MMCV_BEFORE_2_0 = """Traceback (most recent call last):
  File "/env/site-packages/mmcv/runner/dist_utils.py", line 33, in _init_dist_pytorch
    torch.cuda.set_device(rank % num_gpus)
ZeroDivisionError: integer division or modulo by zero
"""

DRIVER_IS_THERE = """
{"event":"process.start","rank":0,"world_size":2,"launcher":"torchrun"}
{"event":"module.move","phase":"begin","rank":0,"span":2,"site":{"file":"/train/t.py","line":19,"function":"main"},"method":"cuda","destination":"0","model":"Net"}
{"event":"module.move","phase":"error","rank":0,"span":2,"failure":{"type":"RuntimeError","message":"No CUDA GPUs are available"}}
"""

LAUNCH_FUNCTION_ASSERTS_THAT_THERE_IS_CARD = """Traceback (most recent call last):
  File "/train/launch.py", line 80, in worker
    assert torch.cuda.is_available(), "cannot train on CPU"
AssertionError: cannot train on CPU
"""

ULTRALYTICS_COUNTS_CARDS = """ValueError: Invalid CUDA 'device=0,1' requested. Use 'device=cpu' or pass valid CUDA device(s) if available, i.e. 'device=0' or 'device=0,1,2,3' for Multi-GPU.

torch.cuda.is_available(): False
torch.cuda.device_count(): 0
os.environ['CUDA_VISIBLE_DEVICES']: None
"""
