"""Recorded logs of the rule init-process-group-twice."""

LIBRARY_HAS_MADE_GROUP_BEFORE_PROGRAM_DOES = """
{"event":"dist.init_process_group","phase":"begin","rank":0,"span":1,"site":{"file":"/train/10_init_twice.py","line":15,"function":"setup_by_the_library"},"already_initialised":false}
{"event":"dist.init_process_group","phase":"end","rank":0,"span":1}
{"event":"dist.init_process_group","phase":"begin","rank":0,"span":2,"site":{"file":"/train/10_init_twice.py","line":21,"function":"main"},"already_initialised":true}
{"event":"dist.init_process_group","phase":"error","rank":0,"span":2,"failure":{"message":"trying to initialize the default process group twice!"}}
{"event":"process.end","rank":0,"uncaught":true,"exit_code":1,"failure":{"message":"trying to initialize the default process group twice!"}}
"""

TORCH_RAISES = """Traceback (most recent call last):
  File "/train/t.py", line 21, in main
    dist.init_process_group("gloo")
  File "/env/site-packages/torch/distributed/distributed_c10d.py", line 563, in init_process_group
    raise RuntimeError("trying to initialize the default process group "
RuntimeError: trying to initialize the default process group twice!
"""
