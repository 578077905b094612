"""Recorded logs of the rule buffer-left-behind."""

BUFFER_IS_REGISTERED_AFTER_MOVE = """
{"event":"ddp.init","phase":"begin","rank":0,"span":4,"site":{"file":"/train/03_buffer_left_behind.py","line":34,"function":"main"},"backend":"eccl","placement":{"parameters":4,"devices":{"gcu:0":{"count":4}},"majority":"gcu:0","buffers":1,"buffer_devices":{"cpu":{"count":1}},"buffers_off_majority":[{"name":"scale","device":"cpu"}]},"last_move":"__main__.Scaled.to(gcu:0) at /train/03_buffer_left_behind.py:32"}
{"event":"ddp.init","phase":"end","rank":0,"span":4}
{"event":"process.end","rank":0,"failure":{"type":"RuntimeError","message":"Expected all tensors to be on the same device, but found at least two devices, gcu:0 and cpu!"},"exit_code":1,"uncaught":true}
"""

BUFFER_IS_ON_CPU_AND_NOTHING_FAILS = """
{"event":"ddp.init","phase":"begin","rank":0,"span":4,"placement":{"parameters":4,"devices":{"gcu:0":{"count":4}},"majority":"gcu:0","buffers":1,"buffer_devices":{"cpu":{"count":1}},"buffers_off_majority":[{"name":"scale","device":"cpu"}]}}
{"event":"ddp.init","phase":"end","rank":0,"span":4}
{"event":"process.end","rank":0}
"""

INPUTS_ARE_ON_CPU = """
{"event":"ddp.init","phase":"begin","rank":0,"span":4,"placement":{"parameters":4,"devices":{"gcu:0":{"count":4}},"majority":"gcu:0","buffers":1,"buffer_devices":{"gcu:0":{"count":1}}}}
{"event":"ddp.init","phase":"end","rank":0,"span":4}
{"event":"process.end","rank":0,"failure":{"type":"RuntimeError","message":"Expected all tensors to be on the same device, but found at least two devices, gcu:0 and cpu!"},"exit_code":1,"uncaught":true}
"""

NCCL_HAS_NO_WAY_TO_BROADCAST_BUFFER = """Traceback (most recent call last):
  File "/train/t.py", line 20, in main
    model = DDP(model, device_ids=[rank])
  File "/env/site-packages/torch/nn/parallel/distributed.py", line 801, in __init__
    _sync_module_states(
  File "/env/site-packages/torch/distributed/utils.py", line 286, in _sync_module_states
    _sync_params_and_buffers(process_group, module_states, broadcast_bucket_size, src)
  File "/env/site-packages/torch/distributed/utils.py", line 297, in _sync_params_and_buffers
    dist._broadcast_coalesced(
RuntimeError: No backend type associated with device type cpu
"""
