"""Recorded logs of the rule more-processes-than-cards."""

TWO_RANKS_WERE_STARTED_WHERE_ONE_CARD = """
{"event":"process.start","rank":0,"local_rank":0,"world_size":2,"launcher":"torchrun","environment":{"LOCAL_WORLD_SIZE":"2","TOPS_VISIBLE_DEVICES":"0"},"accelerators":[{"name":"gcu","visible":{"TOPS_VISIBLE_DEVICES":"0"}}]}
{"event":"process.start","rank":1,"local_rank":1,"world_size":2,"launcher":"torchrun","environment":{"LOCAL_WORLD_SIZE":"2","TOPS_VISIBLE_DEVICES":"0"},"accelerators":[{"name":"gcu","visible":{"TOPS_VISIBLE_DEVICES":"0"}}]}
{"event":"device.set","phase":"begin","rank":1,"local_rank":1,"span":2,"site":{"file":"/train/05_more_processes_than_cards.py","line":22,"function":"main"},"target":"torch_gcu.gcu.set_device","device":"1"}
{"event":"device.set","phase":"error","rank":1,"local_rank":1,"span":2,"failure":{"type":"RuntimeError","message":"GCU error: invalid device ordinal 1, 1 cards are visible"}}
"""

FOUR_RANKS_SHARE_TWO_CARDS = """{"event":"process.start","rank":0,"local_rank":0,"world_size":4,"launcher":"torchrun","environment":{"LOCAL_WORLD_SIZE":"4"}}
{"event":"device.set","phase":"begin","rank":0,"local_rank":0,"span":1,"device":"0"}
{"event":"device.set","phase":"end","rank":0,"local_rank":0,"span":1}
{"event":"ddp.init","phase":"begin","rank":0,"local_rank":0,"span":2,"placement":{"parameters":4,"devices":{"cuda:0":{"count":4}},"majority":"cuda:0"},"accelerators":[{"name":"cuda","device_type":"cuda","initialised":true,"count":2}]}
{"event":"process.start","rank":1,"local_rank":1,"world_size":4,"launcher":"torchrun","environment":{"LOCAL_WORLD_SIZE":"4"}}
{"event":"device.set","phase":"begin","rank":1,"local_rank":1,"span":1,"device":"1"}
{"event":"device.set","phase":"end","rank":1,"local_rank":1,"span":1}
{"event":"ddp.init","phase":"begin","rank":1,"local_rank":1,"span":2,"placement":{"parameters":4,"devices":{"cuda:1":{"count":4}},"majority":"cuda:1"},"accelerators":[{"name":"cuda","device_type":"cuda","initialised":true,"count":2}]}
{"event":"process.start","rank":2,"local_rank":2,"world_size":4,"launcher":"torchrun","environment":{"LOCAL_WORLD_SIZE":"4"}}
{"event":"device.set","phase":"begin","rank":2,"local_rank":2,"span":1,"device":"0"}
{"event":"device.set","phase":"end","rank":2,"local_rank":2,"span":1}
{"event":"ddp.init","phase":"begin","rank":2,"local_rank":2,"span":2,"placement":{"parameters":4,"devices":{"cuda:0":{"count":4}},"majority":"cuda:0"},"accelerators":[{"name":"cuda","device_type":"cuda","initialised":true,"count":2}]}
{"event":"process.start","rank":3,"local_rank":3,"world_size":4,"launcher":"torchrun","environment":{"LOCAL_WORLD_SIZE":"4"}}
{"event":"device.set","phase":"begin","rank":3,"local_rank":3,"span":1,"device":"1"}
{"event":"device.set","phase":"end","rank":3,"local_rank":3,"span":1}
{"event":"ddp.init","phase":"begin","rank":3,"local_rank":3,"span":2,"placement":{"parameters":4,"devices":{"cuda:1":{"count":4}},"majority":"cuda:1"},"accelerators":[{"name":"cuda","device_type":"cuda","initialised":true,"count":2}]}"""

EACH_RANK_IS_ON_CARD_OF_ITS = """
{"event":"process.start","rank":0,"local_rank":0,"world_size":2,"launcher":"torchrun"}
{"event":"process.start","rank":1,"local_rank":1,"world_size":2,"launcher":"torchrun"}
{"event":"ddp.init","phase":"begin","rank":0,"local_rank":0,"span":3,"placement":{"parameters":4,"devices":{"gcu:0":{"count":4}},"majority":"gcu:0"},"accelerators":[{"name":"gcu","device_type":"gcu","initialised":true,"count":8}]}
{"event":"ddp.init","phase":"begin","rank":1,"local_rank":1,"span":3,"placement":{"parameters":4,"devices":{"gcu:1":{"count":4}},"majority":"gcu:1"},"accelerators":[{"name":"gcu","device_type":"gcu","initialised":true,"count":8}]}
"""

SET_DEVICE_IS_REFUSED = """Traceback (most recent call last):
  File "/train/t.py", line 12, in <module>
    torch.cuda.set_device(local_rank)
  File "/env/site-packages/torch/cuda/__init__.py", line 399, in set_device
    torch._C._cuda_setDevice(device)
RuntimeError: CUDA error: invalid device ordinal
"""

LAUNCH_FUNCTION_ASSERTS_THAT_THERE = """Traceback (most recent call last):
  File "/train/launch.py", line 82, in worker
    assert gpus_per_machine <= torch.cuda.device_count()
AssertionError
"""
