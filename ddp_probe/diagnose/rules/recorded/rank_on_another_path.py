"""Recorded logs of the rule rank-on-another-path."""

TORCH_COMPARES_COLLECTIVES = """
{"event":"process.end","rank":0,"exit_code":1,"uncaught":true,"failure":{"type":"RuntimeError","message":"Detected mismatch between collectives on ranks. Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=7, OpType=ALLREDUCE, TensorShape=[1], TensorDtypes=Float, TensorDeviceTypes=TensorOptions(dtype=float (default), device=cpu, layout=Strided (default), requires_grad=false (default), pinned_memory=false (default), memory_format=(nullopt))), but Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=7, OpType=BROADCAST, TensorShape=[1], TensorDtypes=Float).","frames":[{"file":"/train/t.py","line":22,"function":"main"}]}}
"""

RANK_1_GIVES_UP_AT_BARRIER = """
{"event":"dist.init_process_group","phase":"begin","rank":0,"span":1,"site":{"file":"/train/08_long_validation_on_rank0.py","line":28,"function":"main"}}
{"event":"dist.init_process_group","phase":"end","rank":0,"span":1}
{"event":"dist.init_process_group","phase":"begin","rank":1,"span":1,"site":{"file":"/train/08_long_validation_on_rank0.py","line":28,"function":"main"}}
{"event":"dist.init_process_group","phase":"end","rank":1,"span":1}
{"event":"process.end","rank":1,"failure":{"type":"RuntimeError","message":"Timed out waiting 8000ms for recv operation to complete","frames":[{"file":"/train/08_long_validation_on_rank0.py","line":41,"function":"<module>"},{"file":"/train/08_long_validation_on_rank0.py","line":36,"function":"main"},{"file":"/env/site-packages/torch/distributed/c10d_logger.py","line":83,"function":"_exception_logger.<locals>.wrapper"},{"file":"/env/site-packages/torch/distributed/distributed_c10d.py","line":5356,"function":"barrier"}]},"exit_code":1,"uncaught":true}
{"event":"launcher.start","launcher":"torchrun"}
{"event":"launcher.child","child_rank":1,"child_local_rank":1,"exit_code":1}
{"event":"launcher.child","child_rank":0,"child_local_rank":0,"exit_code":-15,"signal":"SIGTERM"}
"""

GLOO_ABORTS_RANK_0_OVER_LENGTH = """
{"event":"dist.init_process_group","phase":"begin","rank":0,"span":1,"site":{"file":"/train/08_different_sizes.py","line":16,"function":"main"}}
{"event":"dist.init_process_group","phase":"end","rank":0,"span":1}
{"event":"dist.init_process_group","phase":"begin","rank":1,"span":1,"site":{"file":"/train/08_different_sizes.py","line":16,"function":"main"}}
{"event":"dist.init_process_group","phase":"end","rank":1,"span":1}
{"event":"process.end","rank":1,"failure":{"type":"RuntimeError","message":"Connection reset by peer","frames":[{"file":"/train/08_different_sizes.py","line":27,"function":"<module>"},{"file":"/train/08_different_sizes.py","line":21,"function":"main"},{"file":"/env/site-packages/torch/distributed/c10d_logger.py","line":83,"function":"_exception_logger.<locals>.wrapper"},{"file":"/env/site-packages/torch/distributed/distributed_c10d.py","line":3252,"function":"all_reduce"}]},"exit_code":1,"uncaught":true}
{"event":"launcher.start","launcher":"torchrun"}
{"event":"launcher.child","child_rank":0,"child_local_rank":0,"exit_code":-6,"signal":"SIGABRT"}
"""

TEXT_OF_FAILURE_IS_ALL_THERE = """RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=7, OpType=ALLREDUCE, TensorShape=[1], TensorDtypes=Float, TensorDeviceTypes=TensorOptions(dtype=float (default), device=cpu, layout=Strided (default), requires_grad=false (default), pinned_memory=false (default), memory_format=(nullopt))), but Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=7, OpType=BROADCAST, TensorShape=[1], TensorDtypes=Float)."""

ONE_BROADCAST_HAS_TWO_SIZES = """RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=7, OpType=BROADCAST, TensorShape=[8016], TensorDtypes=Float), but Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=7, OpType=BROADCAST, TensorShape=[8000], TensorDtypes=Float)."""

JOB_ITSELF_BRINGS_TWO_SIZES_TO_BROADCAST = """
{"event":"process.end","rank":0,"exit_code":1,"uncaught":true,"failure":{"type":"RuntimeError","message":"Detected mismatch between collectives on ranks. Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=7, OpType=BROADCAST, TensorShape=[8016], TensorDtypes=Float), but Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=7, OpType=BROADCAST, TensorShape=[8000], TensorDtypes=Float).","frames":[{"file":"/train/t.py","line":22,"function":"main"},{"file":"/env/site-packages/torch/distributed/distributed_c10d.py","line":2800,"function":"broadcast"}]}}
"""

WATCHDOGS_OF_RANKS_TELL_OF_TWO_KINDS = """[rank1]:[E1120 10:31:07.200000000 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=88, OpType=BROADCAST, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for 600042 milliseconds before timing out.
[rank0]:[E1120 10:31:07.300000000 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=90, OpType=_ALLGATHER_BASE, NumelIn=513, NumelOut=1026, Timeout(ms)=600000) ran for 600036 milliseconds before timing out.
"""

WATCHDOGS_OF_TWO_RANKS_NAME_DIFFERENT_OPERATIONS = """[rank2]:[E1120 10:31:07.100000000 ProcessGroupNCCL.cpp:616] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=88, OpType=ALLGATHER, NumelIn=1, NumelOut=4, Timeout(ms)=600000) ran for 600012 milliseconds before timing out.
[rank1]:[E1120 10:31:07.200000000 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=88, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for 600048 milliseconds before timing out.
"""

WATCHDOGS_OF_ALL_RANKS_NAME_ONE_OPERATION = """[rank2]:[E1120 10:31:07.100000000 ProcessGroupNCCL.cpp:616] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=88, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for 600012 milliseconds before timing out.
[rank1]:[E1120 10:31:07.200000000 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=88, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for 600048 milliseconds before timing out.
"""
