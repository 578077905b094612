"""Makes ``python -m ddp_probe`` the command line."""

import sys

from ddp_probe.cli import main

if __name__ == "__main__":
    sys.exit(main())
