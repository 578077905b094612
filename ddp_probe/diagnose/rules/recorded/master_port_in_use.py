"""Recorded logs of the rule master-port-in-use."""

RANK_0_CANNOT_LISTEN = """
{"event":"process.start","rank":0,"world_size":1,"role":"rank","launcher":"environment"}
{"event":"dist.init_process_group","phase":"begin","rank":0,"span":1,"site":{"file":"/train/10_master_port_in_use.py","line":19,"function":"main"},"master_addr":"127.0.0.1"}
{"event":"dist.init_process_group","phase":"error","rank":0,"span":1,"failure":{"message":"code: -98, name: EADDRINUSE, message: address already in use"}}
{"event":"process.end","rank":0,"uncaught":true,"exit_code":1,"failure":{"message":"code: -98, name: EADDRINUSE, message: address already in use"}}
"""

TORCH_1_12_PRINTS_BOTH_ADDRESSES = """Traceback (most recent call last):
  File "/train/t.py", line 9, in main
    dist.init_process_group("nccl")
  File "/env/site-packages/torch/distributed/rendezvous.py", line 188, in _create_c10d_store
    return TCPStore(
RuntimeError: The server socket has failed to listen on any local network address. The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use). The server socket has failed to bind to 0.0.0.0:29500 (errno: 98 - Address already in use).
"""
