"""A Runner that is made from a configuration file, as OpenMMLab's tools/train.py does."""

import sys

from cfg_pieces import plain_config
from mmengine.config import Config
from mmengine.runner import Runner


def main() -> None:
    """Train one epoch."""
    settings = Config.fromfile(sys.argv[1])
    cfg = dict(plain_config(), **settings)
    runner = Runner.from_cfg(cfg)
    runner.train()
    print("training finished", flush=True)


if __name__ == "__main__":
    main()
