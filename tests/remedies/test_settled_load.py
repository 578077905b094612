"""A load with settled-load: each check of programs/settled_loads.py."""

import pytest
from remedy_runs import checks


@pytest.mark.parametrize("check", checks("settled_loads"))
def test_settled_load(check, checked):
    """A load returns one whole checkpoint or fails as it does without the remedy, and waits only for a young or incomplete file."""
    checked("settled_loads", check, "settled-load")
