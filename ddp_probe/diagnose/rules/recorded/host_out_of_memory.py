"""Recorded logs of the rule host-out-of-memory."""

RANK_1_ASKS_FOR_MORE_THAN_THERE = """[rank1]: Traceback (most recent call last):
[rank1]:   File "/train/train.py", line 31, in main
[rank1]:     cache = torch.ones(2**30)
[rank1]: RuntimeError: [enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 4294967296 bytes. Error code 12 (Cannot allocate memory)
[rank0]: RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:41680
"""

RANK_IS_KILLED = """W1120 17:08:29.101000 27450 torch/distributed/elastic/multiprocessing/api.py:900] Sending process 27461 closing signal SIGTERM
E1120 17:08:29.401000 27450 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: -9) local_rank: 1 (pid: 27464) of binary: /env/bin/python
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
======================================================
/train/train.py FAILED
------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-20_17:08:29
  host      : localhost
  rank      : 1 (local_rank: 1)
  exitcode  : -9 (pid: 27464)
  error_file: <N/A>
  traceback : Signal 9 (SIGKILL) received by PID 27464
======================================================
"""

RANK_0_ASKS_FOR_LARGE_ARRAY = """{"event":"process.end","rank":0,"exit_code":1,"uncaught":true,"failure":{"type":"numpy.core._exceptions._ArrayMemoryError","message":"Unable to allocate 23.4 GiB for an array with shape (1000, 1000, 3144) and data type float64"}}"""
