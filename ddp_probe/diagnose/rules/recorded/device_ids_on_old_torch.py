"""Recorded logs of the rule device-ids-on-old-torch."""

TORCH_1_12_AND_VENDOR_CARD = """
{"event":"process.start","rank":0,"versions":{"torch":"1.12.1"}}
{"event":"ddp.init","phase":"begin","rank":0,"span":4,"site":{"file":"/train/03_device_ids_on_old_torch.py","line":23,"function":"main"},"device_ids":["0"],"placement":{"parameters":4,"devices":{"xla:0":{"count":4}},"majority":"xla:0"}}
{"event":"ddp.init","phase":"end","rank":0,"span":4}
{"event":"process.end","rank":0,"failure":{"type":"IndexError","message":"list index out of range","frames":[{"file":"/env/site-packages/torch/nn/parallel/_functions.py","line":122,"function":"_get_stream"}]},"exit_code":1,"uncaught":true}
"""

JOB_OWN_LIST_IS_TOO_SHORT = """
{"event":"ddp.init","phase":"begin","rank":0,"span":4,"device_ids":["0"],"placement":{"parameters":4,"devices":{"xla:0":{"count":4}},"majority":"xla:0"}}
{"event":"ddp.init","phase":"end","rank":0,"span":4}
{"event":"process.end","rank":0,"failure":{"type":"IndexError","message":"list index out of range","frames":[{"file":"/train/data.py","line":17,"function":"__getitem__"}]},"exit_code":1,"uncaught":true}
"""

TRACEBACK_OF_TORCH_1_12 = """Traceback (most recent call last):
  File "/env/site-packages/torch/nn/parallel/distributed.py", line 1000, in forward
    inputs, kwargs = self.to_kwargs(inputs, kwargs, self.device_ids[0])
  File "/env/site-packages/torch/nn/parallel/_functions.py", line 117, in _get_stream
    if _streams[device] is None:
IndexError: list index out of range
"""
