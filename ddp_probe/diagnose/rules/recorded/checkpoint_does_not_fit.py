"""Recorded logs of the rule checkpoint-does-not-fit."""

MODEL_HAS_GROWN_SINCE_CHECKPOINT_WAS_SAVED = r"""
{"event":"process.start","rank":0,"role":"solo"}
{"event":"checkpoint.load","phase":"begin","rank":0,"span":2,"site":{"file":"/train/11_size_mismatch.py","line":15,"function":"main"},"file":{"path":"last.pth"}}
{"event":"checkpoint.load","phase":"end","rank":0,"span":2,"file":{"path":"last.pth","kind":"zip"}}
{"event":"process.end","rank":0,"failure":{"type":"RuntimeError","message":"Error(s) in loading state_dict for TinyModel:\n\tsize mismatch for backbone.0.weight: copying a param with shape torch.Size([16, 8]) from checkpoint, the shape in current model is torch.Size([32, 8]).\n\tsize mismatch for backbone.0.bias: copying a param with shape torch.Size([16]) from checkpoint, the shape in current model is torch.Size([32]).\n\tsize mismatch for head.weight: copying a param with shape torch.Size([1, 16]) from checkpoint, the shape in current model is torch.Size([1, 32]).","frames":[{"file":"/train/11_size_mismatch.py","line":19,"function":"<module>"},{"file":"/train/11_size_mismatch.py","line":15,"function":"main"},{"file":"/env/site-packages/torch/nn/modules/module.py","line":2638,"function":"Module.load_state_dict"}]},"exit_code":1,"uncaught":true}
"""

NAMES_DIFFER_BY_PREFIX_OF_DDP_ALONE = r"""
{"event":"process.end","rank":0,"exit_code":1,"uncaught":true,"failure":{"type":"RuntimeError","message":"Error(s) in loading state_dict for TinyModel:\n\tMissing key(s) in state_dict: \"head.weight\". \n\tUnexpected key(s) in state_dict: \"module.head.weight\". "}}
"""

WARNING_AT_START = """size mismatch for head.weight: copying a param with shape torch.Size([80, 256]) from checkpoint, the shape in current model is torch.Size([4, 256]).
2026-11-20 10:00:02,341 - mmdet - INFO - Start running, host: user@node1, work_dir: /train/work
2026-11-20 10:05:02,341 - mmdet - INFO - Epoch [1][50/500] lr: 1.0e-03, loss: 1.2
IndexError: list index out of range
"""
