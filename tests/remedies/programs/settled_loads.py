"""What a load is with settled-load: files that are being written, replaced, truncated, or left alone; runs with DDP_PROBE_FIX=settled-load."""

import contextlib
import io
import os
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

import torch
from checked import aged, applied, declined, failure, main, recorded, same_failure

from ddp_probe.traced.remedies import atomic_save, settled_load

OLD_TORCH = torch.__version__.startswith("1.")
NUMBERS = 1 << 16


def waits(call, *args, **kwargs):
    """Return how often the remedy waits during a call: a slow machine makes no difference."""
    waited = []
    settled_load.time = types.SimpleNamespace(**{**vars(time), "sleep": lambda span: waited.append(time.sleep(span))})
    try:
        call(*args, **kwargs)
    finally:
        settled_load.time = time
    return len(waited)


def whole(number=1.0):
    """Return a checkpoint filled with one number."""
    return {"part%d" % part: torch.full((NUMBERS,), number) for part in range(4)}


def numbers(state):
    """Return the numbers in a checkpoint."""
    return {float(value) for part in state.values() for value in (part.min(), part.max())}


def check_a_file_that_is_not_there():
    """A missing file is reported at once, as ever."""
    assert waits(same_failure, torch.load, "missing.pth") == 0
    assert recorded() == []


def check_a_file_that_nobody_writes():
    """An old file is loaded at once; one that was written this moment after a twentieth of a second, and nothing is said of it."""
    torch.save(whole(), "a.pth")
    assert waits(torch.load, "a.pth") * settled_load._POLL < 1
    aged("a.pth")
    torch.load("a.pth")
    assert recorded() == []


def check_an_old_truncated_file():
    """A truncated or empty file of yesterday fails at once, as ever, and that it was no race is said."""
    torch.save(whole(), "a.pth")
    os.truncate("a.pth", 100000)
    Path("b.pth").touch()
    for path in ("a.pth", "b.pth"):
        aged(path, 86400)
        assert waits(same_failure, torch.load, path) == 0
        assert "nobody seems to be writing it" in declined()[0]


def check_a_young_truncated_file():
    """A truncated file of this minute is waited for, no longer than is said, and then fails as ever."""
    torch.save(whole(), "a.pth")
    os.truncate("a.pth", 100000)
    aged("a.pth", 60)
    plain = failure(torch.load._self_original, "a.pth")
    began = time.monotonic()
    kept, settled_load._STALLED = settled_load._STALLED, 0.5
    patience, settled_load._PATIENCE = settled_load._PATIENCE, 0.1
    try:
        told = failure(torch.load, "a.pth")
    finally:
        settled_load._STALLED, settled_load._PATIENCE = kept, patience
    assert told == plain
    assert time.monotonic() - began >= 0.5
    events = recorded("probe.warning", "remedy.declined")
    told = [event.get("text", event.get("because")) for event in events]
    assert "settled-load waits: a.pth is being written, or was left half written" in told[0]
    assert "nobody seems to be writing it" in told[1]
    assert kept >= 30


def check_a_file_that_is_completed():
    """Half a file is waited for until its other half has come; the wait is recorded."""
    torch.save(whole(), "whole.pth")
    data = Path("whole.pth").read_bytes()
    part = len(data) // 4
    written = [data[:part]]
    Path("a.pth").write_bytes(written[0])

    def write_on(span):
        written.append(data[len(written) * part :][:part])
        with open("a.pth", "ab") as file:
            file.write(written[-1])
        time.sleep(span)

    settled_load.time = types.SimpleNamespace(**{**vars(time), "sleep": write_on})
    try:
        assert numbers(torch.load("a.pth")) == {1.0}
    finally:
        settled_load.time = time
    assert len(written) > 4
    (event,) = recorded()
    assert event["before"]["file"].endswith("not whole")
    assert event["after"]["file"].startswith("whole, after ")


def written_meanwhile(path, data, replace):
    """Return a map_location that puts other content into the file while the load is under way, once."""
    done = []

    def place(storage, location):
        if not done:
            done.append(1)
            if replace:
                Path(path + ".new").write_bytes(data)
                os.replace(path + ".new", path)
            else:
                with open(path, "r+b") as file:
                    file.write(data)
        return storage

    return place


def check_a_mixture():
    """A file that is written over while it is read is read again; without the remedy the load answers halves of two checkpoints."""
    torch.save(whole(2.0), "b.pth")
    data = Path("b.pth").read_bytes()
    for load, expected in ((torch.load._self_original, {1.0, 2.0}), (torch.load, {2.0})):
        torch.save(whole(1.0), "a.pth")
        aged("a.pth")
        assert numbers(load("a.pth", map_location=written_meanwhile("a.pth", data, False))) == expected
    assert applied() == ["settled-load"]


def check_a_file_that_is_replaced():
    """A file whose place is taken while it is read stays as it was for the reader: it is not read again."""
    torch.save(whole(2.0), "b.pth")
    torch.save(whole(1.0), "a.pth")
    aged("a.pth")
    place = written_meanwhile("a.pth", Path("b.pth").read_bytes(), True)
    assert numbers(torch.load("a.pth", map_location=place)) == {1.0}
    assert recorded() == []


