"""Recorded logs of the rule parameter-order-by-hash."""

COUNTS_ARE_EQUAL = """
{"event":"process.start","rank":0,"world_size":2,"hash_seed":"random"}
{"event":"process.start","rank":1,"world_size":2,"hash_seed":"random"}
{"event":"ddp.init","phase":"begin","rank":0,"span":1,"site":{"file":"/train/t.py","line":22,"function":"main"},"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","group":"default","placement":{"parameters":20,"elements":935,"trainable":20,"digest":"6b06a6a8e782eaee","first":[{"name":"depth.weight","shape":[3,16]}]}}
{"event":"ddp.init","phase":"begin","rank":1,"span":1,"site":{"file":"/train/t.py","line":22,"function":"main"},"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","group":"default","placement":{"parameters":20,"elements":935,"trainable":20,"digest":"378709d0ff3a7be4","first":[{"name":"normal.weight","shape":[4,16]}]}}
{"event":"ddp.init","phase":"error","rank":1,"span":1,"failure":{"type":"RuntimeError","message":"[1]: params[0] in this process with sizes [4, 16] appears not to match sizes of the same param in process 0."}}
{"event":"process.end","rank":1,"exit_code":1,"uncaught":true,"failure":{"type":"RuntimeError","message":"[1]: params[0] in this process with sizes [4, 16] appears not to match sizes of the same param in process 0."}}
"""

HASH_SEED_IS_SAME_ON_ALL_RANKS = """
{"event":"process.start","rank":0,"world_size":2,"hash_seed":"0"}
{"event":"process.start","rank":1,"world_size":2,"hash_seed":"0"}
{"event":"ddp.init","phase":"begin","rank":0,"span":1,"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","placement":{"parameters":20,"elements":935,"trainable":20,"digest":"a1"}}
{"event":"ddp.init","phase":"begin","rank":1,"span":1,"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","placement":{"parameters":20,"elements":935,"trainable":20,"digest":"b2"}}
"""

RANK_HAS_LAYER_MORE = """
{"event":"process.start","rank":0,"world_size":2,"hash_seed":"random"}
{"event":"process.start","rank":1,"world_size":2,"hash_seed":"random"}
{"event":"ddp.init","phase":"begin","rank":0,"span":1,"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","placement":{"parameters":20,"elements":935,"trainable":20,"digest":"a1"}}
{"event":"ddp.init","phase":"begin","rank":1,"span":1,"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","placement":{"parameters":22,"elements":999,"trainable":22,"digest":"b2"}}
"""
