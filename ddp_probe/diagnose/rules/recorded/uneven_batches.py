"""Recorded logs of the rule uneven-batches."""

DDP_JOIN_IS_TOLD_TO_RAISE = """
{"event":"process.end","rank":0,"exit_code":1,"uncaught":true,"failure":{"type":"RuntimeError","message":"Detected at least one rank that exhausted inputs. Throwing across all ranks.","frames":[{"file":"/train/t.py","line":30,"function":"main"}]}}
"""

TWO_RANKS_GATHER_12_AND_16_ROWS = """[rank1]: RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=45, OpType=ALLGATHER, TensorShape=[12, 10], TensorDtypes=Float, TensorDeviceTypes=x), but Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=45, OpType=ALLGATHER, TensorShape=[16, 10], TensorDtypes=Float, TensorDeviceTypes=x).Collectives differ in the following aspects: 	 Tensor Tensor shapes: 12, 10vs 16, 10
"""

TWO_RANKS_GATHER_OTHER_ROWS = """[rank1]: RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=45, OpType=ALLGATHER, TensorShape=[12, 10], TensorDtypes=Float, TensorDeviceTypes=x), but Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=45, OpType=ALLGATHER, TensorShape=[16, 20], TensorDtypes=Float, TensorDeviceTypes=x).
"""
