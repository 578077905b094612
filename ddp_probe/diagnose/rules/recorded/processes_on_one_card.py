"""Lines of the rule processes-on-one-card."""

FOUR_RANKS_ON_CARD_0 = """{"event":"launcher.start","launcher":"torchrun","host":"node1","pid":1}
{"event":"process.start","rank":0,"local_rank":0,"world_size":4,"host":"node1","pid":100}
{"event":"process.start","rank":1,"local_rank":1,"world_size":4,"host":"node1","pid":101}
{"event":"process.start","rank":2,"local_rank":2,"world_size":4,"host":"node1","pid":102}
{"event":"process.start","rank":3,"local_rank":3,"world_size":4,"host":"node1","pid":103}
{"event":"device.state","rank":0,"host":"node1","pid":100,"when":"ddp.init end","current":"gcu:0"}
{"event":"device.state","rank":1,"host":"node1","pid":101,"when":"ddp.init end","current":"gcu:1"}
{"event":"device.state","rank":2,"host":"node1","pid":102,"when":"ddp.init end","current":"gcu:2"}
{"event":"device.state","rank":3,"host":"node1","pid":103,"when":"ddp.init end","current":"gcu:3"}
{"event":"cards.state","host":"node1","pid":1,"tool":"nvidia-smi","looks":9,"cards":[{"index":0,"processes":{"100":943718400,"101":943718400,"102":943718400,"103":943718400}},{"index":1,"processes":{}},{"index":2,"processes":{}},{"index":3,"processes":{}},{"index":4,"processes":{}},{"index":5,"processes":{}},{"index":6,"processes":{}},{"index":7,"processes":{}}]}
{"event":"process.end","rank":0,"host":"node1","pid":100,"exit_code":0}
{"event":"process.end","rank":1,"host":"node1","pid":101,"exit_code":0}
{"event":"process.end","rank":2,"host":"node1","pid":102,"exit_code":0}
{"event":"process.end","rank":3,"host":"node1","pid":103,"exit_code":0}
"""

CONTEXTS_ON_CARD_0 = """{"event":"launcher.start","launcher":"torchrun","host":"node1","pid":1}
{"event":"process.start","rank":0,"local_rank":0,"world_size":4,"host":"node1","pid":100}
{"event":"process.start","rank":1,"local_rank":1,"world_size":4,"host":"node1","pid":101}
{"event":"process.start","rank":2,"local_rank":2,"world_size":4,"host":"node1","pid":102}
{"event":"process.start","rank":3,"local_rank":3,"world_size":4,"host":"node1","pid":103}
{"event":"device.state","rank":0,"host":"node1","pid":100,"when":"ddp.init end","current":"gcu:0"}
{"event":"device.state","rank":1,"host":"node1","pid":101,"when":"ddp.init end","current":"gcu:1"}
{"event":"device.state","rank":2,"host":"node1","pid":102,"when":"ddp.init end","current":"gcu:2"}
{"event":"device.state","rank":3,"host":"node1","pid":103,"when":"ddp.init end","current":"gcu:3"}
{"event":"cards.state","host":"node1","pid":1,"tool":"nvidia-smi","looks":9,"cards":[{"index":0,"processes":{"100":943718400,"101":419430400,"102":419430400,"103":419430400}},{"index":1,"processes":{"101":943718400}},{"index":2,"processes":{"102":943718400}},{"index":3,"processes":{"103":943718400}}]}
{"event":"process.end","rank":0,"host":"node1","pid":100,"exit_code":0}
{"event":"process.end","rank":1,"host":"node1","pid":101,"exit_code":0}
{"event":"process.end","rank":2,"host":"node1","pid":102,"exit_code":0}
{"event":"process.end","rank":3,"host":"node1","pid":103,"exit_code":0}
"""

EACH_ON_ITS_OWN = """{"event":"launcher.start","launcher":"torchrun","host":"node1","pid":1}
{"event":"process.start","rank":0,"local_rank":0,"world_size":4,"host":"node1","pid":100}
{"event":"process.start","rank":1,"local_rank":1,"world_size":4,"host":"node1","pid":101}
{"event":"process.start","rank":2,"local_rank":2,"world_size":4,"host":"node1","pid":102}
{"event":"process.start","rank":3,"local_rank":3,"world_size":4,"host":"node1","pid":103}
{"event":"device.state","rank":0,"host":"node1","pid":100,"when":"ddp.init end","current":"gcu:0"}
{"event":"device.state","rank":1,"host":"node1","pid":101,"when":"ddp.init end","current":"gcu:1"}
{"event":"device.state","rank":2,"host":"node1","pid":102,"when":"ddp.init end","current":"gcu:2"}
{"event":"device.state","rank":3,"host":"node1","pid":103,"when":"ddp.init end","current":"gcu:3"}
{"event":"cards.state","host":"node1","pid":1,"tool":"nvidia-smi","looks":9,"cards":[{"index":0,"processes":{"100":943718400}},{"index":1,"processes":{"101":943718400}},{"index":2,"processes":{"102":943718400}},{"index":3,"processes":{"103":943718400}}]}
{"event":"process.end","rank":0,"host":"node1","pid":100,"exit_code":0}
{"event":"process.end","rank":1,"host":"node1","pid":101,"exit_code":0}
{"event":"process.end","rank":2,"host":"node1","pid":102,"exit_code":0}
{"event":"process.end","rank":3,"host":"node1","pid":103,"exit_code":0}
"""

