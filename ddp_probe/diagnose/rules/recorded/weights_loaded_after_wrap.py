"""Recorded logs of the rule weights-loaded-after-wrap."""

RANK_0_ALONE_LOADS_AFTER_WRAP = """
{"event":"ddp.init","phase":"begin","rank":0,"span":2,"site":{"file":"/train/09_weights_loaded_after_wrap.py","line":20,"function":"main"},"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","group":"default","placement":{"parameters":4,"digest":"596174d15c5024df"}}
{"event":"ddp.init","phase":"end","rank":0,"span":2}
{"event":"ddp.init","phase":"begin","rank":1,"span":2,"site":{"file":"/train/09_weights_loaded_after_wrap.py","line":20,"function":"main"},"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","group":"default","placement":{"parameters":4,"digest":"596174d15c5024df"}}
{"event":"ddp.init","phase":"end","rank":1,"span":2}
{"event":"checkpoint.load","phase":"begin","rank":0,"span":4,"site":{"file":"/train/09_weights_loaded_after_wrap.py","line":23,"function":"main"},"file":{"path":"pretrained.pth"},"map_location":"cpu"}
{"event":"checkpoint.load","phase":"end","rank":0,"span":4}
{"event":"process.end","rank":0,"process_group":false}
{"event":"process.end","rank":1,"process_group":false}
"""

BOTH_RANKS_LOAD_AFTER_WRAP = """
{"event":"ddp.init","phase":"begin","rank":0,"span":1,"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","placement":{"parameters":4,"digest":"a1"}}
{"event":"ddp.init","phase":"end","rank":0,"span":1}
{"event":"ddp.init","phase":"begin","rank":1,"span":1,"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","placement":{"parameters":4,"digest":"a1"}}
{"event":"ddp.init","phase":"end","rank":1,"span":1}
{"event":"checkpoint.load","phase":"begin","rank":0,"span":2,"file":{"path":"last.pth"}}
{"event":"checkpoint.load","phase":"end","rank":0,"span":2}
{"event":"checkpoint.load","phase":"begin","rank":1,"span":2,"file":{"path":"last.pth"}}
{"event":"checkpoint.load","phase":"end","rank":1,"span":2}
{"event":"process.end","rank":0}
{"event":"process.end","rank":1}
"""

RANK_0_EVALUATES_BEST_CHECKPOINT_WHEN_GROUP = """
{"event":"ddp.init","phase":"begin","rank":0,"span":1,"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","placement":{"parameters":4,"digest":"a1"}}
{"event":"ddp.init","phase":"end","rank":0,"span":1}
{"event":"ddp.init","phase":"begin","rank":1,"span":1,"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","placement":{"parameters":4,"digest":"a1"}}
{"event":"ddp.init","phase":"end","rank":1,"span":1}
{"event":"dist.destroy_process_group","phase":"begin","rank":0,"span":2}
{"event":"dist.destroy_process_group","phase":"end","rank":0,"span":2}
{"event":"checkpoint.load","phase":"begin","rank":0,"span":3,"file":{"path":"best.pth"}}
{"event":"checkpoint.load","phase":"end","rank":0,"span":3}
{"event":"process.end","rank":0}
{"event":"process.end","rank":1}
"""

RANK_0_ALONE_LOADS_BEFORE_WRAP = """
{"event":"checkpoint.load","phase":"begin","rank":0,"span":1,"file":{"path":"last.pth"}}
{"event":"checkpoint.load","phase":"end","rank":0,"span":1}
{"event":"ddp.init","phase":"begin","rank":0,"span":2,"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","placement":{"parameters":4,"digest":"a1"}}
{"event":"ddp.init","phase":"end","rank":0,"span":2}
{"event":"ddp.init","phase":"begin","rank":1,"span":1,"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","placement":{"parameters":4,"digest":"a1"}}
{"event":"ddp.init","phase":"end","rank":1,"span":1}
{"event":"process.end","rank":0}
{"event":"process.end","rank":1}
"""
