"""Lines of the rule memory-of-one-rank."""

RANK_0_KEEPS_A_CHECKPOINT = """{"event":"process.start","rank":0,"local_rank":0,"world_size":4,"host":"node1","ts":"2026-11-24T12:00:00.000000Z"}
{"event":"process.start","rank":1,"local_rank":1,"world_size":4,"host":"node1","ts":"2026-11-24T12:00:00.000000Z"}
{"event":"process.start","rank":2,"local_rank":2,"world_size":4,"host":"node1","ts":"2026-11-24T12:00:00.000000Z"}
{"event":"process.start","rank":3,"local_rank":3,"world_size":4,"host":"node1","ts":"2026-11-24T12:00:00.000000Z"}
{"event":"ddp.init","phase":"begin","rank":0,"host":"node1","span":1,"ts":"2026-11-24T12:00:02.000000Z","site":{"file":"train.py","line":20,"function":"main"},"placement":{"model":"Net","digest":"ab"}}
{"event":"ddp.init","phase":"end","rank":0,"host":"node1","span":1,"ts":"2026-11-24T12:00:03.000000Z"}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:00:03.000000Z","when":"ddp.init end","current":"gcu:0","devices":[{"device":"gcu:0","allocated":524288000,"allocated_peak":524288000}]}
{"event":"checkpoint.load","phase":"begin","rank":0,"host":"node1","span":2,"ts":"2026-11-24T12:00:05.000000Z","site":{"file":"train.py","line":31,"function":"main"}}
{"event":"checkpoint.load","phase":"end","rank":0,"host":"node1","span":2,"ts":"2026-11-24T12:00:06.000000Z"}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:00:06.000000Z","when":"checkpoint.load end","current":"gcu:0","devices":[{"device":"gcu:0","allocated":3670016000,"allocated_peak":3670016000}]}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:00:20.000000Z","when":"periodic","current":"gcu:0","devices":[{"device":"gcu:0","allocated":4194304000,"allocated_peak":4194304000}],"step":40}
{"event":"ddp.init","phase":"begin","rank":1,"host":"node1","span":1,"ts":"2026-11-24T12:00:02.000000Z","site":{"file":"train.py","line":20,"function":"main"},"placement":{"model":"Net","digest":"ab"}}
{"event":"ddp.init","phase":"end","rank":1,"host":"node1","span":1,"ts":"2026-11-24T12:00:03.000000Z"}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:00:03.000000Z","when":"ddp.init end","current":"gcu:1","devices":[{"device":"gcu:1","allocated":524288000,"allocated_peak":524288000}]}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:00:20.000000Z","when":"periodic","current":"gcu:1","devices":[{"device":"gcu:1","allocated":1059061760,"allocated_peak":1059061760}],"step":40}
{"event":"ddp.init","phase":"begin","rank":2,"host":"node1","span":1,"ts":"2026-11-24T12:00:02.000000Z","site":{"file":"train.py","line":20,"function":"main"},"placement":{"model":"Net","digest":"ab"}}
{"event":"ddp.init","phase":"end","rank":2,"host":"node1","span":1,"ts":"2026-11-24T12:00:03.000000Z"}
{"event":"device.state","rank":2,"host":"node1","ts":"2026-11-24T12:00:03.000000Z","when":"ddp.init end","current":"gcu:2","devices":[{"device":"gcu:2","allocated":524288000,"allocated_peak":524288000}]}
{"event":"device.state","rank":2,"host":"node1","ts":"2026-11-24T12:00:20.000000Z","when":"periodic","current":"gcu:2","devices":[{"device":"gcu:2","allocated":1069547520,"allocated_peak":1069547520}],"step":40}
{"event":"ddp.init","phase":"begin","rank":3,"host":"node1","span":1,"ts":"2026-11-24T12:00:02.000000Z","site":{"file":"train.py","line":20,"function":"main"},"placement":{"model":"Net","digest":"ab"}}
{"event":"ddp.init","phase":"end","rank":3,"host":"node1","span":1,"ts":"2026-11-24T12:00:03.000000Z"}
{"event":"device.state","rank":3,"host":"node1","ts":"2026-11-24T12:00:03.000000Z","when":"ddp.init end","current":"gcu:3","devices":[{"device":"gcu:3","allocated":524288000,"allocated_peak":524288000}]}
{"event":"device.state","rank":3,"host":"node1","ts":"2026-11-24T12:00:20.000000Z","when":"periodic","current":"gcu:3","devices":[{"device":"gcu:3","allocated":1080033280,"allocated_peak":1080033280}],"step":40}
{"event":"process.end","rank":0,"exit_code":0,"ts":"2026-11-24T13:00:00.000000Z"}
{"event":"process.end","rank":1,"exit_code":0,"ts":"2026-11-24T13:00:00.000000Z"}
{"event":"process.end","rank":2,"exit_code":0,"ts":"2026-11-24T13:00:00.000000Z"}
{"event":"process.end","rank":3,"exit_code":0,"ts":"2026-11-24T13:00:00.000000Z"}
"""

