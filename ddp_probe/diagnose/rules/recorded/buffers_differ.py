"""Recorded logs of the rule buffers-differ."""

BUFFER_OF_RANK_0_IS_LONGER = """
{"event":"ddp.init","phase":"begin","rank":0,"span":2,"site":{"file":"/train/09_buffer_shape_by_rank.py","line":23,"function":"main"},"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","group":"default","placement":{"parameters":4,"elements":161,"digest":"596174d15c5024df","buffers":1,"buffer_devices":{"cpu":{"count":1,"elements":8016,"bytes":32064}}}}
{"event":"ddp.init","phase":"end","rank":0,"span":2}
{"event":"ddp.init","phase":"begin","rank":1,"span":2,"site":{"file":"/train/09_buffer_shape_by_rank.py","line":23,"function":"main"},"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","group":"default","placement":{"parameters":4,"elements":161,"digest":"596174d15c5024df","buffers":1,"buffer_devices":{"cpu":{"count":1,"elements":8000,"bytes":32000}}}}
{"event":"process.end","rank":0,"process_group":false}
{"event":"launcher.start","launcher":"torchrun"}
{"event":"launcher.child","child_rank":1,"child_local_rank":1,"exit_code":-6,"signal":"SIGABRT"}
"""

BUFFERS_ARE_ALIKE = """
{"event":"ddp.init","phase":"begin","rank":0,"span":1,"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","placement":{"parameters":4,"digest":"a1","buffers":1,"buffer_devices":{"cuda:0":{"count":1,"elements":8000}}}}
{"event":"ddp.init","phase":"end","rank":0,"span":1}
{"event":"ddp.init","phase":"begin","rank":1,"span":1,"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","placement":{"parameters":4,"digest":"a1","buffers":1,"buffer_devices":{"cuda:1":{"count":1,"elements":8000}}}}
{"event":"ddp.init","phase":"end","rank":1,"span":1}
"""

TORCH_COMPARES_BROADCAST_OF_TWO_RANKS = """RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=7, OpType=BROADCAST, TensorShape=[8016], TensorDtypes=Float), but Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=7, OpType=BROADCAST, TensorShape=[8000], TensorDtypes=Float).
"""

RANKS_ARE_IN_DIFFERENT_BROADCASTS = """RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=7, OpType=BROADCAST, TensorShape=[8016], TensorDtypes=Float), but Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=9, OpType=BROADCAST, TensorShape=[8000], TensorDtypes=Float).
"""
