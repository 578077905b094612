"""Recorded logs of the rule rank-never-started."""

RANK_0_WAITS_FOR_RANK_1 = """
{"event":"process.start","rank":0,"world_size":2,"role":"rank","launcher":"environment"}
{"event":"dist.init_process_group","phase":"begin","rank":0,"world_size":2,"span":1,"site":{"file":"/train/10_rank_never_started.py","line":14,"function":"main"},"timeout":8.0,"master_addr":"127.0.0.1"}
{"event":"dist.init_process_group","phase":"error","rank":0,"world_size":2,"span":1,"failure":{"message":"waiting for clients. 1/2 clients joined."}}
{"event":"process.end","rank":0,"world_size":2,"uncaught":true,"exit_code":1,"failure":{"message":"waiting for clients. 1/2 clients joined."}}
"""

RANK_1_CANNOT_REACH_MASTER = """
{"event":"process.start","rank":1,"world_size":2,"role":"rank","launcher":"environment"}
{"event":"dist.init_process_group","phase":"begin","rank":1,"world_size":2,"span":1,"master_addr":"127.0.0.1"}
{"event":"dist.init_process_group","phase":"error","rank":1,"world_size":2,"span":1,"failure":{"message":"The client socket has timed out after 8000ms while trying to connect to (127.0.0.1,"}}
{"event":"process.end","rank":1,"world_size":2,"uncaught":true,"exit_code":1,"failure":{"message":"The client socket has timed out after 8000ms while trying to connect to (127.0.0.1,"}}
"""

STORE_COUNTS_ITS_CLIENTS = """Traceback (most recent call last):
  File "/train/t.py", line 14, in main
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:29500", rank=0, world_size=4)
  File "/env/site-packages/torch/distributed/rendezvous.py", line 199, in _create_c10d_store
    return TCPStore(
torch.distributed.DistStoreError: Timed out after 301 seconds waiting for clients. 3/4 clients joined.
"""

MORE_WORKERS_THAN_RANKS_WERE_COUNTED = """RuntimeError: Timed out initializing process group in store based barrier on rank: 0, for key: store_based_barrier_key:1 (world_size=2, worker_count=4, timeout=0:30:00)
"""
