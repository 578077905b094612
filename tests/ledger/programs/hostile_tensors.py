"""Makes collectives with tensors whose class answers for itself, by methods, properties and dispatch, and prints which of its methods ran."""

import os
import socket

import torch
import torch.distributed as dist

ran = []


def told(name):
    """Return a method that ends the job."""

    def method(self, *args, **kwargs):
        ran.append(name)
        if watching:
            raise SystemExit(7)
        return getattr(super(Hostile, self), name)(*args)

    return method


class Hostile(torch.Tensor):
    """A tensor with methods and properties of its own."""

    __torch_function__ = torch._C._disabled_torch_function_impl


class Dispatching(Hostile):
    """A tensor that is asked by C++."""

    @classmethod
    def __torch_dispatch__(cls, function, kinds, args=(), kwargs=None):
        """Tell that somebody works with the tensor."""
        ran.append(str(function))
        raise SystemExit(7)


NAMES = "numel size dim nelement element_size stride data_ptr __len__ __bool__ __hash__ __eq__ __repr__ __str__ __getitem__ __iter__".split()
for name in NAMES:
    setattr(Hostile, name, told(name))
for name in ("shape", "dtype", "device", "is_sparse", "layout"):
    setattr(Hostile, name, property(told(name)))
with socket.socket() as port:
    port.bind(("127.0.0.1", 0))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port.getsockname()[1]))
watching = True
dist.init_process_group("gloo")
from torch.distributed import distributed_c10d as c10d  # noqa: E402

# What the ledger does before the call is all that is asked here: torch's own part reads the same properties.
function = c10d.all_reduce
while hasattr(function, "__wrapped__"):
    function = function.__wrapped__
begin = next((const for const in function.__code__.co_consts if getattr(const, "__name__", "") == "begin"), None)
end = next((const for const in function.__code__.co_consts if getattr(const, "__name__", "") == "end"), None)
for kind in (Hostile, Dispatching):
    tensor = torch.Tensor._make_subclass(kind, torch.zeros(3))
    for payload in (tensor, [tensor], [[tensor]]):
        end(begin(1, payload, None, None, None, False), None)
print("ran", ran)
dist.destroy_process_group()
