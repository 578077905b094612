"""What following needs: the simulated cards, and the pieces of the failing jobs."""

import sys
from pathlib import Path

from accelerator.fixtures import gcu_env

__all__ = ["gcu_env"]

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent / "jobs")]
