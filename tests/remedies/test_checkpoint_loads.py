"""A load with map-location and weights-only: each check of programs/loads.py."""

import pytest
from remedy_runs import checks


@pytest.mark.parametrize("check", checks("loads"))
def test_load(check, checked):
    """What the check's docstring states holds."""
    checked("loads", check, "map-location,weights-only,settled-load")
