"""Starts a process from a thread that starts one that computes, and prints whether the CPU time of its processes grows, stays and is kept."""

import subprocess
import sys
import threading
import time

from ddp_probe.traced.facts.birth import cpu_of_children

COMPUTES = "import time\nend = time.process_time() + 0.5\nwhile time.process_time() < end: pass\ninput()"
STARTS = "import subprocess, sys\nsubprocess.run([sys.executable, '-S', '-c', %r])" % COMPUTES
started = []


def start():
    """Start it, and stay."""
    started.append(subprocess.Popen([sys.executable, "-S", "-c", STARTS], stdin=subprocess.PIPE))
    time.sleep(600)


before = cpu_of_children()
threading.Thread(target=start, daemon=True).start()
while cpu_of_children() < before + 0.5:
    time.sleep(0.05)
print("grows")
time.sleep(0.2)
stays = cpu_of_children()
time.sleep(0.2)
print("stays" if cpu_of_children() - stays < 0.1 else "still grows")
(process,) = started
process.communicate(b"\n")
print("keeps" if cpu_of_children() >= before + 0.5 else "forgets")
