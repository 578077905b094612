"""Two tasks of Ray are the ranks of a process group."""

import os

import ray
from toy_training import train

quiet = {"include_dashboard": False, "log_to_driver": False, "configure_logging": False, "_node_ip_address": "127.0.0.1"}
ray.init(num_cpus=2, runtime_env={"env_vars": {"PYTHONPATH": os.getcwd()}}, **quiet)
task = ray.remote(num_cpus=1, max_retries=0)(train)
print(["%s" % loss for loss in ray.get([task.remote(rank, os.environ["PORT"]) for rank in range(2)])], flush=True)
ray.shutdown()
