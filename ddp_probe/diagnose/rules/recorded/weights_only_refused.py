"""Recorded logs of the rule weights-only-refused."""

RESUMING_MEETS_MMENGINE_HISTORYBUFFER = """
{"event":"process.start","rank":0,"role":"solo"}
{"event":"checkpoint.load","phase":"begin","rank":0,"span":6,"site":{"file":"/train/11_weights_only_resume.py","line":15,"function":"main"},"file":{"path":"/job/work_dirs/epoch_1.pth"},"weights_only_effective":true}
{"event":"checkpoint.load","phase":"error","rank":0,"span":6,"file":{"path":"/job/work_dirs/epoch_1.pth","kind":"zip","complete":true},"failure":{"type":"_pickle.UnpicklingError","message":"Unsupported global: GLOBAL mmengine.logging.history_buffer.HistoryBuffer was not an allowed global by default"}}
{"event":"process.end","rank":0,"failure":{"type":"_pickle.UnpicklingError","message":"Unsupported global: GLOBAL mmengine.logging.history_buffer.HistoryBuffer was not an allowed global by default"},"exit_code":1,"uncaught":true}
"""

FILE_BEGINS_WITH_LETTER_OF_GIT_LFS = r"""
{"event":"checkpoint.load","phase":"begin","rank":0,"span":1,"file":{"path":"pretrained.pth","exists":true,"size":134,"kind":"git-lfs"}}
{"event":"checkpoint.load","phase":"error","rank":0,"span":1,"failure":{"type":"_pickle.UnpicklingError","message":"Weights only load failed. In PyTorch 2.6, we changed the default value of the `weights_only` argument. WeightsUnpickler error: \n\nUnsupported operand 118"}}
{"event":"process.end","rank":0,"exit_code":1,"uncaught":true,"failure":{"type":"_pickle.UnpicklingError","message":"Weights only load failed. In PyTorch 2.6, we changed the default value of the `weights_only` argument. WeightsUnpickler error: \n\nUnsupported operand 118"}}
"""

TEXT_OF_FAILURE_IS_ALL_THERE = """Traceback (most recent call last):
  File "/train/resume.py", line 15, in <module>
    runner.train()
  File "/env/site-packages/torch/serialization.py", line 1470, in load
    raise pickle.UnpicklingError(_get_wo_message(str(e))) from None
_pickle.UnpicklingError: Weights only load failed. This file can still be loaded, to do so you have two options, do those steps only if you trust the source of the checkpoint.
	WeightsUnpickler error: Unsupported global: GLOBAL numpy.core.multiarray._reconstruct was not an allowed global by default. Please use `torch.serialization.add_safe_globals([_reconstruct])` or the `torch.serialization.safe_globals([_reconstruct])` context manager to allowlist this global if you trust this class/function.
"""
