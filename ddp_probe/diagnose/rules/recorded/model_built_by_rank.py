"""Recorded logs of the rule model-built-by-rank."""

RANK_2_OF_THREE_HAS_ONE_LAYER = """
{"event":"ddp.init","phase":"begin","rank":0,"span":2,"site":{"file":"/train/09_extra_layer_on_one_rank.py","line":24,"function":"main"},"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","group":"default","placement":{"parameters":4,"elements":161,"trainable":4,"digest":"596174d15c5024df","first":[{"name":"backbone.0.weight","device":"cpu","shape":[16,8],"dtype":"float32"},{"name":"backbone.0.bias","device":"cpu","shape":[16],"dtype":"float32"},{"name":"head.weight","device":"cpu","shape":[1,16],"dtype":"float32"},{"name":"head.bias","device":"cpu","shape":[1],"dtype":"float32"}]}}
{"event":"ddp.init","phase":"begin","rank":1,"span":2,"site":{"file":"/train/09_extra_layer_on_one_rank.py","line":24,"function":"main"},"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","group":"default","placement":{"parameters":4,"elements":161,"trainable":4,"digest":"596174d15c5024df","first":[{"name":"backbone.0.weight","device":"cpu","shape":[16,8],"dtype":"float32"},{"name":"backbone.0.bias","device":"cpu","shape":[16],"dtype":"float32"},{"name":"head.weight","device":"cpu","shape":[1,16],"dtype":"float32"},{"name":"head.bias","device":"cpu","shape":[1],"dtype":"float32"}]}}
{"event":"ddp.init","phase":"begin","rank":2,"span":2,"site":{"file":"/train/09_extra_layer_on_one_rank.py","line":24,"function":"main"},"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","group":"default","placement":{"parameters":6,"elements":229,"trainable":6,"digest":"010bef7f2fbcd6aa","first":[{"name":"backbone.0.weight","device":"cpu","shape":[16,8],"dtype":"float32"},{"name":"backbone.0.bias","device":"cpu","shape":[16],"dtype":"float32"},{"name":"head.weight","device":"cpu","shape":[1,16],"dtype":"float32"},{"name":"head.bias","device":"cpu","shape":[1],"dtype":"float32"},{"name":"segmentation_head.weight","device":"cpu","shape":[4,16],"dtype":"float32"}]}}
{"event":"ddp.init","phase":"error","rank":0,"span":2,"failure":{"type":"RuntimeError","message":"DDP expects same model across all ranks, but Rank 0 has 4 params, while rank 2 has inconsistent 6 params."}}
{"event":"process.end","rank":0,"failure":{"type":"RuntimeError","message":"DDP expects same model across all ranks, but Rank 0 has 4 params, while rank 2 has inconsistent 6 params."},"exit_code":1,"uncaught":true}
{"event":"ddp.init","phase":"error","rank":1,"span":2,"failure":{"type":"RuntimeError","message":"DDP expects same model across all ranks, but Rank 1 has 4 params, while rank 2 has inconsistent 6 params."}}
{"event":"process.end","rank":1,"failure":{"type":"RuntimeError","message":"DDP expects same model across all ranks, but Rank 1 has 4 params, while rank 2 has inconsistent 6 params."},"exit_code":1,"uncaught":true}
{"event":"ddp.init","phase":"error","rank":2,"span":2,"failure":{"type":"RuntimeError","message":"DDP expects same model across all ranks, but Rank 2 has 6 params, while rank 0 has inconsistent 4 params."}}
{"event":"process.end","rank":2,"failure":{"type":"RuntimeError","message":"DDP expects same model across all ranks, but Rank 2 has 6 params, while rank 0 has inconsistent 4 params."},"exit_code":1,"uncaught":true}
"""

COUNTS_ARE_EQUAL = """
{"event":"process.start","rank":0,"world_size":2,"hash_seed":"random"}
{"event":"process.start","rank":1,"world_size":2,"hash_seed":"random"}
{"event":"ddp.init","phase":"begin","rank":0,"span":1,"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","placement":{"parameters":4,"elements":161,"digest":"a1"}}
{"event":"ddp.init","phase":"begin","rank":1,"span":1,"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","placement":{"parameters":4,"elements":161,"digest":"b2"}}
{"event":"ddp.init","phase":"error","rank":1,"span":1,"failure":{"type":"RuntimeError","message":"[1]: params[0] in this process with sizes [3, 16] appears not to match sizes of the same param in process 0."}}
{"event":"process.end","rank":1,"exit_code":1,"uncaught":true,"failure":{"type":"RuntimeError","message":"[1]: params[0] in this process with sizes [3, 16] appears not to match sizes of the same param in process 0."}}
"""

ALL_RANKS_HAVE_ONE_MODEL = """
{"event":"ddp.init","phase":"begin","rank":0,"span":1,"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","placement":{"parameters":4,"elements":161,"digest":"a1"}}
{"event":"ddp.init","phase":"begin","rank":1,"span":1,"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","placement":{"parameters":4,"elements":161,"digest":"a1"}}
{"event":"ddp.init","phase":"end","rank":0,"span":1}
{"event":"ddp.init","phase":"end","rank":1,"span":1}
"""

MODELS_ARE_SAME = """
{"event":"ddp.init","phase":"begin","rank":0,"span":1,"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","placement":{"parameters":4,"elements":161,"digest":"a1"}}
{"event":"ddp.init","phase":"begin","rank":1,"span":1,"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","placement":{"parameters":4,"elements":161,"digest":"a1"}}
{"event":"process.end","rank":1,"exit_code":1,"uncaught":true,"failure":{"type":"RuntimeError","message":"[1]: params[0] in this process with sizes [8, 3, 3, 3] appears not to match strides of the same param in process 0."}}
"""
