"""CUDA is not initialised until the job itself uses a card: what the probe watches before that leaves it alone, and a fork may use the card."""

import os

import torch
import torch.distributed as dist
from stage import DEVICE, PATIENCE, leave, small_model, train
from torch.nn.parallel import DistributedDataParallel

_USED, _REFUSED = 0, 3


def in_a_fork() -> int:
    """Use the card in a forked child; return what came of it. CUDA that this process has initialised cannot be used there."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            torch.ones(1, device=DEVICE)
            code = _USED
        except RuntimeError:
            code = _REFUSED
        finally:
            os._exit(code)
    return os.WEXITSTATUS(os.waitpid(child, 0)[1])


def watched() -> None:
    """Do what the probe watches, on the CPU."""
    dist.init_process_group("gloo", timeout=PATIENCE)
    model = DistributedDataParallel(small_model().to("cpu"))
    train(model, torch.device("cpu"))
    torch.save(model.module.state_dict(), "last.pth")
    torch.load("last.pth", map_location="cpu")


def main() -> None:
    """Look before and after the job's own use of the card."""
    watched()
    assert not torch.cuda.is_initialized(), "CUDA is initialised, and the job has not used it yet"
    assert in_a_fork() == _USED, "a fork cannot use the card, although the job has not used it yet"
    torch.ones(1, device=DEVICE)
    assert torch.cuda.is_initialized() == (DEVICE == "cuda")
    assert in_a_fork() == (_REFUSED if DEVICE == "cuda" else _USED), "a fork after the first use does not do what torch documents"
    leave()


if __name__ == "__main__":
    main()
