"""Recorded logs of the rule left-early."""

RANK_1_STOPS_EARLY_ON_ITS_OWN = """
{"event":"dist.init_process_group","phase":"begin","rank":0,"span":1,"site":{"file":"/train/12_sys_exit_of_one_rank.py","line":18,"function":"main"}}
{"event":"dist.init_process_group","phase":"end","rank":0,"span":1}
{"event":"dist.init_process_group","phase":"begin","rank":1,"span":1,"site":{"file":"/train/12_sys_exit_of_one_rank.py","line":18,"function":"main"}}
{"event":"dist.init_process_group","phase":"end","rank":1,"span":1}
{"event":"dist.destroy_process_group","phase":"begin","rank":1,"span":3,"site":{"file":"/train/12_sys_exit_of_one_rank.py","line":26,"function":"main"}}
{"event":"dist.destroy_process_group","phase":"end","rank":1,"span":3}
{"event":"process.end","rank":0,"failure":{"type":"RuntimeError","message":"Connection closed by peer","frames":[{"file":"/train/12_sys_exit_of_one_rank.py","line":32,"function":"<module>"},{"file":"/train/12_sys_exit_of_one_rank.py","line":23,"function":"main"},{"file":"/train/pieces.py","line":35,"function":"train_step"},{"file":"/env/site-packages/torch/_tensor.py","line":623,"function":"Tensor.backward"},{"file":"/env/site-packages/torch/autograd/__init__.py","line":395,"function":"backward"},{"file":"/env/site-packages/torch/autograd/graph.py","line":979,"function":"_engine_run_backward"}]},"exit_code":1,"uncaught":true}
{"event":"process.end","rank":1,"process_group":false}
"""

RANK_1_FAILS_WITH_EXCEPTION_OF_ITS = """
{"event":"dist.init_process_group","phase":"begin","rank":0,"span":1}
{"event":"dist.init_process_group","phase":"end","rank":0,"span":1}
{"event":"dist.init_process_group","phase":"begin","rank":1,"span":1}
{"event":"dist.init_process_group","phase":"end","rank":1,"span":1}
{"event":"process.end","rank":1,"exit_code":1,"uncaught":true,"failure":{"type":"FileNotFoundError","message":"[Errno 2] No such file or directory: '42.png'"}}
{"event":"process.end","rank":0,"exit_code":1,"uncaught":true,"failure":{"type":"RuntimeError","message":"Connection closed by peer"}}
"""
