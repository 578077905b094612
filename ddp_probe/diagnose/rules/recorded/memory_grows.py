"""Lines of the rule memory-grows."""

EACH_EPOCH_KEEPS = """{"event":"process.start","rank":0,"local_rank":0,"world_size":2,"host":"node1","ts":"2026-11-24T12:00:00.000000Z"}
{"event":"process.start","rank":1,"local_rank":1,"world_size":2,"host":"node1","ts":"2026-11-24T12:00:00.000000Z"}
{"event":"ddp.init","phase":"begin","rank":0,"host":"node1","span":1,"ts":"2026-11-24T12:00:02.000000Z","site":{"file":"train.py","line":20,"function":"main"},"placement":{"model":"Net","digest":"ab"}}
{"event":"ddp.init","phase":"end","rank":0,"host":"node1","span":1,"ts":"2026-11-24T12:00:03.000000Z"}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:00:03.000000Z","when":"ddp.init end","current":"gcu:0","devices":[{"device":"gcu:0","allocated":524288000,"allocated_peak":524288000}]}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:00:00.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":734003200,"allocated_peak":786432000}],"step":3}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:01:05.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":838860800,"allocated_peak":891289600}],"step":103}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:02:10.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":943718400,"allocated_peak":996147200}],"step":203}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:03:15.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":1048576000,"allocated_peak":1101004800}],"step":303}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:04:20.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":1153433600,"allocated_peak":1205862400}],"step":403}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:05:25.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":1258291200,"allocated_peak":1310720000}],"step":503}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:06:30.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":1363148800,"allocated_peak":1415577600}],"step":603}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:07:35.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":1468006400,"allocated_peak":1520435200}],"step":703}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:08:40.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":1572864000,"allocated_peak":1625292800}],"step":803}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:09:45.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":1677721600,"allocated_peak":1730150400}],"step":903}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:10:50.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":1782579200,"allocated_peak":1835008000}],"step":1003}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:11:55.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":1887436800,"allocated_peak":1939865600}],"step":1103}
{"event":"ddp.init","phase":"begin","rank":1,"host":"node1","span":1,"ts":"2026-11-24T12:00:02.000000Z","site":{"file":"train.py","line":20,"function":"main"},"placement":{"model":"Net","digest":"ab"}}
{"event":"ddp.init","phase":"end","rank":1,"host":"node1","span":1,"ts":"2026-11-24T12:00:03.000000Z"}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:00:03.000000Z","when":"ddp.init end","current":"gcu:1","devices":[{"device":"gcu:1","allocated":524288000,"allocated_peak":524288000}]}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:00:00.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":734003200,"allocated_peak":786432000}],"step":3}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:01:05.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":838860800,"allocated_peak":891289600}],"step":103}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:02:10.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":943718400,"allocated_peak":996147200}],"step":203}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:03:15.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":1048576000,"allocated_peak":1101004800}],"step":303}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:04:20.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":1153433600,"allocated_peak":1205862400}],"step":403}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:05:25.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":1258291200,"allocated_peak":1310720000}],"step":503}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:06:30.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":1363148800,"allocated_peak":1415577600}],"step":603}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:07:35.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":1468006400,"allocated_peak":1520435200}],"step":703}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:08:40.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":1572864000,"allocated_peak":1625292800}],"step":803}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:09:45.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":1677721600,"allocated_peak":1730150400}],"step":903}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:10:50.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":1782579200,"allocated_peak":1835008000}],"step":1003}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:11:55.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":1887436800,"allocated_peak":1939865600}],"step":1103}
{"event":"process.end","rank":0,"exit_code":0,"ts":"2026-11-24T13:00:00.000000Z"}
{"event":"process.end","rank":1,"exit_code":0,"ts":"2026-11-24T13:00:00.000000Z"}
"""

