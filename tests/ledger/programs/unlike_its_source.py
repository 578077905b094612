"""Calls two collectives, one of which has been given code that is not what its source says."""

import os
import socket

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

function = c10d.all_reduce
while hasattr(function, "__wrapped__"):
    function = function.__wrapped__
function.__code__ = function.__code__.replace(co_consts=(*function.__code__.co_consts, "another tool was here"))
with socket.socket() as port:
    port.bind(("127.0.0.1", 0))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port.getsockname()[1]))
dist.init_process_group("gloo")
tensor = torch.ones(3)
dist.all_reduce(tensor)
dist.broadcast(tensor, 0)
print(tensor.tolist(), function.__code__.co_consts[-1])
dist.destroy_process_group()
