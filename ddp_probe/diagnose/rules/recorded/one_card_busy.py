"""Lines of the rule one-card-busy."""

CARD_0_WORKS_FOR_ALL = """{"event":"launcher.start","launcher":"torchrun","host":"node1","pid":1}
{"event":"process.start","rank":0,"local_rank":0,"world_size":4,"host":"node1","pid":100}
{"event":"process.start","rank":1,"local_rank":1,"world_size":4,"host":"node1","pid":101}
{"event":"process.start","rank":2,"local_rank":2,"world_size":4,"host":"node1","pid":102}
{"event":"process.start","rank":3,"local_rank":3,"world_size":4,"host":"node1","pid":103}
{"event":"device.state","rank":0,"host":"node1","pid":100,"when":"ddp.init end","current":"gcu:0"}
{"event":"device.state","rank":1,"host":"node1","pid":101,"when":"ddp.init end","current":"gcu:1"}
{"event":"device.state","rank":2,"host":"node1","pid":102,"when":"ddp.init end","current":"gcu:2"}
{"event":"device.state","rank":3,"host":"node1","pid":103,"when":"ddp.init end","current":"gcu:3"}
{"event":"cards.state","host":"node1","pid":1,"tool":"efsmi","looks":40,"cards":[{"index":0,"utilisation":85.0,"utilisation_mean":85.0},{"index":1,"utilisation":0.0,"utilisation_mean":0.0},{"index":2,"utilisation":0.0,"utilisation_mean":0.0},{"index":3,"utilisation":0.0,"utilisation_mean":0.0},{"index":4,"utilisation":0.4,"utilisation_mean":0.4},{"index":5,"utilisation":0.0,"utilisation_mean":0.0},{"index":6,"utilisation":0.0,"utilisation_mean":0.0},{"index":7,"utilisation":0.0,"utilisation_mean":0.0}]}
{"event":"process.end","rank":0,"host":"node1","pid":100,"exit_code":0}
{"event":"process.end","rank":1,"host":"node1","pid":101,"exit_code":0}
{"event":"process.end","rank":2,"host":"node1","pid":102,"exit_code":0}
{"event":"process.end","rank":3,"host":"node1","pid":103,"exit_code":0}
"""

EACH_CARD_WORKS = """{"event":"launcher.start","launcher":"torchrun","host":"node1","pid":1}
{"event":"process.start","rank":0,"local_rank":0,"world_size":4,"host":"node1","pid":100}
{"event":"process.start","rank":1,"local_rank":1,"world_size":4,"host":"node1","pid":101}
{"event":"process.start","rank":2,"local_rank":2,"world_size":4,"host":"node1","pid":102}
{"event":"process.start","rank":3,"local_rank":3,"world_size":4,"host":"node1","pid":103}
{"event":"device.state","rank":0,"host":"node1","pid":100,"when":"ddp.init end","current":"gcu:0"}
{"event":"device.state","rank":1,"host":"node1","pid":101,"when":"ddp.init end","current":"gcu:1"}
{"event":"device.state","rank":2,"host":"node1","pid":102,"when":"ddp.init end","current":"gcu:2"}
{"event":"device.state","rank":3,"host":"node1","pid":103,"when":"ddp.init end","current":"gcu:3"}
{"event":"cards.state","host":"node1","pid":1,"tool":"efsmi","looks":40,"cards":[{"index":0,"utilisation":85.0,"utilisation_mean":85.0},{"index":1,"utilisation":81.0,"utilisation_mean":81.0},{"index":2,"utilisation":70.0,"utilisation_mean":70.0},{"index":3,"utilisation":84.0,"utilisation_mean":84.0},{"index":4,"utilisation":0.0,"utilisation_mean":0.0},{"index":5,"utilisation":0.0,"utilisation_mean":0.0},{"index":6,"utilisation":0.0,"utilisation_mean":0.0},{"index":7,"utilisation":0.0,"utilisation_mean":0.0}]}
{"event":"process.end","rank":0,"host":"node1","pid":100,"exit_code":0}
{"event":"process.end","rank":1,"host":"node1","pid":101,"exit_code":0}
{"event":"process.end","rank":2,"host":"node1","pid":102,"exit_code":0}
{"event":"process.end","rank":3,"host":"node1","pid":103,"exit_code":0}
"""

