"""Eight cards are there, and get_device() of mmengine does not know them: the Runner keeps the model on the CPU and passes device_ids=[LOCAL_RANK].

Command: torchrun --nproc_per_node=2 02_runner_does_not_know_cards.py
Root cause to name: model_on_cpu_at_ddp_wrap, on every rank, in Runner.wrap_model.
"""

import os

import torch.distributed as dist
import torch_gcu
from mmengine.runner import Runner
from runner_pieces import runner_config


def main() -> None:
    """Train one epoch on the cards, or so it was meant."""
    torch_gcu.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("eccl")
    Runner(launcher="pytorch", **runner_config(env_cfg={"dist_cfg": {"backend": "eccl"}})).train()


if __name__ == "__main__":
    main()
