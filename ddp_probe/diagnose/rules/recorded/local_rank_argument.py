"""Recorded logs of the rule local-rank-argument."""

TORCH_DISTRIBUTED_LAUNCH_PASSES_LOCAL_RANK = """
{"event":"launcher.start","launcher":"torch.distributed.launch"}
{"event":"process.start","rank":0,"local_rank":0,"world_size":2,"argv":["-u","/train/10_local_rank_underscore.py","--local-rank=0"],"launcher":"torchrun"}
{"event":"process.end","rank":0,"local_rank":0,"process_group":false}
{"event":"process.start","rank":1,"local_rank":1,"world_size":2,"argv":["-u","/train/10_local_rank_underscore.py","--local-rank=1"],"launcher":"torchrun"}
{"event":"process.end","rank":1,"local_rank":1,"process_group":false}
{"event":"launcher.child","child_rank":1,"child_local_rank":1,"exit_code":2}
"""
