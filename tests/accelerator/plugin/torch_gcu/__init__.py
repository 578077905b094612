"""A simulated accelerator in the shape of a vendor's plugin: importing it gives torch eight cards and the backend eccl.

On torch 2 the cards are gcu:0 to gcu:7; on torch 1.12 they are xla:0 to xla:7, as plugins of that time named them, and
there is no torch.gcu. DEVICE_TYPE tells which. TOPS_VISIBLE_DEVICES limits how many there are, TORCH_GCU_MEMORY_MB what each holds.

Beyond it: autocast, SyncBatchNorm, LSTM and GRU layers, graphs, streams that overlap. Attention may round otherwise than on the
CPU, where torch picks a fused kernel. A program destroys its process group before it exits, as gloo needs it.
"""

import torch

from torch_gcu import gcu
from torch_gcu.gcu import (
    DEVICE_TYPE,
    current_device,
    device_count,
    empty_cache,
    get_device_name,
    init,
    is_available,
    is_initialized,
    manual_seed,
    manual_seed_all,
    max_memory_allocated,
    memory_allocated,
    memory_stats,
    set_device,
    synchronize,
)

if not torch.__version__.startswith("1."):
    torch.utils.rename_privateuse1_backend("gcu")
    torch._register_device_module("gcu", gcu)
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    # Autograd's device threads race with the interpreter's exit.
    torch.autograd.set_multithreading_enabled(False)

# Last, because its backend is registered for a device that has to have its name.
from torch_gcu import eccl

__all__ = [
    "DEVICE_TYPE",
    "current_device",
    "device_count",
    "eccl",
    "empty_cache",
    "gcu",
    "get_device_name",
    "init",
    "is_available",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "memory_allocated",
    "memory_stats",
    "set_device",
    "synchronize",
]
