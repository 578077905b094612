"""Recorded logs of the rule backend-does-not-fit-device."""

GROUP_FOR_CUDA = """
{"event":"process.end","rank":1,"failure":{"type":"RuntimeError","message":"No backend type associated with device type xpu","frames":[{"file":"/train/t.py","line":31,"function":"main"}]},"exit_code":1,"uncaught":true}
"""

TENSOR_ON_CPU_IS_ANOTHER_CAUSE = """
{"event":"process.end","rank":1,"failure":{"type":"RuntimeError","message":"No backend type associated with device type cpu","frames":[{"file":"/train/t.py","line":31,"function":"main"}]},"exit_code":1,"uncaught":true}
"""

TEXT_OF_INTEL_BINDING_OF_ONECCL = """[1] Traceback (most recent call last):
[1]   File "/train/t.py", line 40, in main
[1]     model = DDP(model)
[1] RuntimeError: allgather isn't implemented on backend [xpu]
"""
