"""Recorded logs of the rule torch-fault."""

REDUCER_ASSERTION_FAILS_ON_RANK_1 = """[rank1]: Traceback (most recent call last):
[rank1]:   File "/train/train.py", line 31, in main
[rank1]:     out = model(batch)
[rank1]:   File "/env/site-packages/torch/nn/parallel/distributed.py", line 993, in forward
[rank1]:     if torch.is_grad_enabled() and self.reducer._rebuild_buckets():
[rank1]: RuntimeError: bucket_count == per_bucket_sizes.size() INTERNAL ASSERT FAILED at "../torch/csrc/distributed/c10d/reducer.cpp":963, please report a bug to PyTorch.
"""