OTHER_PROCESSES = """{"event":"launcher.start","launcher":"torchrun","host":"node1","pid":1}
{"event":"process.start","rank":0,"local_rank":0,"world_size":4,"host":"node1","pid":100}
{"event":"process.start","rank":1,"local_rank":1,"world_size":4,"host":"node1","pid":101}
{"event":"process.start","rank":2,"local_rank":2,"world_size":4,"host":"node1","pid":102}
{"event":"process.start","rank":3,"local_rank":3,"world_size":4,"host":"node1","pid":103}
{"event":"device.state","rank":0,"host":"node1","pid":100,"when":"ddp.init end","current":"gcu:0"}
{"event":"device.state","rank":1,"host":"node1","pid":101,"when":"ddp.init end","current":"gcu:1"}
{"event":"device.state","rank":2,"host":"node1","pid":102,"when":"ddp.init end","current":"gcu:2"}
{"event":"device.state","rank":3,"host":"node1","pid":103,"when":"ddp.init end","current":"gcu:3"}
{"event":"cards.state","host":"node1","pid":1,"tool":"nvidia-smi","looks":9,"cards":[{"index":0,"processes":{"7100":943718400,"7101":943718400}},{"index":1,"processes":{"7102":943718400}},{"index":2,"processes":{"7103":943718400}},{"index":3,"processes":{}}]}
{"event":"process.end","rank":0,"host":"node1","pid":100,"exit_code":0}
{"event":"process.end","rank":1,"host":"node1","pid":101,"exit_code":0}
{"event":"process.end","rank":2,"host":"node1","pid":102,"exit_code":0}
{"event":"process.end","rank":3,"host":"node1","pid":103,"exit_code":0}
"""

CARD_0_RUNS_OUT = """{"event":"launcher.start","launcher":"torchrun","host":"node1","pid":1}
{"event":"process.start","rank":0,"local_rank":0,"world_size":4,"host":"node1","pid":100}
{"event":"process.start","rank":1,"local_rank":1,"world_size":4,"host":"node1","pid":101}
{"event":"process.start","rank":2,"local_rank":2,"world_size":4,"host":"node1","pid":102}
{"event":"process.start","rank":3,"local_rank":3,"world_size":4,"host":"node1","pid":103}
{"event":"device.state","rank":0,"host":"node1","pid":100,"when":"ddp.init end","current":"gcu:0"}
{"event":"device.state","rank":1,"host":"node1","pid":101,"when":"ddp.init end","current":"gcu:1"}
{"event":"device.state","rank":2,"host":"node1","pid":102,"when":"ddp.init end","current":"gcu:2"}
{"event":"device.state","rank":3,"host":"node1","pid":103,"when":"ddp.init end","current":"gcu:3"}
{"event":"cards.state","host":"node1","pid":1,"tool":"nvidia-smi","looks":9,"cards":[{"index":0,"processes":{"100":943718400,"101":943718400,"102":943718400,"103":943718400}},{"index":1,"processes":{}},{"index":2,"processes":{}},{"index":3,"processes":{}},{"index":4,"processes":{}},{"index":5,"processes":{}},{"index":6,"processes":{}},{"index":7,"processes":{}}]}
{"event":"process.end","rank":0,"host":"node1","pid":100,"exit_code":1,"uncaught":true,"failure":{"type":"RuntimeError","message":"Connection closed by peer [127.0.0.1]:5555"}}
{"event":"process.end","rank":1,"host":"node1","pid":101,"exit_code":1,"uncaught":true,"failure":{"type":"RuntimeError","message":"Connection closed by peer [127.0.0.1]:5555"}}
{"event":"process.end","rank":2,"host":"node1","pid":102,"exit_code":1,"uncaught":true,"failure":{"type":"torch.OutOfMemoryError","message":"GCU out of memory. Tried to allocate 2.00 GiB.","frames":[{"file":"/train/train.py","line":31,"function":"main"}]}}
{"event":"process.end","rank":3,"host":"node1","pid":103,"exit_code":1,"uncaught":true,"failure":{"type":"RuntimeError","message":"Connection closed by peer [127.0.0.1]:5555"}}
"""
