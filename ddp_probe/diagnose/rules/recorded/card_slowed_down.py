"""Lines of the rule card-slowed-down."""

CARD_3_IS_TOO_HOT = """{"event":"launcher.start","launcher":"torchrun","host":"node1","pid":1}
{"event":"process.start","rank":0,"local_rank":0,"world_size":4,"host":"node1","pid":100}
{"event":"process.start","rank":1,"local_rank":1,"world_size":4,"host":"node1","pid":101}
{"event":"process.start","rank":2,"local_rank":2,"world_size":4,"host":"node1","pid":102}
{"event":"process.start","rank":3,"local_rank":3,"world_size":4,"host":"node1","pid":103}
{"event":"device.state","rank":0,"host":"node1","pid":100,"when":"ddp.init end","current":"gcu:0"}
{"event":"device.state","rank":1,"host":"node1","pid":101,"when":"ddp.init end","current":"gcu:1"}
{"event":"device.state","rank":2,"host":"node1","pid":102,"when":"ddp.init end","current":"gcu:2"}
{"event":"device.state","rank":3,"host":"node1","pid":103,"when":"ddp.init end","current":"gcu:3"}
{"event":"cards.state","host":"node1","pid":1,"tool":"nvidia-smi","looks":14,"cards":[{"index":0,"utilisation":90.0,"utilisation_mean":90.0,"temperature":60.0,"temperature_peak":64.0},{"index":1,"utilisation":90.0,"utilisation_mean":90.0,"temperature":60.0,"temperature_peak":64.0},{"index":2,"utilisation":90.0,"utilisation_mean":90.0,"temperature":60.0,"temperature_peak":64.0},{"index":3,"utilisation":90.0,"utilisation_mean":90.0,"temperature":60.0,"temperature_peak":92.0,"throttled":["hw_thermal"],"throttled_looks":{"hw_thermal":12}}]}
{"event":"process.end","rank":0,"host":"node1","pid":100,"exit_code":0}
{"event":"process.end","rank":1,"host":"node1","pid":101,"exit_code":0}
{"event":"process.end","rank":2,"host":"node1","pid":102,"exit_code":0}
{"event":"process.end","rank":3,"host":"node1","pid":103,"exit_code":0}
"""

CARD_1_HAS_ECC_ERRORS = """{"event":"launcher.start","launcher":"torchrun","host":"node1","pid":1}
{"event":"process.start","rank":0,"local_rank":0,"world_size":4,"host":"node1","pid":100}
{"event":"process.start","rank":1,"local_rank":1,"world_size":4,"host":"node1","pid":101}
{"event":"process.start","rank":2,"local_rank":2,"world_size":4,"host":"node1","pid":102}
{"event":"process.start","rank":3,"local_rank":3,"world_size":4,"host":"node1","pid":103}
{"event":"device.state","rank":0,"host":"node1","pid":100,"when":"ddp.init end","current":"gcu:0"}
{"event":"device.state","rank":1,"host":"node1","pid":101,"when":"ddp.init end","current":"gcu:1"}
{"event":"device.state","rank":2,"host":"node1","pid":102,"when":"ddp.init end","current":"gcu:2"}
{"event":"device.state","rank":3,"host":"node1","pid":103,"when":"ddp.init end","current":"gcu:3"}
{"event":"cards.state","host":"node1","pid":1,"tool":"nvidia-smi","looks":14,"cards":[{"index":0,"utilisation":90.0,"utilisation_mean":90.0,"temperature":60.0,"temperature_peak":64.0},{"index":1,"utilisation":90.0,"utilisation_mean":90.0,"temperature":60.0,"temperature_peak":64.0,"ecc":2,"ecc_before":0},{"index":2,"utilisation":90.0,"utilisation_mean":90.0,"temperature":60.0,"temperature_peak":64.0},{"index":3,"utilisation":90.0,"utilisation_mean":90.0,"temperature":60.0,"temperature_peak":64.0}]}
{"event":"process.end","rank":0,"host":"node1","pid":100,"exit_code":0}
{"event":"process.end","rank":1,"host":"node1","pid":101,"exit_code":0}
{"event":"process.end","rank":2,"host":"node1","pid":102,"exit_code":0}
{"event":"process.end","rank":3,"host":"node1","pid":103,"exit_code":0}
"""

AT_THE_POWER_CAP = """{"event":"launcher.start","launcher":"torchrun","host":"node1","pid":1}
{"event":"process.start","rank":0,"local_rank":0,"world_size":4,"host":"node1","pid":100}
{"event":"process.start","rank":1,"local_rank":1,"world_size":4,"host":"node1","pid":101}
{"event":"process.start","rank":2,"local_rank":2,"world_size":4,"host":"node1","pid":102}
{"event":"process.start","rank":3,"local_rank":3,"world_size":4,"host":"node1","pid":103}
{"event":"device.state","rank":0,"host":"node1","pid":100,"when":"ddp.init end","current":"gcu:0"}
{"event":"device.state","rank":1,"host":"node1","pid":101,"when":"ddp.init end","current":"gcu:1"}
{"event":"device.state","rank":2,"host":"node1","pid":102,"when":"ddp.init end","current":"gcu:2"}
{"event":"device.state","rank":3,"host":"node1","pid":103,"when":"ddp.init end","current":"gcu:3"}
{"event":"cards.state","host":"node1","pid":1,"tool":"nvidia-smi","looks":14,"cards":[{"index":0,"utilisation":90.0,"utilisation_mean":90.0,"temperature":60.0,"temperature_peak":64.0,"throttled":["power_cap"],"throttled_looks":{"power_cap":14}},{"index":1,"utilisation":90.0,"utilisation_mean":90.0,"temperature":60.0,"temperature_peak":64.0,"ecc":2,"ecc_before":2},{"index":2,"utilisation":90.0,"utilisation_mean":90.0,"temperature":60.0,"temperature_peak":64.0},{"index":3,"utilisation":90.0,"utilisation_mean":90.0,"temperature":60.0,"temperature_peak":64.0}]}
{"event":"process.end","rank":0,"host":"node1","pid":100,"exit_code":0}
{"event":"process.end","rank":1,"host":"node1","pid":101,"exit_code":0}
{"event":"process.end","rank":2,"host":"node1","pid":102,"exit_code":0}
{"event":"process.end","rank":3,"host":"node1","pid":103,"exit_code":0}
"""
