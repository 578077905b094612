"""Recorded logs of the rule launcher-variables-missing."""

PLAIN_PYTHON_CALLS_INIT_PROCESS_GROUP = """
{"event":"process.start","rank":0,"role":"solo","launcher":"none","argv":["python","/train/10_rank_missing.py"]}
{"event":"dist.init_process_group","phase":"begin","rank":0,"span":1,"site":{"file":"/train/10_rank_missing.py","line":14,"function":"main"},"backend":"gloo","init_method":"env://"}
{"event":"dist.init_process_group","phase":"error","rank":0,"span":1,"failure":{"type":"ValueError","message":"Error initializing torch.distributed using env:// rendezvous: environment variable RANK expected, but not set"}}
{"event":"process.end","rank":0,"uncaught":true,"exit_code":1,"failure":{"type":"ValueError","message":"Error initializing torch.distributed using env:// rendezvous: environment variable RANK expected, but not set"}}
"""

MMENGINE_INIT_DIST_READS_RANK = """
{"event":"process.start","rank":0,"role":"solo","launcher":"none","argv":["python","/train/10_runner_under_plain_python.py"]}
{"event":"mmengine.init_dist","phase":"begin","rank":0,"span":1,"site":{"file":"/train/10_runner_under_plain_python.py","line":13,"function":"main"},"launcher":"pytorch"}
{"event":"mmengine.init_dist","phase":"error","rank":0,"span":1,"failure":{"type":"KeyError","message":"'RANK'"}}
{"event":"process.end","rank":0,"uncaught":true,"exit_code":1,"failure":{"type":"KeyError","message":"'RANK'"}}
"""

MMENGINE_INIT_DIST_PRINTS_TRACEBACK = """Traceback (most recent call last):
  File "/env/site-packages/mmengine/dist/utils.py", line 103, in _init_dist_pytorch
    rank = int(os.environ['RANK'])
  File "/python/lib/python3.8/os.py", line 675, in __getitem__
    raise KeyError(key) from None
KeyError: 'RANK'
"""
