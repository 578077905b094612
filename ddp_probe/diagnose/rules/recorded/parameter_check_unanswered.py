"""Recorded logs of the rule parameter-check-unanswered."""

BOTH_RANKS_HOLD_SAME_MODEL = """
{"event":"ddp.init","phase":"begin","rank":0,"world_size":2,"span":1,"site":{"file":"/train/t.py","line":28,"function":"main"},"placement":{"parameters":4,"digest":"596174d15c5024df"}}
{"event":"ddp.init","phase":"begin","rank":1,"world_size":2,"span":1,"site":{"file":"/train/t.py","line":28,"function":"main"},"placement":{"parameters":4,"digest":"596174d15c5024df"}}
{"event":"ddp.init","phase":"error","rank":1,"world_size":2,"span":1,"failure":{"type":"RuntimeError","message":"DDP expects same model across all ranks, but Rank 1 has 4 params, while rank 0 has inconsistent 0 params."}}
"""

MODELS_DIFFER = """
{"event":"ddp.init","phase":"begin","rank":0,"world_size":3,"span":2,"placement":{"parameters":4}}
{"event":"ddp.init","phase":"begin","rank":2,"world_size":3,"span":2,"placement":{"parameters":6}}
{"event":"ddp.init","phase":"error","rank":2,"world_size":3,"span":2,"failure":{"type":"RuntimeError","message":"DDP expects same model across all ranks, but Rank 2 has 6 params, while rank 0 has inconsistent 4 params."}}
"""
