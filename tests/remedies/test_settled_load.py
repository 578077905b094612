"""A load with settled-load: each check of programs/settled_loads.py."""

import pytest
from remedy_runs import checks


@pytest.mark.parametrize("check", checks("settled_loads"))
def test_settled_load(check, checked):
    """What the check's docstring states holds."""
    checked("settled_loads", check, "settled-load")
