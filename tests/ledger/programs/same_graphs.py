"""Prints what torch.compile makes of functions with collectives: graphs, why they break, results, and what the functions say of themselves."""

import inspect
import os
import pickle
import re
import socket
import traceback

import torch
import torch._dynamo
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

with socket.socket() as port:
    port.bind(("127.0.0.1", 0))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port.getsockname()[1]), RANK="0", WORLD_SIZE="1")
dist.init_process_group("gloo")


def _all_reduce(x):
    y = x * 2
    dist.all_reduce(y)
    return y + 1


def _broadcast(x):
    y = x * 3
    dist.broadcast(y, src=0)
    return y.sin()


def _barrier(x):
    y = x + 4
    dist.barrier()
    return y * 5


def _gathered(x):
    out = torch.zeros(x.numel(), dtype=x.dtype)
    dist.all_gather_into_tensor(out, x * 2)
    return out + 1


def _scattered(x):
    out = torch.zeros_like(x)
    dist.reduce_scatter_tensor(out, x * 2)
    return out + 1


def _listed(x):
    out = [torch.zeros_like(x)]
    dist.all_gather(out, x)
    return out[0] + 1


def _single(x):
    out = torch.zeros_like(x)
    dist.all_to_all_single(out, x)
    return out * 7


def _asynchronous(x):
    y = x * 2
    work = dist.all_reduce(y, async_op=True)
    z = x + 5
    work.wait()
    return y + z


def _objects(x):
    got = [None]
    dist.all_gather_object(got, 3)
    return x * got[0]


def _trained(x):
    w = torch.ones(4, requires_grad=True)
    (x * w).sum().backward()
    return w.grad * 2


def _saved(x):
    import io

    buffer = io.BytesIO()
    torch.save(x * 2, buffer)
    buffer.seek(0)
    return torch.load(buffer) + 1


for function in (_all_reduce, _broadcast, _barrier, _gathered, _scattered, _listed, _single, _asynchronous, _objects, _trained, _saved):
    torch._dynamo.reset()
    codes = []

    def _keep(module, inputs, codes=codes):
        codes.append(module.code)
        return module.forward

    x = torch.arange(4.0)
    try:
        result = torch.compile(function, backend=_keep)(x)
        explained = torch._dynamo.explain(function)(x)
        print("==", function.__name__, result, explained.graph_count, explained.graph_break_count)
        print(*[re.sub("0x[0-9a-f]+", "0x", str(why.reason)) for why in explained.break_reasons], sep="\n")
    except Exception as exc:
        print("==", function.__name__, type(exc).__name__, str(exc)[:300])
    print(*codes, sep="\n--\n")

for name in ("all_reduce", "barrier", "broadcast_object_list", "isend", "new_group", "monitored_barrier"):
    function = getattr(c10d, name)
    print(
        name,
        inspect.signature(function),
        pickle.loads(pickle.dumps(function)) is function,
        len(inspect.getsource(function)),
        function.__code__.co_name,
    )
    print(inspect.unwrap(function).__code__.co_firstlineno, inspect.unwrap(function).__defaults__, inspect.getfullargspec(inspect.unwrap(function)))
try:
    dist.all_reduce("not a tensor")
except TypeError:
    traceback.print_exc()
try:
    torch.autograd.backward(torch.zeros(3))
except RuntimeError:
    traceback.print_exc()
dist.destroy_process_group()
