"""A training function under Ray Train, without Ray: this driver starts two processes with the command line of Ray's workers, as its raylet does."""

import subprocess
import sys

import torch
from pieces import WAY, ToyModel, data

WORKER = ["stand_in/ray/_private/workers/default_worker.py", "--node-ip-address=127.0.0.1", "--logging-rotate-backup-count=5", "--webui="]


def train_loop(rank: int) -> None:
    """Train two steps; Ray has made the process group."""
    model = torch.nn.parallel.DistributedDataParallel(ToyModel(), device_ids=[rank] if WAY == "ddp" else None)  # way: ddp
    for step in range(2):
        loss = model(data(rank)).pow(2).mean()
        if WAY == "raises" and rank == 1:
            raise ValueError("loss is nan")  # way: raises
        if WAY == "ends" and rank == 1:
            sys.exit(1)  # way: ends
        loss.backward()
        print("rank %d step %d loss %.4f" % (rank, step, loss.item()), flush=True)


def main() -> int:
    """Start both workers, kill them when both have answered, and print the exception that one of them has answered with."""
    workers = [
        subprocess.Popen(
            [sys.executable, "-u", *WORKER, "--worker-launch-time-ms=%d" % rank], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for rank in range(2)
    ]
    first = workers[1].stdout.read()  # The worker that fails in a broken run; the other one then waits for it.
    answers = [first] if "Traceback" in first or not first else [first, workers[0].stdout.read()]
    for worker in workers:  # As Ray does, whether they succeeded or not.
        worker.kill()
        worker.wait()
    print("".join(answers), end="", flush=True)
    return 0 if len(answers) == 2 else 1


if __name__ == "__main__":
    sys.exit(main())
