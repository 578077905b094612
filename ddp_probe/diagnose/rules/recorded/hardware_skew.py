"""Recorded logs of the rule hardware-skew."""

TWO_HOSTS_SHOW_EIGHT_CARDS = """{"event":"ddp.init","phase":"begin","rank":0,"local_rank":0,"world_size":3,"host":"node0","span":1,"placement":{"devices":{"cuda:0":{"count":4}}},"accelerators":[{"name":"cuda","device_type":"cuda","initialised":true,"count":8}]}
{"event":"ddp.init","phase":"end","rank":0,"host":"node0","span":1}
{"event":"ddp.init","phase":"begin","rank":1,"local_rank":0,"world_size":3,"host":"node1","span":1,"placement":{"devices":{"cuda:0":{"count":4}}},"accelerators":[{"name":"cuda","device_type":"cuda","initialised":true,"count":8}]}
{"event":"ddp.init","phase":"end","rank":1,"host":"node1","span":1}
{"event":"ddp.init","phase":"begin","rank":2,"local_rank":0,"world_size":3,"host":"node2","span":1,"placement":{"devices":{"cuda:0":{"count":4}}},"accelerators":[{"name":"cuda","device_type":"cuda","initialised":true,"count":7}]}
{"event":"ddp.init","phase":"end","rank":2,"host":"node2","span":1}"""

HOST_HAS_CARDS_OF_ANOTHER_VENDOR = """{"event":"ddp.init","phase":"begin","rank":0,"local_rank":0,"world_size":3,"host":"node0","span":1,"placement":{"devices":{"gcu:0":{"count":4}}},"accelerators":[{"name":"gcu","device_type":"gcu","initialised":true,"count":8}]}
{"event":"ddp.init","phase":"end","rank":0,"host":"node0","span":1}
{"event":"ddp.init","phase":"begin","rank":1,"local_rank":0,"world_size":3,"host":"node1","span":1,"placement":{"devices":{"npu:0":{"count":4}}},"accelerators":[{"name":"npu","device_type":"npu","initialised":true,"count":8}]}
{"event":"ddp.init","phase":"end","rank":1,"host":"node1","span":1}
{"event":"ddp.init","phase":"begin","rank":2,"local_rank":0,"world_size":3,"host":"node2","span":1,"placement":{"devices":{"gcu:0":{"count":4}}},"accelerators":[{"name":"gcu","device_type":"gcu","initialised":true,"count":8}]}
{"event":"ddp.init","phase":"end","rank":2,"host":"node2","span":1}"""

EACH_HOST_IS_TOLD_HOW_MANY_CARDS = """{"event":"process.start","rank":0,"local_rank":0,"world_size":2,"host":"node0","accelerators":[{"name":"cuda","device_type":"cuda","visible":{"CUDA_VISIBLE_DEVICES":"0"}}]}
{"event":"ddp.init","phase":"begin","rank":0,"local_rank":0,"world_size":2,"host":"node0","span":1,"placement":{"devices":{"cuda:0":{"count":4}}},"accelerators":[{"name":"cuda","device_type":"cuda","initialised":true,"count":1}]}
{"event":"ddp.init","phase":"end","rank":0,"host":"node0","span":1}
{"event":"process.start","rank":1,"local_rank":0,"world_size":2,"host":"node1","accelerators":[{"name":"cuda","device_type":"cuda","visible":{"CUDA_VISIBLE_DEVICES":"0,1"}}]}
{"event":"ddp.init","phase":"begin","rank":1,"local_rank":0,"world_size":2,"host":"node1","span":1,"placement":{"devices":{"cuda:0":{"count":4}}},"accelerators":[{"name":"cuda","device_type":"cuda","initialised":true,"count":2}]}
{"event":"ddp.init","phase":"end","rank":1,"host":"node1","span":1}"""
