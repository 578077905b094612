"""Recorded logs of the rule device-ids-on-cpu."""

TUTORIAL_CALL_ON_HOST_WITHOUT_CARD = """
{"event":"ddp.init","phase":"begin","rank":0,"span":3,"site":{"file":"/train/03_ddp_device_ids_on_cpu.py","line":22,"function":"main"},"model":"pieces.TinyModel","device_ids":["0"],"output_device":"0","backend":"gloo","placement":{"parameters":4,"devices":{"cpu":{"count":4}},"majority":"cpu"}}
{"event":"ddp.init","phase":"error","rank":0,"span":3,"failure":{"type":"ValueError","message":"DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device GPU modules or CPU modules, but got device_ids [0], output_device 0, and module parameters {device(type='cpu')}."}}
"""

MMENGINE_PASSES_DEVICE_IDS = """
{"event":"mmengine.wrap_model","phase":"begin","rank":1,"span":2,"site":{"file":"/train/02_runner_wraps_cpu_model.py","line":17,"function":"main"},"launcher":"pytorch","distributed":true,"get_device":"cpu"}
{"event":"ddp.init","phase":"begin","rank":1,"span":4,"site":{"file":"/train/02_runner_wraps_cpu_model.py","line":17,"function":"main"},"through":[{"file":"/env/site-packages/mmengine/runner/runner.py","line":898,"function":"Runner.wrap_model"},{"file":"/env/site-packages/mmengine/model/wrappers/distributed.py","line":93,"function":"MMDistributedDataParallel.__init__"}],"device_ids":["1"],"backend":"gloo","placement":{"parameters":4,"devices":{"cpu":{"count":4}},"majority":"cpu"}}
{"event":"ddp.init","phase":"error","rank":1,"span":4,"failure":{"type":"ValueError","message":"DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device GPU modules or CPU modules, but got device_ids [1], output_device None, and module parameters {device(type='cpu')}."}}
"""

FAILURE_IS_RAISED_AGAIN_AND_SURVIVED = """
{"event":"ddp.init","phase":"begin","rank":0,"span":3,"device_ids":["0"],"backend":"gloo","placement":{"parameters":4,"devices":{"cpu":{"count":4}},"majority":"cpu"}}
{"event":"ddp.init","phase":"error","rank":0,"span":3,"failure":{"type":"ValueError","message":"DistributedDataParallel device_ids and output_device arguments only work with …"}}
{"event":"ddp.init","phase":"begin","rank":0,"span":4,"backend":"gloo","placement":{"parameters":4,"devices":{"cpu":{"count":4}},"majority":"cpu"}}
{"event":"ddp.init","phase":"end","rank":0,"span":4}
{"event":"process.end","rank":0}
"""

TEXT_OF_MMENGINE_JOB = """  File "/env/site-packages/mmengine/runner/runner.py", line 898, in wrap_model
    model = MMDistributedDataParallel(
  File "/env/site-packages/torch/nn/parallel/distributed.py", line 1372, in _log_and_throw
    raise err_type(err_msg)
ValueError: DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device GPU modules or CPU modules, but got device_ids [0], output_device None, and module parameters {device(type='cpu')}.
"""
