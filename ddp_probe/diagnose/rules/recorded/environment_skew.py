"""Recorded logs of the rule environment-skew."""

EACH_HOST_NAMES_INTERFACE_OF_ITS_OWN = """
{"event":"process.start","rank":0,"local_rank":0,"world_size":2,"environment":{"RANK":"0","NCCL_SOCKET_IFNAME":"eth0","NCCL_DEBUG":"INFO","CUDA_VISIBLE_DEVICES":"0"}}
{"event":"process.start","rank":1,"local_rank":0,"world_size":2,"host":"node2","environment":{"RANK":"1","NCCL_SOCKET_IFNAME":"eno1","CUDA_VISIBLE_DEVICES":"1"}}
{"event":"dist.init_process_group","phase":"end","rank":0,"span":1}
{"event":"dist.init_process_group","phase":"end","rank":1,"host":"node2","span":1}
"""

TORCH_WAITS_IN_WHAT_ONLY_DETAIL_MAKES = """Traceback (most recent call last):
  File "/train/t.py", line 16, in main
    dist.init_process_group("gloo")
  File "/env/site-packages/torch/distributed/distributed_c10d.py", line 5456, in _create_process_group_wrapper
    helper_pg = ProcessGroupGloo(store, rank, world_size, timeout=timeout)
torch.distributed.DistStoreError: wait timeout after 8000ms, keys: /default_pg/0//cpu//pg_wrapper:0/0/0
"""
