"""What the tests of the diagnosis share: the examples of all rules, and the recorded jobs."""

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "jobs")]
