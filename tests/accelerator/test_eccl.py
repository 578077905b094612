"""The backend eccl carries what DDP and MMEngine send over it, for tensors of cards and of the CPU."""

from pathlib import Path

_COLLECTIVES = """
import gc, json, os, sys
import torch, torch_gcu
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

rank = int(os.environ["RANK"])
torch_gcu.set_device(rank)
dist.init_process_group("eccl")
answer = {"backend": dist.get_backend()}

def newer(results, mine):  # Gloo of torch 1.12 has none of these.
    results["single"], results["reduce_scatter"], results["all_to_all"] = mine.repeat(2), mine.clone(), mine.clone()
    dist.all_gather_single(results["single"], mine)
    dist.reduce_scatter(results["reduce_scatter"], [mine, mine * 10])
    dist.all_to_all_single(results["all_to_all"], mine * torch.tensor([1.0, 2.0], device=mine.device))

def collectives(device):
    mine = torch.full((2,), float(rank + 1), device=device)
    results = {name: mine.clone() for name in ("all_reduce", "async", "broadcast", "p2p")}
    dist.all_reduce(results["all_reduce"])
    dist.all_reduce(results["async"], async_op=True).wait()
    dist.broadcast(results["broadcast"], src=1)
    results["all_gather"] = torch.zeros(2, 2, device=device)
    dist.all_gather(list(results["all_gather"]), mine)
    results["scatter"] = torch.zeros(2, device=device)
    dist.scatter(results["scatter"], [mine * 5, mine * 7] if rank == 0 else None)
    results["gather"] = torch.zeros(2, 2, device=device)
    dist.gather(mine, list(results["gather"]) if rank == 0 else None)
    if hasattr(dist, "all_gather_single"):
        newer(results, mine)
    dist.send(mine, 1) if rank == 0 else dist.recv(results["p2p"], 0)
    assert {result.device for result in results.values()} == {torch.device(device)}
    return {name: result.tolist() for name, result in results.items()}

answer["card"], answer["cpu"] = collectives("CARD:%d" % rank), collectives("cpu")
answer["objects"] = [None, None]
dist.all_gather_object(answer["objects"], "rank %d" % rank)
group = dist.new_group([0, 1])
answer["group"] = dist.get_backend(group)
dist.barrier(group)

def ddp(card, device_ids):
    torch.manual_seed(rank)
    model = DistributedDataParallel(torch.nn.Linear(2, 2).to(card), device_ids=device_ids, find_unused_parameters=True)
    answer["accepted"] = [sorted({str(parameter.device) for parameter in model.parameters()}), model.device_ids]
    model(torch.full((1, 2), float(rank), device=card)).sum().backward()
    return model.module.weight.grad.tolist()

# torch 1.12 fails in the first forward on device_ids of anything but CUDA.
answer["gradient"] = ddp("CARD:%d" % rank, [rank] if hasattr(dist, "all_gather_single") else None)
try:
    ddp("CARD:0", [1])
except Exception as exc:
    answer["mismatch"] = "%s: %s" % (type(exc).__name__, exc)
with open(os.path.join(sys.argv[1], "rank%d.json" % rank), "w") as file:
    json.dump(answer, file)
gc.collect()
dist.destroy_process_group()
"""


def test_collectives(ranks, gcu_env, old_torch):
    """Two ranks get from each collective what gloo gives, on cards as on the CPU."""
    first, second = ranks(_COLLECTIVES, 2, gcu_env)
    assert first["backend"] == first["group"] == "eccl"
    assert first["objects"] == second["objects"] == ["rank 0", "rank 1"]
    assert (first["card"], second["card"]) == (first["cpu"], second["cpu"])
    for answer in (first["card"], second["card"]):
        assert answer["all_reduce"] == answer["async"] == [3.0, 3.0]
        assert answer["broadcast"] == [2.0, 2.0]
        assert answer["all_gather"] == [[1.0, 1.0], [2.0, 2.0]]
    assert (first["card"]["scatter"], second["card"]["scatter"]) == ([5.0, 5.0], [7.0, 7.0])
    assert first["card"]["gather"] == [[1.0, 1.0], [2.0, 2.0]]
    assert second["card"]["p2p"] == [1.0, 1.0]
    if not old_torch:
        assert first["card"]["single"] == second["card"]["single"] == [1.0, 1.0, 2.0, 2.0]
        assert (first["card"]["reduce_scatter"], second["card"]["reduce_scatter"]) == ([3.0, 3.0], [30.0, 30.0])
        assert (first["card"]["all_to_all"], second["card"]["all_to_all"]) == ([1.0, 2.0], [2.0, 4.0])
    _ddp_averages_and_compares_nothing((first, second), old_torch)


def _ddp_averages_and_compares_nothing(answers, old_torch):
    """In the launch of the test above, since each costs seconds: DDP trains, and its constructor takes another card's device_ids."""
    for answer in answers:
        assert answer["gradient"] == [[0.5, 0.5], [0.5, 0.5]]
        if old_torch:
            assert answer["accepted"] == [["xla:0"], [1]]
            assert answer["mismatch"] == "IndexError: list index out of range"
        else:
            assert answer["accepted"] == [["gcu:0"], [1]]
            assert "found at least two devices, gcu:0 and gcu:1!" in answer["mismatch"]


def test_mmengine_runner(ranks, gcu_env, card, old_torch, tmp_path):
    """MMEngine's Runner trains over four ranks to the end, each on its own card, and all ranks end with the same parameters."""
    answers = ranks(Path(__file__).with_name("train_mmengine.py"), 4, gcu_env)
    for rank, answer in enumerate(answers):
        assert (answer["wrapper"], answer["backend"], answer["iterations"]) == ("MMDistributedDataParallel", "eccl", 4)
        assert (answer["device_ids"], answer["devices"]) == (None if old_torch else [rank], ["%s:%d" % (card, rank)])
        assert [number for number, held in enumerate(answer["bytes_on_card"]) if held] == [rank]
        assert answer["parameters"] == answers[0]["parameters"]
    assert (tmp_path / "work" / "epoch_2.pth").exists()
