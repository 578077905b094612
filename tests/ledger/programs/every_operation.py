"""Two ranks call every operation that this torch has, each from a line of its own, and print what they passed through."""

import contextlib
import json

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

CALLED = []


def called(name):
    """Tell whether this torch has the operation, and remember that it is called."""
    if hasattr(c10d, name):
        CALLED.append(name)
        return True
    return False


dist.init_process_group("gloo")
CALLED.append("init_process_group")
rank, other = dist.get_rank(), 1 - dist.get_rank()
CALLED.append("new_group")
pair = dist.new_group([0, 1])
seven = lambda: torch.full((7,), float(rank))  # noqa: E731
two = lambda: [torch.zeros(7), torch.zeros(7)]  # noqa: E731

if called("all_reduce"):
    dist.all_reduce(seven())
if called("all_reduce_coalesced"):
    dist.all_reduce_coalesced([seven(), torch.zeros(3)])
if called("broadcast"):
    dist.broadcast(torch.zeros(5, dtype=torch.int64), src=1, group=pair)
if called("reduce"):
    dist.reduce(seven(), 1)
if called("all_gather"):
    dist.all_gather(two(), seven())
if called("all_gather_into_tensor"):
    dist.all_gather_into_tensor(torch.zeros(14), seven())
if called("all_gather_single"):
    dist.all_gather_single(torch.zeros(14), seven())
if called("all_gather_coalesced"):
    dist.all_gather_coalesced([two()[:1], two()[:1]], [seven()])
if called("gather"):
    dist.gather(seven(), two() if rank == 0 else None)
for name in ("gather_single", "gather_into_tensor"):
    if called(name):
        with contextlib.suppress(RuntimeError):  # Not with gloo, in torch 2.14.
            getattr(c10d, name)(seven(), torch.zeros(14) if rank == 0 else None)
if called("scatter"):
    dist.scatter(seven(), two() if rank == 1 else None, src=1)
for name in (
    "reduce_scatter",
    "_all_gather_base",
    "_reduce_scatter_base",
    "reduce_scatter_tensor",
    "reduce_scatter_single",
    "all_to_all",
    "all_to_all_single",
):
    if called(name):  # gloo has some of them in some versions: what it refuses leaves a record as well
        arguments = {
            "reduce_scatter": (seven(), two()),
            "_all_gather_base": (torch.zeros(14), seven()),
            "all_to_all": (two(), two()),
            "all_to_all_single": (torch.zeros(14), torch.zeros(14)),
        }.get(name, (seven(), torch.zeros(14)))
        with contextlib.suppress(RuntimeError):
            getattr(c10d, name)(*arguments)
if called("barrier"):
    dist.barrier()
if called("monitored_barrier"):
    dist.monitored_barrier()
if called("broadcast_object_list"):
    dist.broadcast_object_list([1, 2], src=0)
if called("all_gather_object"):
    dist.all_gather_object([None, None], {"rank": rank})
if called("gather_object"):
    dist.gather_object({"rank": rank}, [None, None] if rank == 0 else None)
if called("scatter_object_list"):
    dist.scatter_object_list([None], [1, 2])
if called("send" if rank == 0 else "recv"):
    (dist.send if rank == 0 else dist.recv)(seven(), other)
if called("send_object_list" if rank == 0 else "recv_object_list"):
    (dist.send_object_list if rank == 0 else dist.recv_object_list)([1], other)
CALLED.append("isend" if rank == 0 else "irecv")
(dist.isend if rank == 0 else dist.irecv)(seven(), other).wait()
CALLED.append("batch_isend_irecv")
for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, seven(), other), dist.P2POp(dist.irecv, seven(), other)]):
    work.wait()
work = dist.all_reduce(seven(), async_op=True)
work.wait()
work = dist.all_reduce(seven(), async_op=True, group=pair)
while not work.is_completed():
    pass
dropped = dist.all_reduce(seven(), async_op=True)
dist.barrier()
del dropped, work
dist.all_reduce(seven())
future = dist.all_reduce(seven(), async_op=True).get_future()
future.wait()
del future
dist.all_reduce(seven())
CALLED.append("destroy_process_group")
with open("called%d.json" % rank, "w") as file:
    json.dump(CALLED, file)
dist.destroy_process_group()
