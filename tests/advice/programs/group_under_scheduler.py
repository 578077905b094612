"""init_process_group with nothing given, in a process that a scheduler has started: it sets no RANK."""

import torch.distributed as dist


def main() -> None:
    """Join, meet, leave."""
    dist.init_process_group("gloo")
    dist.barrier()
    print("joined %d of %d" % (dist.get_rank(), dist.get_world_size()), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
