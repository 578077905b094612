"""Recorded logs of the rule submodule-left-behind."""

ONE_LAYER_IS_ON_CPU = """
{"event":"module.move","phase":"begin","rank":0,"span":2,"site":{"file":"/train/03_submodule_left_behind.py","line":23,"function":"main"},"method":"to","destination":"gcu:0","model":"torch.nn.modules.container.Sequential"}
{"event":"module.move","phase":"end","rank":0,"span":2,"devices":{"gcu:0":2}}
{"event":"ddp.init","phase":"begin","rank":0,"span":3,"site":{"file":"/train/03_submodule_left_behind.py","line":24,"function":"main"},"placement":{"model":"pieces.TinyModel","parameters":4,"devices":{"gcu:0":{"count":2},"cpu":{"count":2}},"majority":"gcu:0","off_majority":[{"name":"head.weight","device":"cpu"}]}}
{"event":"ddp.init","phase":"error","rank":0,"span":3,"failure":{"type":"ValueError","message":"DistributedDataParallel's input module must be on the same type of devices, but input module parameters locate in {"}}
"""

LAYER_IS_PUT_IN_AFTER_WHOLE_MODEL = """
{"event":"module.move","phase":"begin","rank":0,"span":2,"site":{"file":"/train/03_converted_after_the_move.py","line":29,"function":"main"},"method":"to","destination":"gcu:0","model":"pieces.TinyModel"}
{"event":"module.move","phase":"end","rank":0,"span":2,"devices":{"gcu:0":4}}
{"event":"ddp.init","phase":"begin","rank":0,"span":3,"site":{"file":"/train/03_converted_after_the_move.py","line":30,"function":"main"},"placement":{"model":"pieces.TinyModel","parameters":6,"devices":{"gcu:0":{"count":4},"cpu":{"count":2}},"majority":"gcu:0","off_majority":[{"name":"head.0.weight","device":"cpu"}]}}
{"event":"ddp.init","phase":"error","rank":0,"span":3,"failure":{"type":"ValueError","message":"DistributedDataParallel's input module must be on the same type of devices, but input module parameters locate in {"}}
"""

TEXT_OF_FAILURE_IS_ALL_THERE = """ValueError: DistributedDataParallel's input module must be on the same type of devices, but input module parameters locate in {'cpu', 'cuda'}."""
