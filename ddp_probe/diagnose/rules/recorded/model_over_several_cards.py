"""Recorded logs of the rule model-over-several-cards."""

BACKBONE_AND_HEAD_ARE_ON_TWO_CARDS = """
{"event":"ddp.init","phase":"begin","rank":0,"span":5,"site":{"file":"/train/03_model_over_two_cards.py","line":25,"function":"main"},"device_ids":["0"],"placement":{"parameters":4,"devices":{"gcu:0":{"count":2},"gcu:1":{"count":2}},"majority":"gcu:0","off_majority":[{"name":"head.weight","device":"gcu:1"}]}}
{"event":"ddp.init","phase":"error","rank":0,"span":5,"failure":{"type":"ValueError","message":"DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device GPU modules or CPU modules"}}
"""

WITHOUT_DEVICE_IDS_DDP_TAKES_MODEL_ON = """
{"event":"ddp.init","phase":"begin","rank":0,"span":5,"placement":{"parameters":4,"devices":{"gcu:0":{"count":2},"gcu:1":{"count":2}},"majority":"gcu:0"}}
{"event":"ddp.init","phase":"end","rank":0,"span":5}
{"event":"process.end","rank":0}
"""

MAP_OVER_THREE_CARDS = """ValueError: DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device GPU modules or CPU modules, but got device_ids [0], output_device 0, and module 
parameters {device(type='cuda', index=0), device(type='cuda', index=1), device(type='cuda', index=2)}.
"""
