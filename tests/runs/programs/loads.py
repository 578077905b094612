"""Saves and loads files in every state, as one rank of one; the last one while another process writes it."""

import subprocess
import sys

import torch

WRITER = """
import sys
data = open(sys.argv[1], "rb").read()
with open(sys.argv[2], "wb") as file:
    file.write(data[: len(data) // 2])
    file.flush()
    print("half", flush=True)
    sys.stdin.readline()
    file.write(data[len(data) // 2 :])
    file.flush()
    print("whole", flush=True)
    sys.stdin.readline()
"""


def attempt(path):
    """Load, and print how it went."""
    try:
        torch.load(path, map_location="cpu")  # loads
    except Exception as exc:
        print(path, type(exc).__name__)
    else:
        print(path, "loaded")


def make():
    """Write a file in each state."""
    torch.save({"a": torch.ones(20000)}, "complete.pth")
    torch.save({"a": torch.ones(20000)}, "legacy.pth", _use_new_zipfile_serialization=False)
    with open("complete.pth", "rb") as file:
        data = file.read()
    contents = {
        "truncated.pth": data[: len(data) // 2],
        "empty.pth": b"",
        "lfs.pth": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 80\n",
        "html.pth": b"<!DOCTYPE html><html><body>404</body></html>",
    }
    for name, content in contents.items():
        with open(name, "wb") as file:
            file.write(content)


class Hook:
    """Lets the writer finish at the moment when torch opens the file: between the begin and the end of the load."""

    def __init__(self, writer):
        self.writer = writer
        self.done = False

    def __call__(self, event, args):
        """Wait for the writer, once."""
        if event == "open" and args[0] == "written.pth" and args[1] is not None and not self.done:
            self.done = True
            self.writer.stdin.write("go\n")
            self.writer.stdin.flush()
            self.writer.stdout.readline()


def while_written():
    """Load a file that is half written when the load begins."""
    command = [sys.executable, "-I", "-c", WRITER, "complete.pth", "written.pth"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        writer.stdout.readline()
        sys.addaudithook(Hook(writer))
        attempt("written.pth")


make()
for each in ("complete.pth", "legacy.pth", "truncated.pth", "empty.pth", "lfs.pth", "html.pth", "missing.pth"):
    attempt(each)
while_written()
torch.save({"b": 1}, "complete.pth")
