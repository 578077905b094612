"""Recorded logs of the rule card-is-not-the-local-rank."""

WRAPPER_SHOWS_EACH_RANK_ONE_CARD = """
{"event":"process.start","rank":0,"local_rank":0,"world_size":2,"launcher":"torchrun","accelerators":[{"name":"cuda","device_type":"cuda","visible":{"CUDA_VISIBLE_DEVICES":"0"}}]}
{"event":"process.start","rank":1,"local_rank":1,"world_size":2,"launcher":"torchrun","accelerators":[{"name":"cuda","device_type":"cuda","visible":{"CUDA_VISIBLE_DEVICES":"1"}}]}
{"event":"device.set","phase":"begin","rank":1,"local_rank":1,"span":1,"site":{"file":"/train/t.py","line":9,"function":"main"},"target":"torch.cuda.set_device","device":"1"}
{"event":"device.set","phase":"error","rank":1,"local_rank":1,"span":1,"failure":{"type":"RuntimeError","message":"CUDA error: invalid device ordinal"}}
"""

SECOND_HOST_FIRST_RANK_ASKS_FOR_CARD = """
{"event":"process.start","rank":8,"local_rank":0,"world_size":16,"host":"node2","launcher":"torchrun","environment":{"GROUP_RANK":"1","LOCAL_WORLD_SIZE":"8"}}
{"event":"device.set","phase":"begin","rank":8,"local_rank":0,"host":"node2","span":1,"site":{"file":"/train/t.py","line":9,"function":"main"},"target":"torch.cuda.set_device","device":"8"}
{"event":"device.set","phase":"error","rank":8,"local_rank":0,"host":"node2","span":1,"failure":{"type":"RuntimeError","message":"CUDA error: invalid device ordinal"}}
"""

ONE_CARD_IS_VISIBLE_TO_TWO_RANKS = """
{"event":"process.start","rank":0,"local_rank":0,"world_size":2,"launcher":"torchrun","environment":{"TOPS_VISIBLE_DEVICES":"0"},"accelerators":[{"name":"gcu","visible":{"TOPS_VISIBLE_DEVICES":"0"}}]}
{"event":"process.start","rank":1,"local_rank":1,"world_size":2,"launcher":"torchrun","environment":{"TOPS_VISIBLE_DEVICES":"0"},"accelerators":[{"name":"gcu","visible":{"TOPS_VISIBLE_DEVICES":"0"}}]}
{"event":"device.set","phase":"begin","rank":1,"local_rank":1,"span":2,"target":"torch_gcu.gcu.set_device","device":"1"}
{"event":"device.set","phase":"error","rank":1,"local_rank":1,"span":2,"failure":{"type":"RuntimeError","message":"GCU error: invalid device ordinal 1, 1 cards are visible"}}
"""

TASK_THAT_SRUN_STARTED_IS_REFUSED_CARD = """Traceback (most recent call last):
  File "/train/t.py", line 12, in main
    torch.cuda.set_device(int(os.environ["SLURM_LOCALID"]))
  File "/env/site-packages/torch/cuda/__init__.py", line 399, in set_device
    torch._C._cuda_setDevice(device)
RuntimeError: CUDA error: invalid device ordinal
"""
