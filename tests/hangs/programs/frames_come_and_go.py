"""A thread looks at the main thread's frames while finalizers let other threads run, and while frames of all sizes come and go there.

Prints how many looks there were, which of them failed, and whether the collector is as the main thread has set it at each of its steps.
"""

import gc
import random
import sys
import threading
import time

from ddp_probe.traced.facts.call_site import MainThread, thread_stacks

SIZES = 12
RUNS = float(sys.argv[1])
gc.set_threshold(10)
sys.setswitchinterval(1e-4)
space = {}
for size in range(SIZES):
    held = "".join("    held_%d = {}\n" % number for number in range(size))
    exec("def with_%d(depth, draw):\n%s    return by_size[draw.randrange(SIZES)](depth - 1, draw) if depth else {}\n" % (size, held), space)
space["SIZES"] = SIZES
space["by_size"] = [space["with_%d" % size] for size in range(SIZES)]
main = threading.get_ident()
looks, failed, wrong = [0], [], []


class Garbage:
    """What only a collection can free; its finalizer lets other threads run."""

    def __init__(self):
        self.itself = self

    def __del__(self):
        """Sleep for a moment."""
        if threading.get_ident() != main:
            time.sleep(0.0002)


def watch():
    """Look again and again, in each of the two ways."""
    main_thread = MainThread()
    while True:
        for _ in range(1 + looks[0] % 3):
            Garbage()
        try:
            main_thread.look()
            thread_stacks()
        except Exception as exc:
            failed.append(repr(exc))
        looks[0] += 1


threading.Thread(target=watch, daemon=True).start()
end, draw, number = time.monotonic() + RUNS, random.Random(1), 0
while time.monotonic() < end:
    number += 1
    wanted = number % 5 != 0
    (gc.enable if wanted else gc.disable)()
    space["by_size"][draw.randrange(SIZES)](draw.randrange(60), draw)
    if gc.isenabled() != wanted:
        wrong.append(number)
print(looks[0] > 20, failed[:3], wrong[:3])