FOUR_RANKS_ALIKE = """{"event":"process.start","rank":0,"local_rank":0,"world_size":4,"host":"node1","ts":"2026-11-24T12:00:00.000000Z"}
{"event":"process.start","rank":1,"local_rank":1,"world_size":4,"host":"node1","ts":"2026-11-24T12:00:00.000000Z"}
{"event":"process.start","rank":2,"local_rank":2,"world_size":4,"host":"node1","ts":"2026-11-24T12:00:00.000000Z"}
{"event":"process.start","rank":3,"local_rank":3,"world_size":4,"host":"node1","ts":"2026-11-24T12:00:00.000000Z"}
{"event":"ddp.init","phase":"begin","rank":0,"host":"node1","span":1,"ts":"2026-11-24T12:00:02.000000Z","site":{"file":"train.py","line":20,"function":"main"},"placement":{"model":"Net","digest":"ab"}}
{"event":"ddp.init","phase":"end","rank":0,"host":"node1","span":1,"ts":"2026-11-24T12:00:03.000000Z"}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:00:03.000000Z","when":"ddp.init end","current":"gcu:0","devices":[{"device":"gcu:0","allocated":524288000,"allocated_peak":524288000}]}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:00:20.000000Z","when":"periodic","current":"gcu:0","devices":[{"device":"gcu:0","allocated":1048576000,"allocated_peak":1048576000}],"step":40}
{"event":"ddp.init","phase":"begin","rank":1,"host":"node1","span":1,"ts":"2026-11-24T12:00:02.000000Z","site":{"file":"train.py","line":20,"function":"main"},"placement":{"model":"Net","digest":"ab"}}
{"event":"ddp.init","phase":"end","rank":1,"host":"node1","span":1,"ts":"2026-11-24T12:00:03.000000Z"}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:00:03.000000Z","when":"ddp.init end","current":"gcu:1","devices":[{"device":"gcu:1","allocated":524288000,"allocated_peak":524288000}]}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:00:20.000000Z","when":"periodic","current":"gcu:1","devices":[{"device":"gcu:1","allocated":1059061760,"allocated_peak":1059061760}],"step":40}
{"event":"ddp.init","phase":"begin","rank":2,"host":"node1","span":1,"ts":"2026-11-24T12:00:02.000000Z","site":{"file":"train.py","line":20,"function":"main"},"placement":{"model":"Net","digest":"ab"}}
{"event":"ddp.init","phase":"end","rank":2,"host":"node1","span":1,"ts":"2026-11-24T12:00:03.000000Z"}
{"event":"device.state","rank":2,"host":"node1","ts":"2026-11-24T12:00:03.000000Z","when":"ddp.init end","current":"gcu:2","devices":[{"device":"gcu:2","allocated":524288000,"allocated_peak":524288000}]}
{"event":"device.state","rank":2,"host":"node1","ts":"2026-11-24T12:00:20.000000Z","when":"periodic","current":"gcu:2","devices":[{"device":"gcu:2","allocated":1069547520,"allocated_peak":1069547520}],"step":40}
{"event":"ddp.init","phase":"begin","rank":3,"host":"node1","span":1,"ts":"2026-11-24T12:00:02.000000Z","site":{"file":"train.py","line":20,"function":"main"},"placement":{"model":"Net","digest":"ab"}}
{"event":"ddp.init","phase":"end","rank":3,"host":"node1","span":1,"ts":"2026-11-24T12:00:03.000000Z"}
{"event":"device.state","rank":3,"host":"node1","ts":"2026-11-24T12:00:03.000000Z","when":"ddp.init end","current":"gcu:3","devices":[{"device":"gcu:3","allocated":524288000,"allocated_peak":524288000}]}
{"event":"device.state","rank":3,"host":"node1","ts":"2026-11-24T12:00:20.000000Z","when":"periodic","current":"gcu:3","devices":[{"device":"gcu:3","allocated":1080033280,"allocated_peak":1080033280}],"step":40}
{"event":"process.end","rank":0,"exit_code":0,"ts":"2026-11-24T13:00:00.000000Z"}
{"event":"process.end","rank":1,"exit_code":0,"ts":"2026-11-24T13:00:00.000000Z"}
{"event":"process.end","rank":2,"exit_code":0,"ts":"2026-11-24T13:00:00.000000Z"}
{"event":"process.end","rank":3,"exit_code":0,"ts":"2026-11-24T13:00:00.000000Z"}
"""

