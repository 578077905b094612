"""The accelerator's plugin is imported, and this interpreter does not have it."""

import torch
import torch_gcu


def main() -> None:
    """Say how many cards there are."""
    torch.manual_seed(0)
    print("%d cards" % torch_gcu.device_count(), flush=True)


if __name__ == "__main__":
    main()
