"""Recorded logs of the rule rank0-long-work."""

TIMEOUT_FOLLOWS_LINES_OF_EVALUATION = """10/26 11:27:48 - mmengine - INFO - Epoch(train) [1][7330/7330]  lr: 2.0000e-02  loss: 0.8121
10/26 11:27:49 - mmengine - INFO - Saving checkpoint at 1 epochs
10/26 11:58:01 - mmengine - INFO - Evaluating segm...
Running per image evaluation...
[E ProcessGroupNCCL.cpp:828] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=311, OpType=BROADCAST, Timeout(ms)=1800000) ran for 1800312 milliseconds before timing out.
"""

BARRIER_AFTER_EXPORT_IS_OUT_OF_STEP = """{"event":"process.end","rank":3,"exit_code":1,"uncaught":true,"failure":{"type":"RuntimeError","message":"Desync detected for barrier export 5000 exit (1 != 8)"}}"""

TIMEOUT_IN_MIDDLE_OF_TRAINING_HAS_ANOTHER = """10/26 11:20:49 - mmengine - INFO - Epoch(val)  [1][10/10]  bbox_mAP: 0.31
10/26 11:27:48 - mmengine - INFO - Epoch(train) [2][50/7330]  lr: 2.0000e-02  loss: 0.8121
[E ProcessGroupNCCL.cpp:828] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=311, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1800312 milliseconds before timing out.
"""

RANK_0_WAITS_IN_BROADCAST_OF_OBJECT = """[E ProcessGroupNCCL.cpp:828] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=311, OpType=BROADCAST, Timeout(ms)=1800000) ran for 1800312 milliseconds before timing out.
[E ProcessGroupNCCL.cpp:828] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=311, OpType=BROADCAST, Timeout(ms)=1800000) ran for 1800344 milliseconds before timing out.
  File "/train/t.py", line 31, in main
    dist.broadcast_object_list(answer, 0)
"""
