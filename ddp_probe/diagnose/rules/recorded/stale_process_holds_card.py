"""Recorded logs of the rule stale-process-holds-card."""

CARD_IS_SET_TO_ONE_PROCESS = """
{"event":"process.start","rank":0,"world_size":2,"launcher":"torchrun"}
{"event":"process.end","rank":0,"uncaught":true,"exit_code":1,"failure":{"type":"RuntimeError","message":"CUDA error: all CUDA-capable devices are busy or unavailable"}}
"""

THIS_PROCESS_FILLS_CARD_ITSELF = """torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.69 GiB total capacity; 21.10 GiB already allocated; 20.31 MiB free; 22.01 GiB reserved in total by PyTorch)
"""

CARD_IS_FULL_BEFORE_THIS_PROCESS = """RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 23.69 GiB total capacity; 1.20 MiB already allocated; 9.44 MiB free; 2.00 MiB reserved in total by PyTorch)
"""

HCCL_FINDS_ITS_PROCESS_OF_EARLIER_RUN = """RuntimeError: create_config:build/CMakeFiles/torch_npu.dir/compiler_depend.ts:102 HCCL function error: hcclCommInitRootInfoConfig(numRanks, &rootInfo, rank, config, &(comm->hcclComm_)), error code is 7
[ERROR] 2025-01-02-10:11:12 (PID:77, Device:0, RankID:2) ERR02200 DIST call hccl api failed.
EJ0001: [PID: 77] 2025-01-02-10:11:12.975.866 Failed to initialize the HCCP process. Reason: Maybe the last training process is running.
"""
