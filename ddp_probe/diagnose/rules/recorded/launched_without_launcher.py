"""Recorded logs of the rule launched-without-launcher."""

TORCHRUN_STARTS_TWO_RANKS = """
{"event":"process.start","rank":0,"local_rank":0,"world_size":2,"role":"rank","launcher":"torchrun"}
{"event":"mmengine.wrap_model","phase":"begin","rank":0,"local_rank":0,"span":1,"site":{"file":"/train/05_runner_launcher_none.py","line":16,"function":"main"},"launcher":"none","distributed":false}
{"event":"process.start","rank":1,"local_rank":1,"world_size":2,"role":"rank","launcher":"torchrun"}
{"event":"mmengine.wrap_model","phase":"begin","rank":1,"local_rank":1,"span":1,"site":{"file":"/train/05_runner_launcher_none.py","line":16,"function":"main"},"launcher":"none","distributed":false}
"""

ONE_PROCESS_TRAINS_ON_ONE_CARD = """
{"event":"process.start","rank":0,"role":"solo","launcher":"none","argv":["python","/train/05_plain_python_eight_cards.py"]}
{"event":"module.move","phase":"begin","rank":0,"span":2,"site":{"file":"/train/05_plain_python_eight_cards.py","line":22,"function":"main"},"method":"to","destination":"gcu:0"}
{"event":"module.move","phase":"end","rank":0,"span":2,"devices":{"gcu:0":4}}
{"event":"checkpoint.save","phase":"begin","rank":0,"span":3,"path":"last.pth"}
{"event":"checkpoint.save","phase":"end","rank":0,"span":3}
{"event":"process.end","rank":0,"process_group":false,"accelerators":[{"name":"gcu","device_type":"gcu","initialised":true,"current":0,"count":8}]}
"""

ACCELERATE_IS_ASKED_FOR_TWO_PROCESSES = """
{"event":"process.start","rank":0,"role":"solo","launcher":"none","argv":["python","train.py"],"parent":["/env/bin/python","/env/bin/accelerate","launch","--num_processes","2","train.py"]}
{"event":"process.end","rank":0,"exit_code":0}
"""

TRAINING_SCRIPT_ASKS_FOR_ITS_LAUNCHER = """Traceback (most recent call last):
  File "/train/t.py", line 7, in <module>
    setup()
RuntimeError: Expected to be launched with torchrun, but LOCAL_WORLD_SIZE is 1
"""
