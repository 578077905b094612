"""A job whose rank 1 loses a thread, in the way that its argument names; it ends with exit code 0."""

import _thread
import sys
import threading
import time

import torch.distributed as dist

HOW = sys.argv[1]


def fetch() -> None:
    """Raise at a line of the job."""
    raise ValueError("no such column")


def leave() -> None:
    """End the thread as sys.exit does."""
    sys.exit(3)


def late() -> None:
    """Raise after the main thread has ended."""
    while threading.main_thread().is_alive():
        time.sleep(0.01)
    fetch()


if HOW == "own hook":
    threading.excepthook = lambda args: print("the job's hook got %s of %s" % (args.exc_type.__name__, args.thread.name), flush=True)
dist.init_process_group("gloo")
if dist.get_rank() == 1:
    if HOW == "_thread":
        _thread.start_new_thread(fetch, ())
        time.sleep(0.2)
    elif HOW == "a library":
        threading.Timer(0, None).start()  # type: ignore[arg-type]  # the fault: Timer calls None, with no line of the job
    else:
        targets = {"exit": leave, "late": late}
        threads = [threading.Thread(target=targets.get(HOW, fetch), name="prefetch") for _ in range(40 if HOW == "many" else 1)]
        for thread in threads:
            thread.start()
            if HOW != "late":
                thread.join()
dist.barrier()
dist.destroy_process_group()
