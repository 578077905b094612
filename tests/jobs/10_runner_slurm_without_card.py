"""A Runner with launcher='slurm' on a host without a card: the local rank is proc_id % device_count(), a division by zero.

Command: SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_STEP_ID=0 SLURM_NODELIST=localhost python 10_runner_slurm_without_card.py
Root cause to name: no_gpu_visible.
"""

from mmengine.runner import Runner
from runner_pieces import runner_config


def main() -> None:
    """Train one epoch, or so it was meant."""
    Runner(launcher="slurm", **runner_config()).train()


if __name__ == "__main__":
    main()