STAGES_OF_A_PIPELINE = """{"event":"process.start","rank":0,"local_rank":0,"world_size":4,"host":"node1","ts":"2026-11-24T12:00:00.000000Z"}
{"event":"process.start","rank":1,"local_rank":1,"world_size":4,"host":"node1","ts":"2026-11-24T12:00:00.000000Z"}
{"event":"process.start","rank":2,"local_rank":2,"world_size":4,"host":"node1","ts":"2026-11-24T12:00:00.000000Z"}
{"event":"process.start","rank":3,"local_rank":3,"world_size":4,"host":"node1","ts":"2026-11-24T12:00:00.000000Z"}
{"event":"ddp.init","phase":"begin","rank":0,"host":"node1","span":1,"ts":"2026-11-24T12:00:02.000000Z","site":{"file":"train.py","line":20,"function":"main"},"placement":{"model":"Net","digest":"a0"}}
{"event":"ddp.init","phase":"end","rank":0,"host":"node1","span":1,"ts":"2026-11-24T12:00:03.000000Z"}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:00:03.000000Z","when":"ddp.init end","current":"gcu:0","devices":[{"device":"gcu:0","allocated":524288000,"allocated_peak":524288000}]}
{"event":"checkpoint.load","phase":"begin","rank":0,"host":"node1","span":2,"ts":"2026-11-24T12:00:05.000000Z","site":{"file":"train.py","line":31,"function":"main"}}
{"event":"checkpoint.load","phase":"end","rank":0,"host":"node1","span":2,"ts":"2026-11-24T12:00:06.000000Z"}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:00:06.000000Z","when":"checkpoint.load end","current":"gcu:0","devices":[{"device":"gcu:0","allocated":3670016000,"allocated_peak":3670016000}]}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:00:20.000000Z","when":"periodic","current":"gcu:0","devices":[{"device":"gcu:0","allocated":4194304000,"allocated_peak":4194304000}],"step":40}
{"event":"ddp.init","phase":"begin","rank":1,"host":"node1","span":1,"ts":"2026-11-24T12:00:02.000000Z","site":{"file":"train.py","line":20,"function":"main"},"placement":{"model":"Net","digest":"a1"}}
{"event":"ddp.init","phase":"end","rank":1,"host":"node1","span":1,"ts":"2026-11-24T12:00:03.000000Z"}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:00:03.000000Z","when":"ddp.init end","current":"gcu:1","devices":[{"device":"gcu:1","allocated":524288000,"allocated_peak":524288000}]}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:00:20.000000Z","when":"periodic","current":"gcu:1","devices":[{"device":"gcu:1","allocated":1059061760,"allocated_peak":1059061760}],"step":40}
{"event":"ddp.init","phase":"begin","rank":2,"host":"node1","span":1,"ts":"2026-11-24T12:00:02.000000Z","site":{"file":"train.py","line":20,"function":"main"},"placement":{"model":"Net","digest":"a2"}}
{"event":"ddp.init","phase":"end","rank":2,"host":"node1","span":1,"ts":"2026-11-24T12:00:03.000000Z"}
{"event":"device.state","rank":2,"host":"node1","ts":"2026-11-24T12:00:03.000000Z","when":"ddp.init end","current":"gcu:2","devices":[{"device":"gcu:2","allocated":524288000,"allocated_peak":524288000}]}
{"event":"device.state","rank":2,"host":"node1","ts":"2026-11-24T12:00:20.000000Z","when":"periodic","current":"gcu:2","devices":[{"device":"gcu:2","allocated":1069547520,"allocated_peak":1069547520}],"step":40}
{"event":"ddp.init","phase":"begin","rank":3,"host":"node1","span":1,"ts":"2026-11-24T12:00:02.000000Z","site":{"file":"train.py","line":20,"function":"main"},"placement":{"model":"Net","digest":"a3"}}
{"event":"ddp.init","phase":"end","rank":3,"host":"node1","span":1,"ts":"2026-11-24T12:00:03.000000Z"}
{"event":"device.state","rank":3,"host":"node1","ts":"2026-11-24T12:00:03.000000Z","when":"ddp.init end","current":"gcu:3","devices":[{"device":"gcu:3","allocated":524288000,"allocated_peak":524288000}]}
{"event":"device.state","rank":3,"host":"node1","ts":"2026-11-24T12:00:20.000000Z","when":"periodic","current":"gcu:3","devices":[{"device":"gcu:3","allocated":1080033280,"allocated_peak":1080033280}],"step":40}
{"event":"process.end","rank":0,"exit_code":0,"ts":"2026-11-24T13:00:00.000000Z"}
{"event":"process.end","rank":1,"exit_code":0,"ts":"2026-11-24T13:00:00.000000Z"}
{"event":"process.end","rank":2,"exit_code":0,"ts":"2026-11-24T13:00:00.000000Z"}
{"event":"process.end","rank":3,"exit_code":0,"ts":"2026-11-24T13:00:00.000000Z"}
"""
