"""Recorded logs of the rule visible-cards-wrong."""

EACH_RANK_START_SCRIPT_SHOWS_IT_CARD = """
{"event":"launcher.start","launcher":"torchrun","environment":{"OMP_NUM_THREADS":"1"}}
{"event":"process.start","rank":0,"local_rank":0,"world_size":2,"launcher":"torchrun","environment":{"TOPS_VISIBLE_DEVICES":"3"},"accelerators":[{"name":"gcu","visible":{"TOPS_VISIBLE_DEVICES":"3"}}]}
{"event":"process.start","rank":1,"local_rank":1,"world_size":2,"launcher":"torchrun","environment":{"TOPS_VISIBLE_DEVICES":"3"},"accelerators":[{"name":"gcu","visible":{"TOPS_VISIBLE_DEVICES":"3"}}]}
{"event":"ddp.init","phase":"begin","rank":0,"local_rank":0,"span":4,"placement":{"parameters":4,"devices":{"gcu:0":{"count":4}},"majority":"gcu:0"},"accelerators":[{"name":"gcu","device_type":"gcu","initialised":true,"count":1}]}
{"event":"ddp.init","phase":"begin","rank":1,"local_rank":1,"span":4,"placement":{"parameters":4,"devices":{"gcu:0":{"count":4}},"majority":"gcu:0"},"accelerators":[{"name":"gcu","device_type":"gcu","initialised":true,"count":1}]}
"""

EACH_RANK_IS_SHOWN_CARD_OF_ITS = """
{"event":"process.start","rank":0,"local_rank":0,"world_size":2,"launcher":"torchrun","accelerators":[{"name":"gcu","visible":{"TOPS_VISIBLE_DEVICES":"0"}}]}
{"event":"process.start","rank":1,"local_rank":1,"world_size":2,"launcher":"torchrun","accelerators":[{"name":"gcu","visible":{"TOPS_VISIBLE_DEVICES":"1"}}]}
{"event":"ddp.init","phase":"begin","rank":0,"local_rank":0,"span":4,"placement":{"parameters":4,"devices":{"gcu:0":{"count":4}},"majority":"gcu:0"},"accelerators":[{"name":"gcu","device_type":"gcu","initialised":true,"count":1}]}
{"event":"ddp.init","phase":"begin","rank":1,"local_rank":1,"span":4,"placement":{"parameters":4,"devices":{"gcu:0":{"count":4}},"majority":"gcu:0"},"accelerators":[{"name":"gcu","device_type":"gcu","initialised":true,"count":1}]}
"""

VARIABLE_HIDES_EVERY_CARD = """
{"event":"process.start","rank":0,"local_rank":0,"world_size":1,"launcher":"torchrun","environment":{"CUDA_VISIBLE_DEVICES":"9"},"accelerators":[{"name":"cuda","device_type":"cuda","visible":{"CUDA_VISIBLE_DEVICES":"9"}}]}
{"event":"process.end","rank":0,"local_rank":0,"uncaught":true,"exit_code":1,"failure":{"type":"RuntimeError","message":"No CUDA GPUs are available"}}
"""

TORCH_FINDS_NO_CARD = """Traceback (most recent call last):
  File "/train/t.py", line 7, in <module>
    torch.cuda.set_device(0)
RuntimeError: No CUDA GPUs are available
"""
