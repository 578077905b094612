"""Recorded logs of the rule collective-dtype-mismatch."""

TORCH_COMPARES_ALL_REDUCE_OF_FLOATS = """RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=7, OpType=ALLREDUCE, TensorShape=[1], TensorDtypes=Float, TensorDeviceTypes=TensorOptions(dtype=float (default), device=cpu)), but Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=7, OpType=ALLREDUCE, TensorShape=[1], TensorDtypes=Long, TensorDeviceTypes=TensorOptions(dtype=float (default), device=cpu)).Collectives differ in the following aspects: 	 Tensor Tensor dtypes: Floatvs Long
"""

OLDER_TORCH_DOES_NOT_SAY_IN_WHAT = """RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running inconsistent collective: CollectiveFingerPrint(OpType=ALLREDUCE, TensorShape=[1], TensorDtypes=Float, TensorDeviceTypes=x), but Rank 0 is running collective: CollectiveFingerPrint(OpType=ALLREDUCE, TensorShape=[1], TensorDtypes=Long, TensorDeviceTypes=x)
"""

HCCL_COMPARES_TYPES = """[rank2]: RuntimeError: EI0005: [PID: 77] 2026-11-20-06:32:27 The arguments for collective communication are inconsistent between ranks: tag [AllReduce_1], parameter [dataType], local [float], remote [int64]
"""

OPERATIONS_DIFFER_AS_WELL = """RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=7, OpType=ALLREDUCE, TensorShape=[1], TensorDtypes=Float, TensorDeviceTypes=TensorOptions(dtype=float (default), device=cpu)), but Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=7, OpType=BROADCAST, TensorShape=[1], TensorDtypes=Long, TensorDeviceTypes=TensorOptions(dtype=float (default), device=cpu)).Collectives differ in the following aspects: 	 Op type: ALLREDUCEvs BROADCAST  Tensor Tensor dtypes: Floatvs Long
"""
