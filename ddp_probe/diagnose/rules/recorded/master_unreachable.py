"""Recorded logs of the rule master-unreachable."""

NOBODY_LISTENS_AT_MASTER_PORT = """
{"event":"process.start","rank":1,"world_size":2,"role":"rank","launcher":"environment"}
{"event":"dist.init_process_group","phase":"begin","rank":1,"world_size":2,"span":1,"site":{"file":"/train/10_master_addr_unreachable.py","line":14,"function":"main"},"timeout":8.0,"master_addr":"127.0.0.1"}
{"event":"dist.init_process_group","phase":"error","rank":1,"world_size":2,"span":1,"failure":{"message":"The client socket has timed out after 8000ms while trying to connect to (127.0.0.1,"}}
{"event":"process.end","rank":1,"world_size":2,"uncaught":true,"exit_code":1,"failure":{"message":"The client socket has timed out after 8000ms while trying to connect to (127.0.0.1,"}}
"""

STORE_IS_REACHED = """
{"event":"process.start","rank":0,"world_size":2,"role":"rank","launcher":"environment"}
{"event":"dist.init_process_group","phase":"begin","rank":0,"world_size":2,"span":1,"master_addr":"127.0.0.1"}
{"event":"dist.init_process_group","phase":"error","rank":0,"world_size":2,"span":1,"failure":{"message":"Timed out after 9 seconds waiting for clients. 1/2 clients joined."}}
"""

RANK_0_WAS_THERE_AND_DIED = """
{"event":"process.start","rank":0,"world_size":2,"role":"rank","launcher":"environment"}
{"event":"process.end","rank":0,"world_size":2,"uncaught":true,"exit_code":1,"failure":{"type":"FileNotFoundError","message":"[Errno 2] No such file or directory: 'train.txt'"}}
{"event":"process.start","rank":1,"world_size":2,"role":"rank","launcher":"environment"}
{"event":"dist.init_process_group","phase":"begin","rank":1,"world_size":2,"span":1,"master_addr":"127.0.0.1"}
{"event":"dist.init_process_group","phase":"error","rank":1,"world_size":2,"span":1,"failure":{"message":"The client socket has timed out after 60s while trying to connect to (127.0.0.1, 29500)."}}
{"event":"process.end","rank":1,"world_size":2,"uncaught":true,"exit_code":1,"failure":{"message":"The client socket has timed out after 60s while trying to connect to (127.0.0.1, 29500)."}}
"""

TORCH_CANNOT_CONNECT = """Traceback (most recent call last):
  File "/train/t.py", line 14, in main
    dist.init_process_group("gloo")
  File "/env/site-packages/torch/distributed/rendezvous.py", line 188, in _create_c10d_store
    return TCPStore(
TimeoutError: The client socket has timed out after 300s while trying to connect to (10.1.2.3, 29500).
"""
