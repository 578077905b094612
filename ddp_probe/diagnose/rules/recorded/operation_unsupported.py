"""Recorded logs of the rule operation-unsupported."""

ONECCL_HAS_NO_REDUCE_SCATTER = """{"event":"process.end","rank":0,"exit_code":1,"uncaught":true,"failure":{"type":"RuntimeError","message":"ProcessGroupCCL does not support reduce_scatter","frames":[{"file":"/train/t.py","line":31,"function":"main"}]}}"""

NCCL_GETS_SHORTS = """{"event":"process.end","rank":1,"failure":{"type":"RuntimeError","message":"Input tensor data type is not supported for NCCL process group: Short","frames":[{"file":"/train/t.py","line":31,"function":"main"}]},"exit_code":1,"uncaught":true}"""

ASCEND_HCCL_GETS_BOOLS = """[rank3]: RuntimeError: Unsupported data type for HCCL process group
[ERROR] 2026-11-20-11:59:30 (PID:7277, Device:3, RankID:3) ERR02007 DIST feature not supported
"""

HCCL_WARNS_OF_GATHER_THAT_IT_MAKES = """/env/site-packages/torch_npu/distributed/distributed_c10d.py:114: UserWarning: HCCL doesn't support gather at the moment. Implemented with allgather instead.
"""