BEGUN_A_MOMENT_AGO = """{"event":"launcher.start","launcher":"torchrun","host":"node1","pid":1}
{"event":"process.start","rank":0,"local_rank":0,"world_size":4,"host":"node1","pid":100}
{"event":"process.start","rank":1,"local_rank":1,"world_size":4,"host":"node1","pid":101}
{"event":"process.start","rank":2,"local_rank":2,"world_size":4,"host":"node1","pid":102}
{"event":"process.start","rank":3,"local_rank":3,"world_size":4,"host":"node1","pid":103}
{"event":"device.state","rank":0,"host":"node1","pid":100,"when":"ddp.init end","current":"gcu:0"}
{"event":"device.state","rank":1,"host":"node1","pid":101,"when":"ddp.init end","current":"gcu:1"}
{"event":"device.state","rank":2,"host":"node1","pid":102,"when":"ddp.init end","current":"gcu:2"}
{"event":"device.state","rank":3,"host":"node1","pid":103,"when":"ddp.init end","current":"gcu:3"}
{"event":"cards.state","host":"node1","pid":1,"tool":"efsmi","looks":1,"cards":[{"index":0,"utilisation":85.0,"utilisation_mean":85.0},{"index":1,"utilisation":0.0,"utilisation_mean":0.0},{"index":2,"utilisation":0.0,"utilisation_mean":0.0},{"index":3,"utilisation":0.0,"utilisation_mean":0.0},{"index":4,"utilisation":0.0,"utilisation_mean":0.0},{"index":5,"utilisation":0.0,"utilisation_mean":0.0},{"index":6,"utilisation":0.0,"utilisation_mean":0.0},{"index":7,"utilisation":0.0,"utilisation_mean":0.0}]}
{"event":"process.end","rank":0,"host":"node1","pid":100,"exit_code":0}
{"event":"process.end","rank":1,"host":"node1","pid":101,"exit_code":0}
{"event":"process.end","rank":2,"host":"node1","pid":102,"exit_code":0}
{"event":"process.end","rank":3,"host":"node1","pid":103,"exit_code":0}
"""

RANKS_ON_THE_CPU = """{"event":"launcher.start","launcher":"torchrun","host":"node1","pid":1}
{"event":"process.start","rank":0,"local_rank":0,"world_size":4,"host":"node1","pid":100}
{"event":"process.start","rank":1,"local_rank":1,"world_size":4,"host":"node1","pid":101}
{"event":"process.start","rank":2,"local_rank":2,"world_size":4,"host":"node1","pid":102}
{"event":"process.start","rank":3,"local_rank":3,"world_size":4,"host":"node1","pid":103}
{"event":"cards.state","host":"node1","pid":1,"tool":"efsmi","looks":40,"cards":[{"index":0,"utilisation":85.0,"utilisation_mean":85.0},{"index":1,"utilisation":0.0,"utilisation_mean":0.0},{"index":2,"utilisation":0.0,"utilisation_mean":0.0},{"index":3,"utilisation":0.0,"utilisation_mean":0.0},{"index":4,"utilisation":0.4,"utilisation_mean":0.4},{"index":5,"utilisation":0.0,"utilisation_mean":0.0},{"index":6,"utilisation":0.0,"utilisation_mean":0.0},{"index":7,"utilisation":0.0,"utilisation_mean":0.0}]}
{"event":"process.end","rank":0,"host":"node1","pid":100,"exit_code":0}
{"event":"process.end","rank":1,"host":"node1","pid":101,"exit_code":0}
{"event":"process.end","rank":2,"host":"node1","pid":102,"exit_code":0}
{"event":"process.end","rank":3,"host":"node1","pid":103,"exit_code":0}
"""
