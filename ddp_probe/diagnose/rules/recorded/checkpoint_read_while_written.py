"""Recorded logs of the rule checkpoint-read-while-written."""

RANK_1_LOADS_BETWEEN_BEGIN_AND_END = """
{"event":"checkpoint.save","phase":"begin","rank":0,"span":2,"site":{"file":"/train/06_load_while_written.py","line":27,"function":"main"},"path":"best_stg1.pth","existed":false}
{"event":"checkpoint.load","phase":"begin","rank":1,"span":2,"site":{"file":"/train/06_load_while_written.py","line":32,"function":"main"},"file":{"path":"best_stg1.pth","exists":true},"map_location":"cpu"}
{"event":"checkpoint.load","phase":"error","rank":1,"span":2,"file_after":{"path":"best_stg1.pth","kind":"zip","complete":false},"failure":{"type":"RuntimeError","message":"PytorchStreamReader failed reading zip archive: failed finding central directory"}}
{"event":"process.end","rank":1,"failure":{"type":"RuntimeError","message":"PytorchStreamReader failed reading zip archive: failed finding central directory"},"exit_code":1,"uncaught":true}
{"event":"checkpoint.save","phase":"end","rank":0,"span":2,"in_place":true}
{"event":"process.end","rank":0,"exit_code":1,"uncaught":true,"failure":{"type":"RuntimeError","message":"Connection closed by peer"}}
"""

FILE_GROWS_DURING_LOAD = """
{"event":"checkpoint.save","phase":"begin","rank":0,"span":1,"site":{"file":"/train/t.py","line":20},"path":"<stream>"}
{"event":"checkpoint.save","phase":"end","rank":0,"span":1}
{"event":"checkpoint.load","phase":"begin","rank":1,"span":1,"site":{"file":"/train/t.py","line":31},"file":{"path":"epoch_1.pth","exists":true,"size":2097152,"kind":"zip","complete":false}}
{"event":"checkpoint.load","phase":"error","rank":1,"span":1,"file_after":{"path":"epoch_1.pth","exists":true,"size":8388608,"kind":"zip","complete":false},"failure":{"type":"RuntimeError","message":"PytorchStreamReader failed reading zip archive: failed finding central directory"}}
{"event":"process.end","rank":1,"exit_code":1,"uncaught":true,"failure":{"type":"RuntimeError","message":"PytorchStreamReader failed reading zip archive: failed finding central directory"}}
"""

LOAD_IS_TRIED_AGAIN_UNTIL_SAVE = """
{"event":"process.start","rank":0,"world_size":2}
{"event":"process.start","rank":1,"world_size":2}
{"event":"checkpoint.save","phase":"begin","rank":0,"span":2,"site":{"file":"/train/t.py","line":27},"path":"last.pth"}
{"event":"checkpoint.load","phase":"begin","rank":1,"span":2,"site":{"file":"/train/t.py","line":32},"file":{"path":"last.pth","exists":true,"kind":"zip","complete":false}}
{"event":"checkpoint.load","phase":"error","rank":1,"span":2,"failure":{"type":"RuntimeError","message":"PytorchStreamReader failed reading zip archive: failed finding central directory"}}
{"event":"checkpoint.save","phase":"end","rank":0,"span":2,"in_place":true}
{"event":"checkpoint.load","phase":"begin","rank":1,"span":3,"site":{"file":"/train/t.py","line":32},"file":{"path":"last.pth","exists":true,"kind":"zip","complete":true}}
{"event":"checkpoint.load","phase":"end","rank":1,"span":3}
{"event":"process.end","rank":0,"exit_code":0}
{"event":"process.end","rank":1,"exit_code":0}
"""

SAVE_HAS_ENDED_BEFORE_LOAD_BEGINS = """
{"event":"checkpoint.save","phase":"begin","rank":0,"span":1,"path":"last.pth"}
{"event":"checkpoint.save","phase":"end","rank":0,"span":1,"in_place":true,"size":802303}
{"event":"checkpoint.load","phase":"begin","rank":1,"span":1,"file":{"path":"last.pth","exists":true,"size":481381,"kind":"zip","complete":false}}
{"event":"checkpoint.load","phase":"error","rank":1,"span":1,"failure":{"type":"RuntimeError","message":"PytorchStreamReader failed reading zip archive: failed finding central directory"}}
{"event":"process.end","rank":1,"exit_code":1,"uncaught":true,"failure":{"type":"RuntimeError","message":"PytorchStreamReader failed reading zip archive: failed finding central directory"}}
"""
