"""Prints what torch.compile makes of DistributedDataParallel and of optimizers: graphs, breaks and results; of the named cases, or of all."""

import os
import re
import socket
import sys

import torch
import torch._dynamo
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

with socket.socket() as port:
    port.bind(("127.0.0.1", 0))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port.getsockname()[1]), RANK="0", WORLD_SIZE="1")
dist.init_process_group("gloo")


class _Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*[layer for _ in range(3) for layer in (nn.Linear(600, 600), nn.BatchNorm1d(600), nn.ReLU())])

    def forward(self, x):
        return self.layers(x) + 1


def _model():
    torch.manual_seed(0)
    return _Net()


def _ddp_inside(keep):
    return DistributedDataParallel(torch.compile(_model(), backend=keep))


def _ddp_outside(keep):
    return torch.compile(DistributedDataParallel(_model(), bucket_cap_mb=1), backend=keep)


def _with_the_loss(keep):
    ddp = DistributedDataParallel(_model(), bucket_cap_mb=1)
    return torch.compile(lambda x: ddp(x) * 2, backend=keep)


def _not_split(keep):
    torch._dynamo.config.optimize_ddp = False
    return torch.compile(DistributedDataParallel(_model()), backend=keep)


def _whole_step(keep):
    ddp = DistributedDataParallel(_model())
    optimizer = torch.optim.AdamW(ddp.parameters())

    def step(x):
        loss = ddp(x).sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return torch.compile(step, backend=keep)


def _only_the_optimizer(keep):
    ddp = DistributedDataParallel(_model())
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    compiled = torch.compile(optimizer.step, backend=keep)

    def step(x):
        loss = ddp(x).sum()
        loss.backward()
        compiled()
        return loss.detach()

    return step


for make in (_ddp_inside, _ddp_outside, _with_the_loss, _not_split, _whole_step, _only_the_optimizer):
    if sys.argv[1:] and make.__name__ not in sys.argv[1:]:
        continue
    torch._dynamo.reset()
    torch._dynamo.config.optimize_ddp = True
    torch._dynamo.utils.counters.clear()
    codes = []

    def _keep(module, inputs, codes=codes):
        codes.append(module.code)
        return module.forward

    function = make(_keep)
    x = torch.linspace(-1, 1, 2400).reshape(4, 600).requires_grad_()
    for _ in range(2):
        result = function(x).sum()
        if result.requires_grad:
            result.backward()
    print("==", make.__name__, "%.6f" % result.item(), len(codes))
    for name in ("graph_break", "unimplemented", "stats", "recompiles"):
        told = {re.sub("0x[0-9a-f]+", "0x", str(key)): count for key, count in sorted(torch._dynamo.utils.counters[name].items())}
        print(name, told)
    print(*codes, sep="\n--\n")
dist.destroy_process_group()
