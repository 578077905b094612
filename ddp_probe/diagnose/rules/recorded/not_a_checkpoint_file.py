"""Recorded logs of the rule not-a-checkpoint-file."""

GIT_LFS_POINTER_LIES_WHERE_WEIGHTS_SHOULD = """
{"event":"process.start","rank":0,"role":"solo"}
{"event":"checkpoint.load","phase":"begin","rank":0,"span":1,"site":{"file":"/train/06_git_lfs_pointer.py","line":22,"function":"main"},"file":{"path":"pretrained.pth","exists":true,"size":134},"map_location":"cpu"}
{"event":"checkpoint.load","phase":"error","rank":0,"span":1,"file":{"path":"pretrained.pth","kind":"git-lfs"},"failure":{"type":"_pickle.UnpicklingError","message":"Weights only load failed"}}
{"event":"process.end","rank":0,"failure":{"type":"_pickle.UnpicklingError","message":"Weights only load failed"},"exit_code":1,"uncaught":true}
"""

FILE_IS_CHECKPOINT = """
{"event":"checkpoint.load","phase":"begin","rank":0,"span":1,"file":{"path":"epoch_1.pth","exists":true,"size":5213,"kind":"zip","complete":true}}
{"event":"checkpoint.load","phase":"error","rank":0,"span":1,"failure":{"type":"_pickle.UnpicklingError","message":"Weights only load failed. WeightsUnpickler error: Unsupported global: GLOBAL numpy.core.multiarray.scalar was not an allowed global by default."}}
{"event":"process.end","rank":0,"exit_code":1,"uncaught":true,"failure":{"type":"_pickle.UnpicklingError","message":"Weights only load failed. WeightsUnpickler error: Unsupported global: GLOBAL numpy.core.multiarray.scalar was not an allowed global by default."}}
"""
