"""Recorded logs of the rule card-out-of-memory."""

RANK_1_FILLS_ITS_CARD = """[rank1]: Traceback (most recent call last):
[rank1]:   File "/train/train.py", line 31, in step
[rank1]:     loss.backward()
[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 39.39 GiB of which 1.12 GiB is free. Including non-PyTorch memory, this process has 38.26 GiB memory in use.
[rank0]: RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:41680
"""
