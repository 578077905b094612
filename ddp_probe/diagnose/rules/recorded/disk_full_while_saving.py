"""Recorded logs of the rule disk-full-while-saving."""

RANK_0_CANNOT_WRITE_PAST_ITS_QUOTA = """
{"event":"checkpoint.save","phase":"begin","rank":0,"span":2,"site":{"file":"/train/06_disk_quota_while_saving.py","line":22,"function":"main"},"path":"epoch_1.pth","existed":false}
{"event":"checkpoint.save","phase":"error","rank":0,"span":2,"in_place":true,"size":200000,"failure":{"type":"RuntimeError","message":"[enforce fail at inline_container.cc:672] . unexpected pos 1088 vs 982"}}
{"event":"process.end","rank":0,"failure":{"type":"RuntimeError","message":"[enforce fail at inline_container.cc:672] . unexpected pos 1088 vs 982"},"exit_code":1,"uncaught":true}
{"event":"process.end","rank":1,"failure":{"type":"RuntimeError","message":"Connection closed by peer"},"exit_code":1,"uncaught":true}
"""

MMENGINE_SAVES_INTO_MEMORY_FIRST = """
{"event":"checkpoint.save","phase":"begin","rank":0,"span":2,"site":{"file":"/train/06_disk_full_while_saving.py","line":22,"function":"main"},"path":"<stream>"}
{"event":"checkpoint.save","phase":"end","rank":0,"span":2}
{"event":"process.end","rank":0,"failure":{"type":"OSError","message":"[Errno 28] No space left on device","frames":[{"file":"/train/06_disk_full_while_saving.py","line":28,"function":"<module>"},{"file":"/train/06_disk_full_while_saving.py","line":22,"function":"main"},{"file":"/env/site-packages/mmengine/runner/checkpoint.py","line":793,"function":"save_checkpoint"},{"file":"/env/site-packages/mmengine/fileio/backends/local_backend.py","line":77,"function":"LocalBackend.put"}]},"exit_code":1,"uncaught":true}
"""

SHARED_MEMORY_IS_FULL = """
{"event":"process.end","rank":0,"exit_code":1,"uncaught":true,"failure":{"type":"RuntimeError","message":"unable to write to file </torch_2041_3>: [Errno 28] No space left on device"}}
"""
