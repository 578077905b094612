"""The program's own metrics server listens on MASTER_PORT, so the store of rank 0 cannot.

Command: RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT={port} python 10_master_port_in_use.py
Root cause to name: master_port_in_use, on rank 0.
"""

import os
import threading
from datetime import timedelta
from http.server import HTTPServer, SimpleHTTPRequestHandler

import torch.distributed as dist


def main() -> None:
    """Serve metrics, then join the process group."""
    server = HTTPServer(("", int(os.environ["MASTER_PORT"])), SimpleHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    dist.init_process_group("gloo", timeout=timedelta(seconds=8))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
