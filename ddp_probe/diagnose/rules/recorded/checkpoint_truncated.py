"""Recorded logs of the rule checkpoint-truncated."""

ZIP_HAS_LOST_ITS_END_BEFORE_BOTH = """
{"event":"checkpoint.load","phase":"begin","rank":0,"span":3,"site":{"file":"/train/06_truncated_checkpoint.py","line":27,"function":"main"},"file":{"path":"last.pth","exists":true,"size":481381},"map_location":"cpu"}
{"event":"checkpoint.load","phase":"error","rank":0,"span":3,"file":{"path":"last.pth","kind":"zip","complete":false},"failure":{"type":"RuntimeError","message":"PytorchStreamReader failed reading zip archive: failed finding central directory"}}
{"event":"process.end","rank":0,"failure":{"type":"RuntimeError","message":"PytorchStreamReader failed reading zip archive: failed finding central directory"},"exit_code":1,"uncaught":true}
{"event":"checkpoint.load","phase":"begin","rank":1,"span":2,"site":{"file":"/train/06_truncated_checkpoint.py","line":27,"function":"main"},"file":{"path":"last.pth","exists":true,"size":481381},"map_location":"cpu"}
{"event":"checkpoint.load","phase":"error","rank":1,"span":2,"file":{"path":"last.pth","kind":"zip","complete":false},"failure":{"type":"RuntimeError","message":"PytorchStreamReader failed reading zip archive: failed finding central directory"}}
{"event":"process.end","rank":1,"failure":{"type":"RuntimeError","message":"PytorchStreamReader failed reading zip archive: failed finding central directory"},"exit_code":1,"uncaught":true}
"""

FILE_IS_EMPTY = """
{"event":"process.start","rank":0,"role":"solo"}
{"event":"checkpoint.load","phase":"begin","rank":0,"span":1,"site":{"file":"/train/06_empty_checkpoint.py","line":17,"function":"main"},"file":{"path":"latest.pth","exists":true,"size":0,"kind":"empty"}}
{"event":"checkpoint.load","phase":"error","rank":0,"span":1,"failure":{"type":"EOFError"}}
{"event":"process.end","rank":0,"failure":{"type":"EOFError"},"exit_code":1,"uncaught":true}
"""

JOB_SURVIVES_LOAD_THAT_FAILS = """
{"event":"checkpoint.load","phase":"begin","rank":0,"span":1,"file":{"path":"last.pth","exists":true,"size":481381,"kind":"zip","complete":false}}
{"event":"checkpoint.load","phase":"error","rank":0,"span":1,"failure":{"type":"RuntimeError","message":"PytorchStreamReader failed reading zip archive: failed finding central directory"}}
{"event":"process.end","rank":0}
"""
