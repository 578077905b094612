"""Recorded logs of the rule device-woken-too-early."""

FORKED_WORKER_USES_CARD_THAT_ITS_PARENT = """
{"event":"process.end","rank":0,"failure":{"type":"RuntimeError","message":"Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method","frames":[{"file":"/train/t.py","line":31,"function":"worker"}]},"exit_code":1,"uncaught":true}
"""

WORKER_DIES_OF_ITS_MEMORY = """
{"event":"process.end","rank":0,"failure":{"type":"RuntimeError","message":"DataLoader worker (pid 4711) is killed by signal: Bus error.","frames":[{"file":"/train/t.py","line":31,"function":"main"}]},"exit_code":1,"uncaught":true}
"""

LIGHTNING_LOOKS_BEFORE_IT_FORKS = """RuntimeError: Lightning can't create new processes if CUDA is already initialized. Did you manually call `torch.cuda.*` functions, have moved the model to the device, or allocated memory on the GPU any other way? Please remove any such calls, or change the selected strategy.
"""
