"""Makes ``python -m ddp_probe`` the command line."""

import sys

from ddp_probe.activation._installed import own_modules

if __name__ == "__main__":
    with own_modules():  # -m puts the folder of the job first on the path, and a rich.py may lie there
        from ddp_probe.cli import main

        sys.exit(main())
