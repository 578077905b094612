"""Recorded logs of the rule model-never-moved."""

ONE_RANK_OF_TWO_FORGETS_TO_MOVE = """
{"event":"ddp.init","phase":"begin","rank":0,"span":4,"site":{"file":"/train/03_model_on_cpu_on_one_rank.py","line":25,"function":"main"},"model":"pieces.TinyModel","device_ids":["0"],"backend":"eccl","placement":{"parameters":4,"devices":{"gcu:0":{"count":4}},"majority":"gcu:0"},"accelerators":[{"name":"gcu","device_type":"gcu","module":"torch_gcu","initialised":true,"current":0,"count":8}]}
{"event":"ddp.init","phase":"begin","rank":1,"span":4,"site":{"file":"/train/03_model_on_cpu_on_one_rank.py","line":25,"function":"main"},"model":"pieces.TinyModel","device_ids":["1"],"backend":"eccl","placement":{"parameters":4,"devices":{"cpu":{"count":4}},"majority":"cpu"},"accelerators":[{"name":"gcu","device_type":"gcu","module":"torch_gcu","initialised":true,"current":1,"count":8}]}
{"event":"ddp.init","phase":"error","rank":1,"span":4,"failure":{"type":"ValueError","message":"DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device GPU modules or CPU modules, but got device_ids [1], output_device None, and module parameters {device(type='cpu')}."}}
"""

CARD_IS_AWAKE_AND_WRAPPED_MODEL_STAYS = """
{"event":"ddp.init","phase":"begin","rank":0,"span":4,"site":{"file":"/train/t.py","line":25},"model":"Net","backend":"gloo","placement":{"parameters":4,"devices":{"cpu":{"count":4}},"majority":"cpu"},"accelerators":[{"name":"gcu","device_type":"gcu","initialised":true,"current":0,"count":8}]}
{"event":"ddp.init","phase":"end","rank":0,"span":4}
{"event":"process.end","rank":0}
"""

CPU_RUN_WITHOUT_DEVICE_IDS = """
{"event":"ddp.init","phase":"begin","rank":0,"span":4,"model":"Net","backend":"gloo","placement":{"parameters":4,"devices":{"cpu":{"count":4}},"majority":"cpu"}}
{"event":"ddp.init","phase":"end","rank":0,"span":4}
{"event":"process.end","rank":0}
"""

TEXT_OF_OLDER_TORCH = """Traceback (most recent call last):
  File "/train/t.py", line 20, in main
    DistributedDataParallel(model, device_ids=[0])
AssertionError: DistributedDataParallel device_ids and output_device arguments only work with single-device CUDA modules, but got device_ids [0], output_device 0, and module parameters {device(type='cpu')}.
"""

TITLE_THAT_WAS_CUT_BEFORE_DEVICES = """ValueError: DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device GPU modules or CPU modules, but got device_ids [1], output_device None, and modu"""
