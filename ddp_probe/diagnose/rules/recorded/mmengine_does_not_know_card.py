"""Recorded logs of the rule mmengine-does-not-know-card."""

EIGHT_GCU_CARDS = """
{"event":"mmengine.wrap_model","phase":"begin","rank":0,"span":3,"site":{"file":"/train/02_runner_does_not_know_cards.py","line":19,"function":"main"},"launcher":"pytorch","distributed":true,"get_device":"cpu","get_device_because":"mmengine 0.10.7 knows npu, cuda, mlu, mps, dipu, musa; gcu is not among them. None of those it knows was available when it was imported.","placement":{"parameters":4,"devices":{"cpu":{"count":4}},"majority":"cpu"},"accelerators":[{"name":"gcu","device_type":"gcu","module":"torch_gcu","initialised":true,"current":0,"count":8}]}
{"event":"ddp.init","phase":"begin","rank":0,"span":5,"site":{"file":"/train/02_runner_does_not_know_cards.py","line":19,"function":"main"},"through":[{"file":"/env/site-packages/mmengine/runner/runner.py","line":898,"function":"Runner.wrap_model"}],"wrapper":"mmengine.model.wrappers.distributed.MMDistributedDataParallel","device_ids":["0"],"backend":"eccl","placement":{"parameters":4,"devices":{"cpu":{"count":4}},"majority":"cpu"},"accelerators":[{"name":"gcu","device_type":"gcu","module":"torch_gcu","initialised":true,"current":0,"count":8}]}
{"event":"ddp.init","phase":"error","rank":0,"span":5,"failure":{"type":"ValueError","message":"DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device GPU modules or CPU modules, but got device_ids [0], output_device None, and module parameters {device(type='cpu')}."}}
"""

WITH_DEVICE_IDS_NONE_JOB_TRAINS_ON = """
{"event":"mmengine.wrap_model","phase":"begin","rank":0,"span":3,"site":{"file":"/train/t.py","line":19},"distributed":true,"get_device":"cpu","placement":{"parameters":4,"devices":{"cpu":{"count":4}}},"accelerators":[{"name":"gcu","device_type":"xla","initialised":true,"current":0,"count":8}]}
{"event":"ddp.init","phase":"begin","rank":0,"span":5,"site":{"file":"/train/t.py","line":19},"through":[{"file":"/env/site-packages/mmengine/runner/runner.py","line":911,"function":"wrap_model"}],"backend":"eccl","placement":{"parameters":4,"devices":{"cpu":{"count":4}}},"accelerators":[{"name":"gcu","device_type":"xla","initialised":true,"current":0,"count":8}]}
{"event":"ddp.init","phase":"end","rank":0,"span":5}
{"event":"mmengine.wrap_model","phase":"end","rank":0,"span":3}
{"event":"process.end","rank":0}
"""

MMENGINE_ANSWERS_CPU_ON_HOST_WITHOUT_CARD = """
{"event":"mmengine.wrap_model","phase":"begin","rank":0,"span":3,"distributed":true,"get_device":"cpu","placement":{"parameters":4,"devices":{"cpu":{"count":4}}}}
{"event":"ddp.init","phase":"begin","rank":0,"span":5,"through":[{"file":"/env/site-packages/mmengine/runner/runner.py","line":911,"function":"wrap_model"}],"backend":"gloo","placement":{"parameters":4,"devices":{"cpu":{"count":4}}}}
{"event":"ddp.init","phase":"end","rank":0,"span":5}
{"event":"mmengine.wrap_model","phase":"end","rank":0,"span":3}
{"event":"process.end","rank":0}
"""

LOG_OF_JOB_WITH_ECCL_ENDS_IN = """Traceback (most recent call last):
  File "/train/train.py", line 40, in main
    runner = Runner(launcher='pytorch', env_cfg=dict(dist_cfg=dict(backend='eccl')))
  File "/env/site-packages/mmengine/runner/runner.py", line 898, in wrap_model
    model = MMDistributedDataParallel(
  File "/env/site-packages/torch/nn/parallel/distributed.py", line 677, in _log_and_throw
    raise err_type(err_msg)
ValueError: DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device GPU modules or CPU modules, but got device_ids [0], output_device None, and module parameters {device(type='cpu')}.
"""
