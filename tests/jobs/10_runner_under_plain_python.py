"""A Runner with launcher='pytorch' is started with plain python: mmengine reads RANK, which nobody has set.

Command: python 10_runner_under_plain_python.py
Root cause to name: launcher_env_missing; RANK is not set.
"""

from mmengine.runner import Runner
from runner_pieces import runner_config


def main() -> None:
    """Train one epoch, or so it was meant."""
    Runner(launcher="pytorch", **runner_config()).train()


if __name__ == "__main__":
    main()
