"""A load with map-location and weights-only: each check of programs/loads.py."""

import pytest
from remedy_runs import checks


@pytest.mark.parametrize("check", checks("loads"))
def test_load(check, checked):
    """A load that map-location or weights-only repairs returns what was saved; any other load returns or fails as it does without them."""
    checked("loads", check, "map-location,weights-only,settled-load")
