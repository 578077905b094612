"""Recorded logs of the rule wrong-network-interface."""

GLOO_IS_TOLD_INTERFACE_THAT_THIS_HOST = """
{"event":"process.start","rank":0,"local_rank":0,"world_size":2,"environment":{"GLOO_SOCKET_IFNAME":"ib9"}}
{"event":"dist.init_process_group","phase":"begin","rank":0,"span":1,"site":{"file":"/train/10_wrong_interface.py","line":14,"function":"main"},"backend":"gloo"}
{"event":"dist.init_process_group","phase":"error","rank":0,"span":1,"failure":{"type":"RuntimeError","message":"ifa != nullptr. Unable to find address for: ib9"}}
{"event":"process.end","rank":0,"uncaught":true,"exit_code":1,"failure":{"type":"RuntimeError","message":"ifa != nullptr. Unable to find address for: ib9"}}
"""

INTERFACE_IS_THERE = """
{"event":"process.start","rank":1,"world_size":2,"environment":{"GLOO_SOCKET_IFNAME":"eth0"}}
{"event":"dist.init_process_group","phase":"begin","rank":1,"span":1,"backend":"gloo"}
{"event":"dist.init_process_group","phase":"error","rank":1,"span":1,"failure":{"type":"TimeoutError","message":"The client socket has timed out after 8s while trying to connect to (10.1.2.3, 29500)."}}
"""

AFTER_RESTART_GLOO_TRIES_ADDRESS_OF_RANK = """
{"event":"process.start","rank":0,"local_rank":0,"world_size":2,"environment":{"TORCHELASTIC_RESTART_COUNT":"1"}}
{"event":"process.start","rank":1,"local_rank":1,"world_size":2,"environment":{"TORCHELASTIC_RESTART_COUNT":"1"}}
{"event":"dist.init_process_group","phase":"begin","rank":0,"span":1,"site":{"file":"/train/t.py","line":14,"function":"main"},"backend":"gloo"}
{"event":"dist.init_process_group","phase":"error","rank":0,"span":1,"failure":{"type":"RuntimeError","message":"Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:144] no error"}}
{"event":"process.end","rank":0,"uncaught":true,"exit_code":1,"failure":{"type":"RuntimeError","message":"Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:144] no error"}}
{"event":"process.end","rank":1,"uncaught":true,"exit_code":1,"failure":{"type":"RuntimeError","message":"Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:144] no error"}}
"""

TWO_HOSTS = """
{"event":"process.start","rank":0,"local_rank":0,"world_size":2,"host":"node1"}
{"event":"process.start","rank":1,"local_rank":0,"world_size":2,"host":"node2"}
{"event":"dist.init_process_group","phase":"begin","rank":0,"span":1,"backend":"gloo"}
{"event":"dist.init_process_group","phase":"error","rank":0,"span":1,"failure":{"type":"RuntimeError","message":"Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:144] no error"}}
{"event":"process.end","rank":0,"uncaught":true,"exit_code":1,"failure":{"type":"RuntimeError","message":"Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:144] no error"}}
"""

GLOO_IS_GIVEN_NCCL_LIST_OF_WHAT = """[rank1]: RuntimeError: [enforce fail at ../third_party/gloo/gloo/transport/tcp/device.cc:84] ifa != nullptr. Unable to find address for: ^lo
"""

NCCL_FINDS_NO_INTERFACE_OF_NAME = """torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1207, internal error, NCCL version 2.14.3
ncclInternalError: Internal check failed.
Last error:
Bootstrap : no socket interface found
"""

ALL_RANKS_TIME_OUT_IN_THEIR_FIRST = """[E ProcessGroupNCCL.cpp:474] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=120000) ran for 120621 milliseconds before timing out.
[E ProcessGroupNCCL.cpp:474] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=120000) ran for 120633 milliseconds before timing out.
"""

RANK_0_DOES_NOT_SAY_THAT_IT = """[E ProcessGroupNCCL.cpp:474] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=120000) ran for 120621 milliseconds before timing out.
[E ProcessGroupNCCL.cpp:474] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=120000) ran for 120633 milliseconds before timing out.
"""