HOST_OF_RANK_1 = """{"event":"process.start","rank":0,"local_rank":0,"world_size":2,"host":"node1","ts":"2026-11-24T12:00:00.000000Z"}
{"event":"process.start","rank":1,"local_rank":1,"world_size":2,"host":"node1","ts":"2026-11-24T12:00:00.000000Z"}
{"event":"ddp.init","phase":"begin","rank":0,"host":"node1","span":1,"ts":"2026-11-24T12:00:02.000000Z","site":{"file":"train.py","line":20,"function":"main"},"placement":{"model":"Net","digest":"ab"}}
{"event":"ddp.init","phase":"end","rank":0,"host":"node1","span":1,"ts":"2026-11-24T12:00:03.000000Z"}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:00:03.000000Z","when":"ddp.init end","current":"gcu:0","devices":[{"device":"gcu:0","allocated":524288000,"allocated_peak":524288000}]}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:00:00.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":734003200,"allocated_peak":786432000}],"system":{"anonymous":2097152000},"step":3}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:01:05.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":734003200,"allocated_peak":786432000}],"system":{"anonymous":2098200576},"step":103}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:02:10.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":734003200,"allocated_peak":786432000}],"system":{"anonymous":2099249152},"step":203}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:03:15.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":734003200,"allocated_peak":786432000}],"system":{"anonymous":2097152000},"step":303}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:04:20.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":734003200,"allocated_peak":786432000}],"system":{"anonymous":2098200576},"step":403}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:05:25.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":734003200,"allocated_peak":786432000}],"system":{"anonymous":2099249152},"step":503}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:06:30.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":734003200,"allocated_peak":786432000}],"system":{"anonymous":2097152000},"step":603}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:07:35.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":734003200,"allocated_peak":786432000}],"system":{"anonymous":2098200576},"step":703}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:08:40.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":734003200,"allocated_peak":786432000}],"system":{"anonymous":2099249152},"step":803}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:09:45.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":734003200,"allocated_peak":786432000}],"system":{"anonymous":2097152000},"step":903}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:10:50.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":734003200,"allocated_peak":786432000}],"system":{"anonymous":2098200576},"step":1003}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:11:55.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":734003200,"allocated_peak":786432000}],"system":{"anonymous":2099249152},"step":1103}
{"event":"ddp.init","phase":"begin","rank":1,"host":"node1","span":1,"ts":"2026-11-24T12:00:02.000000Z","site":{"file":"train.py","line":20,"function":"main"},"placement":{"model":"Net","digest":"ab"}}
{"event":"ddp.init","phase":"end","rank":1,"host":"node1","span":1,"ts":"2026-11-24T12:00:03.000000Z"}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:00:03.000000Z","when":"ddp.init end","current":"gcu:1","devices":[{"device":"gcu:1","allocated":524288000,"allocated_peak":524288000}]}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:00:00.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":734003200,"allocated_peak":786432000}],"system":{"anonymous":2097152000},"step":3}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:01:05.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":734003200,"allocated_peak":786432000}],"system":{"anonymous":2254438400},"step":103}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:02:10.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":734003200,"allocated_peak":786432000}],"system":{"anonymous":2411724800},"step":203}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:03:15.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":734003200,"allocated_peak":786432000}],"system":{"anonymous":2569011200},"step":303}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:04:20.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":734003200,"allocated_peak":786432000}],"system":{"anonymous":2726297600},"step":403}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:05:25.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":734003200,"allocated_peak":786432000}],"system":{"anonymous":2883584000},"step":503}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:06:30.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":734003200,"allocated_peak":786432000}],"system":{"anonymous":3040870400},"step":603}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:07:35.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":734003200,"allocated_peak":786432000}],"system":{"anonymous":3198156800},"step":703}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:08:40.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":734003200,"allocated_peak":786432000}],"system":{"anonymous":3355443200},"step":803}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:09:45.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":734003200,"allocated_peak":786432000}],"system":{"anonymous":3512729600},"step":903}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:10:50.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":734003200,"allocated_peak":786432000}],"system":{"anonymous":3670016000},"step":1003}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:11:55.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":734003200,"allocated_peak":786432000}],"system":{"anonymous":3827302400},"step":1103}
{"event":"process.end","rank":0,"exit_code":0,"ts":"2026-11-24T13:00:00.000000Z"}
{"event":"process.end","rank":1,"exit_code":0,"ts":"2026-11-24T13:00:00.000000Z"}
"""

