"""The one place to ask which accelerators there are, and what mmengine makes of them; nothing is woken by asking."""

from ddp_probe.facts._cards import accelerators, shim_module
from ddp_probe.facts._mmengine_choice import init_dist_branch, mmengine_device

__all__ = ["accelerators", "init_dist_branch", "mmengine_device", "shim_module"]
