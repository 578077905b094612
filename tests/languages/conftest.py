"""What the tests of the languages share: the parts of scripts/render_docs."""

import sys
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(REPO / "scripts")]
