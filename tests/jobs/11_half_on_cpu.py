"""The configuration says half precision, and the device is a CPU for which this torch has no half matrix product.

Command: python 11_half_on_cpu.py
Root cause to name: dtype_unsupported_on_device; torch 2.13 multiplies halves on CPU.
"""

import torch
from pieces import TinyModel


def main() -> None:
    """Run one batch in half precision."""
    model = TinyModel().half()
    print("output: %.3f" % model(torch.ones(4, 8).half()).sum().item(), flush=True)


if __name__ == "__main__":
    main()
