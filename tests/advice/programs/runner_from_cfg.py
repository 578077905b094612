"""A Runner that is made from a configuration in the program."""

from cfg_pieces import plain_config
from mmengine.runner import Runner


def main() -> None:
    """Train one epoch."""
    cfg = plain_config()
    runner = Runner.from_cfg(cfg)
    runner.train()
    print("training finished", flush=True)


if __name__ == "__main__":
    main()
