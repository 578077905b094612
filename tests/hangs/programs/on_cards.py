"""Runs another program with the backend eccl where it asks for gloo: on_cards.py PROGRAM [ARGUMENTS]."""

import os
import runpy
import sys

import torch.distributed as dist
import torch_gcu  # noqa: F401  # it registers the backend

_join = dist.init_process_group


def join(backend, **options):
    """Join the process group of the cards."""
    _join("eccl" if backend == "gloo" else backend, **options)


if __name__ == "__main__":
    dist.init_process_group = join
    del sys.argv[0]
    sys.path.insert(0, os.path.dirname(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
