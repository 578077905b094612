"""init_dist of mmengine without a Runner, as test scripts and older tools have it; the launcher is the first argument."""

import sys

import torch.distributed as dist
from mmengine.dist import init_dist


def main() -> None:
    """Join, meet, leave."""
    init_dist(sys.argv[1], backend="gloo")
    dist.barrier()
    print("joined %d of %d" % (dist.get_rank(), dist.get_world_size()), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
