"""Recorded logs of the rule folder-on-one-rank."""

OF_TWO_RANKS_ONE_COMES_SECOND = """
{"event":"process.start","rank":0,"world_size":2}
{"event":"process.start","rank":1,"world_size":2}
{"event":"process.end","rank":1,"exit_code":1,"uncaught":true,"failure":{"type":"FileExistsError","message":"[Errno 17] File exists: 'out'","frames":[{"file":"/train/t.py","line":12,"function":"main"},{"file":"/python/lib/python3.11/os.py","line":225,"function":"makedirs"}]}}
"""

ON_ALL_RANKS_FOLDER_IS_ONE = """
{"event":"process.start","rank":0,"world_size":2}
{"event":"process.start","rank":1,"world_size":2}
{"event":"process.end","rank":0,"exit_code":1,"uncaught":true,"failure":{"type":"FileExistsError","message":"[Errno 17] File exists: 'out'","frames":[{"file":"/python/lib/python3.11/os.py","line":225,"function":"makedirs"}]}}
{"event":"process.end","rank":1,"exit_code":1,"uncaught":true,"failure":{"type":"FileExistsError","message":"[Errno 17] File exists: 'out'","frames":[{"file":"/python/lib/python3.11/os.py","line":225,"function":"makedirs"}]}}
"""
