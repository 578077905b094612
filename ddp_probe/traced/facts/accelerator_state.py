"""The public functions for the accelerators present and mmengine's choice among them. They initialise nothing."""

from ddp_probe.traced.facts._cards import accelerators, shim_module
from ddp_probe.traced.facts._mmengine_choice import init_dist_branch, mmengine_device

__all__ = ["accelerators", "init_dist_branch", "mmengine_device", "shim_module"]
