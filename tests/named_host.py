"""One host in tests: takes a host name of its own, may put a folder of its own at a path that all hosts share, and becomes a command.

Arguments: the host name; the folder and the path, or two empty words; the command.
"""

import ctypes
import os
import socket
import subprocess
import sys

_NEW_UTS = 0x04000000  # CLONE_NEWUTS: a host name of its own


def main():
    """Take the name and the folder; become the command."""
    name, own, shared, *command = sys.argv[1:]
    if ctypes.CDLL(None, use_errno=True).unshare(_NEW_UTS):
        raise OSError(ctypes.get_errno(), "unshare")
    socket.sethostname(name)
    if own:  # 'ip netns exec' has made a mount namespace for this process
        subprocess.run(["mount", "--bind", own, shared], check=True)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
