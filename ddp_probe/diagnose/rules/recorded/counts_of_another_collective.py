"""Recorded logs of the rule counts-of-another-collective."""

RANK_1_READS_118287_WHERE_BOTH_MODELS = """
{"event":"ddp.init","phase":"begin","rank":0,"span":2,"site":{"file":"/train/09_counts_of_another_collective.py","line":28,"function":"main"},"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","group":"default","placement":{"parameters":4,"elements":161,"digest":"596174d15c5024df"}}
{"event":"ddp.init","phase":"begin","rank":1,"span":2,"site":{"file":"/train/09_counts_of_another_collective.py","line":28,"function":"main"},"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","group":"default","placement":{"parameters":4,"elements":161,"digest":"596174d15c5024df"}}
{"event":"ddp.init","phase":"error","rank":1,"span":2,"failure":{"type":"RuntimeError","message":"DDP expects same model across all ranks, but Rank 1 has 4 params, while rank 0 has inconsistent 118287 params."}}
{"event":"process.end","rank":1,"failure":{"type":"RuntimeError","message":"DDP expects same model across all ranks, but Rank 1 has 4 params, while rank 0 has inconsistent 118287 params."},"exit_code":1,"uncaught":true}
"""

MODELS_DO_DIFFER = """
{"event":"ddp.init","phase":"begin","rank":0,"span":1,"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","placement":{"parameters":4,"digest":"a1"}}
{"event":"ddp.init","phase":"begin","rank":1,"span":1,"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","placement":{"parameters":6,"digest":"b2"}}
{"event":"ddp.init","phase":"error","rank":0,"span":1,"failure":{"type":"RuntimeError","message":"DDP expects same model across all ranks, but Rank 0 has 4 params, while rank 1 has inconsistent 6 params."}}
{"event":"process.end","rank":0,"exit_code":1,"uncaught":true,"failure":{"type":"RuntimeError","message":"DDP expects same model across all ranks, but Rank 0 has 4 params, while rank 1 has inconsistent 6 params."}}
"""

COUNT_OF_0_IS_MARK_OF_EXCHANGE = """
{"event":"ddp.init","phase":"begin","rank":0,"span":1,"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","placement":{"parameters":4,"digest":"a1"}}
{"event":"ddp.init","phase":"begin","rank":1,"span":1,"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","placement":{"parameters":4,"digest":"a1"}}
{"event":"ddp.init","phase":"error","rank":1,"span":1,"failure":{"type":"RuntimeError","message":"DDP expects same model across all ranks, but Rank 1 has 4 params, while rank 0 has inconsistent 0 params."}}
{"event":"process.end","rank":1,"exit_code":1,"uncaught":true,"failure":{"type":"RuntimeError","message":"DDP expects same model across all ranks, but Rank 1 has 4 params, while rank 0 has inconsistent 0 params."}}
"""
