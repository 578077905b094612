"""A Runner of mmengine that validates each epoch: rank 0 gets the results of all ranks, tensors in pickles, by collect_results."""

import gc
from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch
import torch.distributed as dist
from mmengine.evaluator import BaseMetric
from mmengine.model import BaseModel
from mmengine.runner import Runner
from pieces import WAY, ToyModel, data, spoil, tolerant
from torch.utils.data import Dataset

COLLATE = {"type": "default_collate"}


class Rows(Dataset[Tuple[torch.Tensor, int]]):
    """Four rows of ten numbers."""

    def __len__(self) -> int:
        """Return four."""
        return 4

    def __getitem__(self, index: int) -> Tuple[torch.Tensor, int]:
        """Return a row and its number."""
        return data(index)[0], index


class Model(BaseModel):
    """The toy model, with a loss and a prediction."""

    def __init__(self) -> None:
        """Build it."""
        super().__init__()
        self.net = ToyModel(unused=WAY == "ddp")
        self.step = 0

    def forward(self, inputs: torch.Tensor, numbers: Optional[torch.Tensor] = None, mode: str = "tensor") -> Any:
        """Return a loss in training, else what is predicted."""
        rows = self.net(inputs)
        if mode != "loss":
            return [{"row": row.clone()} for row in rows]
        rank, step = dist.get_rank(), self.step
        self.step += 1
        if WAY == "raises" and rank == 1:
            raise ValueError("loss is nan")  # way: raises
        if WAY == "ends" and rank == 1:
            raise SystemExit(1)  # way: ends
        spoil(rank, step)
        return {"loss": rows.pow(2).mean()}


class Mean(BaseMetric):
    """The mean of all predictions."""

    def process(self, data_batch: Any, data_samples: Sequence[Dict[str, torch.Tensor]]) -> None:
        """Keep the predictions: tensors, which are gathered as pickles."""
        self.results += [each["row"] for each in data_samples]

    def compute_metrics(self, results: List[torch.Tensor]) -> Dict[str, float]:
        """Return the mean."""
        return {"mean": float(torch.stack(results).mean())}


def loader(shuffle: bool) -> Dict[str, Any]:
    """Return the settings of a loader."""
    return {"dataset": Rows(), "sampler": {"type": "DefaultSampler", "shuffle": shuffle}, "batch_size": 1, "num_workers": 0, "collate_fn": COLLATE}


@tolerant
def main() -> None:
    """Train two epochs, each with its validation."""
    dist.init_process_group("gloo")  # mmengine's own way asks CUDA for a card.
    runner = Runner(
        model=Model(),
        work_dir="work",
        launcher="pytorch",
        cfg={"model_wrapper_cfg": {"type": "MMDistributedDataParallel", "device_ids": None}},
        train_dataloader=loader(False),
        train_cfg={"by_epoch": True, "max_epochs": 2},
        optim_wrapper={"optimizer": {"type": "SGD", "lr": 0.01}},
        val_dataloader=loader(False),
        val_cfg={},
        val_evaluator=[Mean()],
        log_level="WARNING",
    )
    runner.train()
    print("rank %d has trained" % dist.get_rank(), flush=True)
    del runner
    gc.collect()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
