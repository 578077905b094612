"""Lines of the rule memory-on-another-card."""

RANK_1_LOADS_ONTO_CARD_0 = """{"event":"process.start","rank":0,"local_rank":0,"world_size":2,"host":"node1"}
{"event":"process.start","rank":1,"local_rank":1,"world_size":2,"host":"node1"}
{"event":"device.state","rank":0,"host":"node1","when":"end","current":"gcu:0","devices":[{"device":"gcu:0","allocated_peak":900000000}]}
{"event":"device.state","rank":1,"host":"node1","when":"ddp.init end","current":"gcu:1","devices":[{"device":"gcu:1","allocated_peak":900000000}]}
{"event":"device.state","rank":1,"host":"node1","when":"checkpoint.load end","current":"gcu:1","devices":[{"device":"gcu:0","allocated_peak":300000000},{"device":"gcu:1","allocated_peak":900000000}]}
{"event":"process.end","rank":0,"exit_code":0}
{"event":"process.end","rank":1,"exit_code":0}
"""

EACH_ON_ITS_OWN = """{"event":"process.start","rank":0,"local_rank":0,"world_size":2,"host":"node1"}
{"event":"process.start","rank":1,"local_rank":1,"world_size":2,"host":"node1"}
{"event":"device.state","rank":0,"host":"node1","when":"end","current":"gcu:0","devices":[{"device":"gcu:0","allocated_peak":900000000}]}
{"event":"device.state","rank":1,"host":"node1","when":"end","current":"gcu:1","devices":[{"device":"gcu:1","allocated_peak":900000000}]}
{"event":"process.end","rank":0,"exit_code":0}
{"event":"process.end","rank":1,"exit_code":0}
"""

TWO_CARDS_A_RANK = """{"event":"device.state","rank":0,"host":"node1","when":"end","current":"gcu:0","devices":[{"device":"gcu:0","allocated_peak":9},{"device":"gcu:1","allocated_peak":8}]}
{"event":"device.state","rank":1,"host":"node1","when":"end","current":"gcu:2","devices":[{"device":"gcu:2","allocated_peak":9},{"device":"gcu:3","allocated_peak":8}]}
"""
