"""Recorded logs of the rule first-to-fail."""

RANK_1_MISSES_FILE = """
{"event":"ddp.init","phase":"begin","rank":0,"span":2,"site":{"file":"/train/12_data_error_on_one_rank.py","line":20,"function":"main"}}
{"event":"ddp.init","phase":"end","rank":0,"span":2}
{"event":"process.end","rank":1,"failure":{"type":"FileNotFoundError","message":"[Errno 2] No such file or directory: 'data/train/000042.png'","frames":[{"file":"/train/12_data_error_on_one_rank.py","line":30,"function":"<module>"},{"file":"/train/12_data_error_on_one_rank.py","line":25,"function":"main"},{"file":"/python/lib/python3.11/pathlib.py","line":1050,"function":"Path.read_bytes"},{"file":"/python/lib/python3.11/pathlib.py","line":1044,"function":"Path.open"}]},"exit_code":1,"uncaught":true}
{"event":"process.end","rank":0,"failure":{"type":"RuntimeError","message":"Connection closed by peer","frames":[{"file":"/train/12_data_error_on_one_rank.py","line":30,"function":"<module>"},{"file":"/train/12_data_error_on_one_rank.py","line":23,"function":"main"},{"file":"/train/pieces.py","line":35,"function":"train_step"},{"file":"/env/site-packages/torch/_tensor.py","line":623,"function":"Tensor.backward"},{"file":"/env/site-packages/torch/autograd/__init__.py","line":395,"function":"backward"},{"file":"/env/site-packages/torch/autograd/graph.py","line":979,"function":"_engine_run_backward"}]},"exit_code":1,"uncaught":true}
"""

RANK_ABORTS_ITS_COMMUNICATOR_OVER_TIMEOUT = """RuntimeError: NCCL communicator was aborted on rank 5.  Original reason for failure was: [Rank 5] Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1800849 milliseconds before timing out.
"""
