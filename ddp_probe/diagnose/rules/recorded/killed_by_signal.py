"""Recorded logs of the rule killed-by-signal."""

RANK_1_IS_KILLED = """
{"event":"dist.init_process_group","phase":"begin","rank":0,"span":1,"site":{"file":"/train/12_killed_by_sigkill.py","line":19,"function":"main"}}
{"event":"dist.init_process_group","phase":"end","rank":0,"span":1}
{"event":"dist.init_process_group","phase":"begin","rank":1,"span":1,"site":{"file":"/train/12_killed_by_sigkill.py","line":19,"function":"main"}}
{"event":"dist.init_process_group","phase":"end","rank":1,"span":1}
{"event":"process.end","rank":0,"failure":{"type":"RuntimeError","message":"Connection closed by peer","frames":[{"file":"/train/12_killed_by_sigkill.py","line":31,"function":"<module>"},{"file":"/train/12_killed_by_sigkill.py","line":24,"function":"main"},{"file":"/train/pieces.py","line":35,"function":"train_step"},{"file":"/env/site-packages/torch/_tensor.py","line":623,"function":"Tensor.backward"},{"file":"/env/site-packages/torch/autograd/__init__.py","line":395,"function":"backward"},{"file":"/env/site-packages/torch/autograd/graph.py","line":979,"function":"_engine_run_backward"}]},"exit_code":1,"uncaught":true}
{"event":"launcher.start","launcher":"torchrun"}
{"event":"launcher.child","child_rank":1,"child_local_rank":1,"exit_code":-9,"signal":"SIGKILL"}
{"event":"launcher.child","child_rank":0,"child_local_rank":0,"exit_code":-15,"signal":"SIGTERM"}
"""
