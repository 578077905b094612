"""A Runner that is made with keywords; the launcher and the backend are arguments, as in OpenMMLab's tools."""

import argparse
import os

from mmengine.runner import Runner
from runner_pieces import runner_config


def main() -> None:
    """Train one epoch."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--launcher", default="pytorch")
    parser.add_argument("--backend", default="gloo")
    parser.add_argument("--local_rank", type=int, default=0)
    args = parser.parse_args()
    if args.backend == "eccl":
        import torch_gcu  # noqa: F401  # registers the backend
    config = runner_config(env_cfg={"dist_cfg": {"backend": args.backend, "timeout": 20}})
    runner = Runner(launcher=args.launcher, **config)
    runner.train()
    print("training finished, rank %s" % os.environ["LOCAL_RANK"], flush=True)


if __name__ == "__main__":
    main()
