"""Lines of the rule host-memory-short."""

NO_CACHE = """{"event":"process.start","rank":0,"world_size":2,"host":"node1"}
{"event":"process.start","rank":1,"world_size":2,"host":"node1"}
{"event":"device.state","rank":0,"host":"node1","when":"ddp.init end","system":{"anonymous":900000000,"memory":2100000000,"memory_taken":1800000000,"memory_limit":2147483648}}
{"event":"device.state","rank":1,"host":"node1","when":"periodic","system":{"anonymous":900000000,"memory":2100000000,"memory_taken":2040000000,"memory_limit":2147483648}}
{"event":"process.end","rank":0,"exit_code":0}
{"event":"process.end","rank":1,"exit_code":0}
"""

FULL_OF_FILES = """{"event":"process.start","rank":0,"world_size":2,"host":"node1"}
{"event":"process.start","rank":1,"world_size":2,"host":"node1"}
{"event":"device.state","rank":0,"host":"node1","when":"ddp.init end","system":{"anonymous":900000000,"memory":2100000000,"memory_taken":900000000,"memory_limit":2147483648}}
{"event":"device.state","rank":1,"host":"node1","when":"periodic","system":{"anonymous":900000000,"memory":2100000000,"memory_taken":900000000,"memory_limit":2147483648}}
{"event":"process.end","rank":0,"exit_code":0}
{"event":"process.end","rank":1,"exit_code":0}
"""

SHM_FULL = """{"event":"process.start","rank":0,"world_size":1,"host":"node1"}
{"event":"device.state","rank":0,"host":"node1","when":"periodic","system":{"shm_free":1000000,"shm_size":67108864}}
{"event":"process.end","rank":0,"exit_code":0}
"""

SHM_HALF_FREE = """{"event":"process.start","rank":0,"world_size":1,"host":"node1"}
{"event":"device.state","rank":0,"host":"node1","when":"periodic","system":{"shm_free":33554432,"shm_size":67108864}}
{"event":"process.end","rank":0,"exit_code":0}
"""