UP_AND_DOWN = """{"event":"process.start","rank":0,"local_rank":0,"world_size":2,"host":"node1","ts":"2026-11-24T12:00:00.000000Z"}
{"event":"process.start","rank":1,"local_rank":1,"world_size":2,"host":"node1","ts":"2026-11-24T12:00:00.000000Z"}
{"event":"ddp.init","phase":"begin","rank":0,"host":"node1","span":1,"ts":"2026-11-24T12:00:02.000000Z","site":{"file":"train.py","line":20,"function":"main"},"placement":{"model":"Net","digest":"ab"}}
{"event":"ddp.init","phase":"end","rank":0,"host":"node1","span":1,"ts":"2026-11-24T12:00:03.000000Z"}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:00:03.000000Z","when":"ddp.init end","current":"gcu:0","devices":[{"device":"gcu:0","allocated":524288000,"allocated_peak":524288000}]}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:00:00.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":943718400,"allocated_peak":943718400}],"step":3}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:01:05.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":1258291200,"allocated_peak":1258291200}],"step":103}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:02:10.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":996147200,"allocated_peak":1258291200}],"step":203}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:03:15.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":1153433600,"allocated_peak":1258291200}],"step":303}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:04:20.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":1363148800,"allocated_peak":1363148800}],"step":403}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:05:25.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":943718400,"allocated_peak":1363148800}],"step":503}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:06:30.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":1310720000,"allocated_peak":1363148800}],"step":603}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:07:35.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":1048576000,"allocated_peak":1363148800}],"step":703}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:08:40.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":1205862400,"allocated_peak":1363148800}],"step":803}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:09:45.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":943718400,"allocated_peak":1363148800}],"step":903}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:10:50.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":1363148800,"allocated_peak":1363148800}],"step":1003}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:11:55.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":1027604480,"allocated_peak":1363148800}],"step":1103}
{"event":"ddp.init","phase":"begin","rank":1,"host":"node1","span":1,"ts":"2026-11-24T12:00:02.000000Z","site":{"file":"train.py","line":20,"function":"main"},"placement":{"model":"Net","digest":"ab"}}
{"event":"ddp.init","phase":"end","rank":1,"host":"node1","span":1,"ts":"2026-11-24T12:00:03.000000Z"}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:00:03.000000Z","when":"ddp.init end","current":"gcu:1","devices":[{"device":"gcu:1","allocated":524288000,"allocated_peak":524288000}]}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:00:00.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":1258291200,"allocated_peak":943718400}],"step":3}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:01:05.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":996147200,"allocated_peak":1258291200}],"step":103}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:02:10.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":1153433600,"allocated_peak":1258291200}],"step":203}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:03:15.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":1363148800,"allocated_peak":1258291200}],"step":303}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:04:20.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":943718400,"allocated_peak":1363148800}],"step":403}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:05:25.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":1310720000,"allocated_peak":1363148800}],"step":503}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:06:30.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":1048576000,"allocated_peak":1363148800}],"step":603}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:07:35.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":1205862400,"allocated_peak":1363148800}],"step":703}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:08:40.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":943718400,"allocated_peak":1363148800}],"step":803}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:09:45.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":1363148800,"allocated_peak":1363148800}],"step":903}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:10:50.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":1027604480,"allocated_peak":1363148800}],"step":1003}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:11:55.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":943718400,"allocated_peak":1363148800}],"step":1103}
{"event":"process.end","rank":0,"exit_code":0,"ts":"2026-11-24T13:00:00.000000Z"}
{"event":"process.end","rank":1,"exit_code":0,"ts":"2026-11-24T13:00:00.000000Z"}
"""

