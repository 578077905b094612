"""The program is written for a newer torch than this host has: torch.compile is not there before 2.0.

Command: python 11_newer_torch_needed.py
Root cause to name: framework_version_incompat.
"""

import torch
from pieces import TinyModel


def main() -> None:
    """Compile the model; it is never run."""
    model = torch.compile(TinyModel(), backend="eager")
    print("compiled %s" % type(model).__name__, flush=True)


if __name__ == "__main__":
    main()
