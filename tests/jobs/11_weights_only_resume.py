"""mmengine resumes its own checkpoint, which holds a HistoryBuffer: torch.load refuses it since torch 2.6, where weights_only became the default.

Command: python 11_weights_only_resume.py
Root cause to name: weights_only_default; torch 1.12.1 resumes without a word.
"""

from mmengine.runner import Runner
from runner_pieces import runner_config


def main() -> None:
    """Train one epoch, then resume for a second one."""
    Runner(experiment_name="first", **runner_config()).train()
    longer = {"by_epoch": True, "max_epochs": 2}
    Runner(experiment_name="second", resume=True, **runner_config(train_cfg=longer)).train()


if __name__ == "__main__":
    main()