def check_a_file_that_keeps_changing():
    """A file that changes under every load is given up after a bounded number of loads, and that the last may be a mixture is said."""
    torch.save(whole(), "a.pth")
    loads = []

    def place(storage, location):
        loads.append(1)
        os.utime("a.pth", (time.time() - 100 - len(loads), time.time() - 100 - len(loads)))
        return storage

    kept, settled_load._TRIES = settled_load._TRIES, 5
    try:
        torch.load("a.pth", map_location=place)
    finally:
        settled_load._TRIES = kept
    assert len(loads) == 5 * 4
    events = recorded("remedy.declined")
    assert "kept changing, and the last load may be a mixture" in events[-1]["because"]


def check_clocks_that_differ():
    """A file from a server whose clock is an hour ahead, or ten years behind, is loaded without a long wait."""
    torch.save(whole(), "a.pth")
    for by in (-3600, 10 * 365 * 86400):
        aged("a.pth", by)
        assert waits(torch.load, "a.pth") * settled_load._POLL < 1
    assert recorded() == []


def check_streams_and_mapped_files():
    """A stream is loaded as ever, and so is a file that is mapped and read later."""
    torch.save(whole(), "a.pth")
    assert numbers(torch.load(io.BytesIO(Path("a.pth").read_bytes()))) == {1.0}
    if not OLD_TORCH:
        assert numbers(torch.load("a.pth", mmap=True)) == {1.0}
    assert recorded() == []


def stage(pid, namespace=None, holds="a.pth"):
    """Return the folder that a save by another process would have beside a.pth, with a part of the file in it."""
    own = atomic_save._saver(atomic_save.name())
    saver = own._replace(pid=str(pid), started=atomic_save._started(pid), namespace=namespace or own.namespace)
    folder = Path("-".join((atomic_save._PREFIX, *saver)))
    folder.mkdir()
    if holds:
        (folder / holds).write_bytes(b"PK")
    return folder


def check_a_save_under_way():
    """What another living process saves under a temporary name is waited for, with a file or without one yet; the wait is recorded."""
    for number, holds in enumerate(("a.pth", "")):
        folder = stage(os.getppid(), holds=holds)
        torch.save(whole(float(number)), "b.pth")
        waited = []

        def finish(span, folder=folder, waited=waited):
            waited.append(span)
            if len(waited) == 3:
                os.replace("b.pth", "a.pth")
                atomic_save.remove(str(folder))

        settled_load.time = types.SimpleNamespace(**{**vars(time), "sleep": finish})
        try:
            assert numbers(torch.load("a.pth")) == {float(number)}
        finally:
            settled_load.time = time
        assert len(waited) >= 3
    told = recorded()
    assert [event["before"]["file"] for event in told] == ["not there", "an older one"]
    assert all(event["after"]["file"].startswith("whole, after ") for event in told)


def check_a_save_that_is_not_waited_for():
    """A save by a process that has ended, one by this process and one of another file are not waited for: the load fails at once, as ever."""
    ended = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    folders = [stage(ended.pid), stage(os.getpid()), stage(os.getppid(), holds="b.pth")]
    ended.communicate()
    assert waits(same_failure, torch.load, "a.pth") == 0
    for folder in folders:
        atomic_save.remove(str(folder))
    assert recorded() == []


def check_a_save_that_never_ends():
    """A save on another host is waited for until it makes no progress, one by a process that can be seen until all waiting is over."""
    kept = settled_load._STALLED, settled_load._LONGEST
    settled_load._STALLED, settled_load._LONGEST = 0.3, 0.6
    try:
        for namespace in ("0", None):
            folder = stage(os.getppid(), namespace)
            began = time.monotonic()
            same_failure(torch.load, "a.pth")
            assert time.monotonic() - began >= 0.3
            atomic_save.remove(str(folder))
    finally:
        settled_load._STALLED, settled_load._LONGEST = kept
    assert ["is not saved after" in each for each in declined()] == [True, True]


def check_a_folder_of_many_files():
    """A folder in which nobody saves is looked through once, however many of its files are loaded."""
    torch.save(whole(), "a.pth")
    torch.load("a.pth")
    time.sleep(0.2)
    torch.load("a.pth")
    seen = []
    kept, atomic_save._stages = atomic_save._stages, lambda parent: seen.append(parent) or kept(parent)
    try:
        for _ in range(5):
            torch.load("a.pth")
        assert seen == []
        folder = stage(os.getppid(), holds="b.pth")
        torch.load("a.pth")
        assert len(seen) == 1
    finally:
        atomic_save._stages = kept
    atomic_save.remove(str(folder))


def check_a_fifo():
    """A named pipe is not opened, looked at or waited for beside the job's own load."""
    os.mkfifo("pipe")
    torch.save(whole(), "a.pth")

    def write():
        with contextlib.suppress(BrokenPipeError), open("pipe", "wb") as file:
            file.write(b"no checkpoint")

    writer = threading.Thread(target=write)
    writer.start()
    told = failure(torch.load, "pipe")
    writer.join(20)
    assert not writer.is_alive()
    assert issubclass(told[0], Exception)
    assert recorded() == []


if __name__ == "__main__":
    main(globals())
