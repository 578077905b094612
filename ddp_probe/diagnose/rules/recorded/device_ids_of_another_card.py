"""Recorded logs of the rule device-ids-of-another-card."""

TWO_RANKS_NAME_EACH_OTHER_CARD = """
{"event":"ddp.init","phase":"begin","rank":0,"span":4,"site":{"file":"/train/03_device_ids_of_another_card.py","line":23,"function":"main"},"device_ids":["1"],"placement":{"parameters":4,"devices":{"gcu:0":{"count":4}},"majority":"gcu:0"}}
{"event":"ddp.init","phase":"end","rank":0,"span":4}
{"event":"process.end","rank":0,"failure":{"type":"RuntimeError","message":"Expected all tensors to be on the same device, but found at least two devices, gcu:0 and gcu:1!"},"exit_code":1,"uncaught":true}
{"event":"ddp.init","phase":"begin","rank":1,"span":4,"site":{"file":"/train/03_device_ids_of_another_card.py","line":23,"function":"main"},"device_ids":["0"],"placement":{"parameters":4,"devices":{"gcu:1":{"count":4}},"majority":"gcu:1"}}
{"event":"ddp.init","phase":"end","rank":1,"span":4}
"""

NUMBER_IS_SAME = """
{"event":"ddp.init","phase":"begin","rank":1,"span":4,"device_ids":["1"],"placement":{"parameters":4,"devices":{"gcu:1":{"count":4}},"majority":"gcu:1"}}
{"event":"ddp.init","phase":"end","rank":1,"span":4}
{"event":"process.end","rank":1,"failure":{"type":"RuntimeError","message":"Expected all tensors to be on the same device, but found at least two devices, gcu:1 and cpu!"},"exit_code":1,"uncaught":true}
"""

ACCELERATE_COMPARES_THEM_ITSELF = """ValueError: You can't train a model that has been loaded in 8-bit precision on a different device than the one you're training on. Make sure you loaded the model on the correct device using for example `device_map={'':torch.cuda.current_device()}` or `device_map={'':torch.xpu.current_device()}`"""
