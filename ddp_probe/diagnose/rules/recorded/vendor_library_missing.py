"""Recorded logs of the rule vendor-library-missing."""

PLUGIN_COLLECTIVE_LIBRARY_IS_NOT_ON_PATH = """
{"event":"process.end","rank":0,"failure":{"type":"ImportError","message":"libmccl.so.2: cannot open shared object file: No such file or directory","frames":[{"file":"/train/t.py","line":3,"function":"<module>"},{"file":"/env/site-packages/torch_musa/__init__.py","line":50,"function":"<module>"}]},"exit_code":1,"uncaught":true}
"""

LIBRARY_THAT_HAS_NOTHING_TO_DO = """
{"event":"process.end","rank":0,"failure":{"type":"ImportError","message":"libGL.so.1: cannot open shared object file: No such file or directory","frames":[{"file":"/train/t.py","line":3,"function":"<module>"}]},"exit_code":1,"uncaught":true}
"""

PLUGIN_IS_THERE = """
{"event":"process.end","rank":0,"failure":{"type":"ModuleNotFoundError","message":"No module named 'torch_gcu.core'","frames":[{"file":"/train/t.py","line":3,"function":"<module>"}]},"exit_code":1,"uncaught":true}
"""

ASCEND_TOOLKIT_IS_NOT_SOURCED = """ImportError: libhccl.so: cannot open shared object file: No such file or directory. Please check that the cann package is installed. Please run 'source set_env.sh' in the CANN installation path.
"""

RCCL_LOOKS_FOR_PLUGIN = """node1:5049:5049 [0] NCCL INFO NET/Plugin : Plugin load (librccl-net.so) returned 2 : librccl-net.so: cannot open shared object file: No such file or directory
node1:5049:5049 [0] NCCL INFO NET/Plugin : No plugin found, using internal implementation
"""
