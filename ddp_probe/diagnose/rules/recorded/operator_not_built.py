"""Recorded logs of the rule operator-not-built."""

MMCV_WAS_BUILT_WITHOUT_CARD = """
{"event":"process.start","rank":1,"world_size":2,"launcher":"torchrun"}
{"event":"process.end","rank":1,"uncaught":true,"exit_code":1,"failure":{"type":"RuntimeError","message":"deform_conv_forward_impl: implementation for device cuda:1 not found."}}
"""

CARD_IS_NEWER_THAN_BUILD = """Traceback (most recent call last):
  File "/train/t.py", line 9, in main
    loss = model(inputs).sum()
RuntimeError: CUDA error: no kernel image is available for execution on the device
CUDA kernel errors might be asynchronously reported at some other API call
"""
