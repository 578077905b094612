"""One rank with a process group of its own does what its argument names, watched with a short DDP_PROBE_HANG_AFTER."""

import ctypes
import faulthandler
import glob
import os
import signal
import sys
import threading
import time

if "among-greenlets" in sys.argv:  # as gevent.monkey.patch_all() does: a thread begins once the job yields, which it never does here
    import _thread

    _thread.start_new_thread = lambda *_: 1

import torch.distributed as dist
from torch.utils.data import DataLoader

from ddp_probe.shared.ledger_codec import HEADER


def folder():
    """Return the run's folder."""
    (found,) = {os.path.realpath(path) for path in glob.glob(os.environ["DDP_PROBE_DIR"] + "/*/") if not os.path.islink(path.rstrip("/"))}
    return found


def until(ready):
    """Wait until this is so, for two minutes at most."""
    end = time.monotonic() + 120
    while not ready():
        if time.monotonic() > end:
            sys.exit("nothing came")
        time.sleep(0.05)


def beat():
    """Return when the watcher has woken last, as others see it: tenths of a second after the ledger was made, whose file is mapped here."""
    (ledger,) = glob.glob(folder() + "/*.ledger")
    with open(ledger, "rb") as file:
        return HEADER.read_field(file.read(256), 0, "beat")


def log():
    """Return the log of this process."""
    return "".join(open(path).read() for path in glob.glob(folder() + "/rank*.jsonl"))


def holds_the_gil():
    """Sleep in C without giving the GIL back, while another process looks: no thread of Python's runs here."""
    until(beat)
    seen, said = os.pipe()
    if not os.fork():  # It has no thread of ours.
        time.sleep(1.5)
        before = beat()
        time.sleep(2)
        os.write(said, b"stood" if before == beat() else b"moved")
        os._exit(0)
    ctypes.PyDLL(None).usleep(ctypes.c_uint(5_000_000))  # the line that holds the GIL
    print(os.read(seen, 9).decode())
    os.wait()
    until(lambda: '"event":"process.resumed"' in log())
    print("resumed")
    before = beat()
    until(lambda: beat() != before)
    print("beats")


def sets_the_timer():
    """Set faulthandler's timer oneself."""
    assert type(faulthandler.dump_traceback_later) is type(len)
    with open("theirs.txt", "w+") as file:
        faulthandler.dump_traceback_later(2.5, file=file)
        until(lambda: os.path.getsize("theirs.txt"))
        print("fired")
        faulthandler.cancel_dump_traceback_later()


def answers():
    """Ask oneself for stacks as the command does, twice; each request is answered once."""
    os.mkdir(folder() + "/ask")
    for number in (1, 2):
        open(folder() + "/ask/stacks.%d" % number, "w").close()
        until(lambda number=number: '"request":%d' % number in log())
    time.sleep(1.5)
    print([log().count('"request":%d' % number) for number in (1, 2)])


def forks():
    """Fork workers of a DataLoader again and again, and plain children that cancel faulthandler's timer, as the interpreter does at its end."""
    rows = 0
    for _ in range(int(sys.argv[2])):
        rows += sum(len(batch) for batch in DataLoader(list(range(8)), batch_size=2, num_workers=2))
        child = os.fork()
        if not child:
            faulthandler.cancel_dump_traceback_later()
            os._exit(3)
        assert os.waitpid(child, 0)[1] == 3 << 8
    print(rows)


def restores():
    """Restore, and see what is left of the watcher: no thread of the kernel's more, and no beat that would seem to stand."""
    import ddp_probe

    until(beat)
    tasks = len(os.listdir("/proc/self/task"))
    certificate = ddp_probe.restore()
    until(lambda: len(os.listdir("/proc/self/task")) == tasks - 1)
    print(certificate.ok, beat())


def is_hidden():
    """No thread of threading's is there but the main one, and a signal is handled by it while it waits."""
    signal.signal(signal.SIGUSR1, lambda *_: print("handled", flush=True))
    waits = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGUSR1))
    waits.start()
    waits.join()
    print([thread.name for thread in threading.enumerate()])


os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT=os.environ["FREE_PORT"])
dist.init_process_group("gloo")
globals()[sys.argv[1]]()
