"""Recorded logs of the rule own-exception."""

OF_RICH_LISTING_ONLY_END_IS_LEFT = """│ ❱  88 │   │   │   │   mask = batch["mask"]                                           │
│    89 │   │   │   │   labels = batch["labels"]                                       │
╰──────────────────────────────────────────────────────────────────────────────────────────────────╯
KeyError: 'mask'
steps:   0%|        | 0/186 [00:00<?, ?it/s]ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0 (pid: 76781) of binary: /env/bin/python
"""
