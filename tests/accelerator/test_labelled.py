"""Labelled modules: DDP takes them for modules on a card, and trains them in the host's memory, on any torch."""

_JOB = """
import copy, gc, json, os, sys
import torch, labelled
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

rank = int(os.environ["RANK"])
dist.init_process_group("gloo")

def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))

def train(net):
    net = DistributedDataParallel(net)
    steps = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for step in range(3):
        torch.manual_seed(2 * step + rank)
        steps.zero_grad()
        net(torch.randn(4, 4)).square().mean().backward()
        steps.step()
    return [str(net.device), {name: value.tolist() for name, value in net.module.state_dict().items()}]

def wrap(first, rest):
    net = labelled.on(model(), rest)
    labelled.on(net[0], first)
    try:
        return DistributedDataParallel(net, device_ids=[1]).device_ids
    except ValueError as exc:
        return str(exc)

net = labelled.on(model(), "gcu:%d" % rank)
answer = {"copy": [str(value.device) for value in (*copy.deepcopy(net).parameters(), *copy.deepcopy(net).buffers())]}
answer["plain"], answer["gcu"], answer["xla"] = train(model()), train(net), train(labelled.on(model(), "xla:%d" % rank))
answer["wrong"], answer["types"], answer["cards"] = wrap("gcu:0", "gcu:0"), wrap("cpu", "gcu:0"), wrap("gcu:1", "gcu:0")
with open(os.path.join(sys.argv[1], "rank%d.json" % rank), "w") as file:
    json.dump(answer, file)
del net
gc.collect()
dist.destroy_process_group()
"""


def test_ddp_on_labelled_modules(ranks, labelled_env):
    """Training is that of the CPU whatever the label; DDP accepts a wrong device_ids, and refuses two types and two cards in its own words."""
    for rank, answer in enumerate(ranks(_JOB, 2, labelled_env)):
        assert set(answer["copy"]) == {"gcu:%d" % rank}
        assert [answer["gcu"][0], answer["xla"][0]] == ["gcu:%d" % rank, "xla:%d" % rank]
        assert answer["gcu"][1] == answer["xla"][1] == answer["plain"][1]
        assert answer["wrong"] == [1]
        assert "input module must be on the same type of devices" in answer["types"]
        assert "only work with single-device/multiple-device GPU modules or CPU modules, but got device_ids [1]" in answer["cards"]
        assert "device(type='gcu', index=0)" in answer["cards"]
        assert "device(type='gcu', index=1)" in answer["cards"]
