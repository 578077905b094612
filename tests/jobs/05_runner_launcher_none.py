"""torchrun starts two ranks, the Runner keeps launcher='none': two independent trainings, each believing that it is the only one.

Command: torchrun --nproc_per_node=2 05_runner_launcher_none.py
Root cause to name: launched_without_launcher; no rank joins a process group, and wrap_model returns the bare model.
"""

import os

from mmengine.runner import Runner
from runner_pieces import runner_config


def main() -> None:
    """Train one epoch, twice over."""
    work_dir = "work_dirs_%s" % os.environ.get("LOCAL_RANK", "0")
    Runner(launcher="none", **runner_config(work_dir=work_dir)).train()
    print("training finished", flush=True)


if __name__ == "__main__":
    main()