FILLS_UP = """{"event":"process.start","rank":0,"local_rank":0,"world_size":2,"host":"node1","ts":"2026-11-24T12:00:00.000000Z"}
{"event":"process.start","rank":1,"local_rank":1,"world_size":2,"host":"node1","ts":"2026-11-24T12:00:00.000000Z"}
{"event":"ddp.init","phase":"begin","rank":0,"host":"node1","span":1,"ts":"2026-11-24T12:00:02.000000Z","site":{"file":"train.py","line":20,"function":"main"},"placement":{"model":"Net","digest":"ab"}}
{"event":"ddp.init","phase":"end","rank":0,"host":"node1","span":1,"ts":"2026-11-24T12:00:03.000000Z"}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:00:03.000000Z","when":"ddp.init end","current":"gcu:0","devices":[{"device":"gcu:0","allocated":524288000,"allocated_peak":524288000}]}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:00:00.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":734003200,"allocated_peak":744488960}],"step":3}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:01:05.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":1048576000,"allocated_peak":1059061760}],"step":103}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:02:10.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":1258291200,"allocated_peak":1268776960}],"step":203}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:03:15.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":1384120320,"allocated_peak":1394606080}],"step":303}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:04:20.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":1457520640,"allocated_peak":1468006400}],"step":403}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:05:25.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":1499463680,"allocated_peak":1509949440}],"step":503}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:06:30.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":1520435200,"allocated_peak":1530920960}],"step":603}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:07:35.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":1530920960,"allocated_peak":1541406720}],"step":703}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:08:40.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":1536163840,"allocated_peak":1546649600}],"step":803}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:09:45.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":1538260992,"allocated_peak":1548746752}],"step":903}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:10:50.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":1539309568,"allocated_peak":1549795328}],"step":1003}
{"event":"device.state","rank":0,"host":"node1","ts":"2026-11-24T12:11:55.000000Z","when":"checkpoint.save begin","current":"gcu:0","devices":[{"device":"gcu:0","allocated":1539309568,"allocated_peak":1549795328}],"step":1103}
{"event":"ddp.init","phase":"begin","rank":1,"host":"node1","span":1,"ts":"2026-11-24T12:00:02.000000Z","site":{"file":"train.py","line":20,"function":"main"},"placement":{"model":"Net","digest":"ab"}}
{"event":"ddp.init","phase":"end","rank":1,"host":"node1","span":1,"ts":"2026-11-24T12:00:03.000000Z"}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:00:03.000000Z","when":"ddp.init end","current":"gcu:1","devices":[{"device":"gcu:1","allocated":524288000,"allocated_peak":524288000}]}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:00:00.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":734003200,"allocated_peak":744488960}],"step":3}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:01:05.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":1048576000,"allocated_peak":1059061760}],"step":103}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:02:10.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":1258291200,"allocated_peak":1268776960}],"step":203}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:03:15.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":1384120320,"allocated_peak":1394606080}],"step":303}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:04:20.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":1457520640,"allocated_peak":1468006400}],"step":403}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:05:25.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":1499463680,"allocated_peak":1509949440}],"step":503}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:06:30.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":1520435200,"allocated_peak":1530920960}],"step":603}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:07:35.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":1530920960,"allocated_peak":1541406720}],"step":703}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:08:40.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":1536163840,"allocated_peak":1546649600}],"step":803}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:09:45.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":1538260992,"allocated_peak":1548746752}],"step":903}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:10:50.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":1539309568,"allocated_peak":1549795328}],"step":1003}
{"event":"device.state","rank":1,"host":"node1","ts":"2026-11-24T12:11:55.000000Z","when":"checkpoint.save begin","current":"gcu:1","devices":[{"device":"gcu:1","allocated":1539309568,"allocated_peak":1549795328}],"step":1103}
{"event":"process.end","rank":0,"exit_code":0,"ts":"2026-11-24T13:00:00.000000Z"}
{"event":"process.end","rank":1,"exit_code":0,"ts":"2026-11-24T13:00:00.000000Z"}
"""
