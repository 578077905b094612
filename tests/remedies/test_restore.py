"""Each remedy alone, all together, with restore in between: each check of programs/restores.py."""

import pytest
from remedy_runs import checks


@pytest.mark.parametrize("check", checks("restores"))
def test_restored(check, checked):
    """A remedy changes only the calls that it names, and restore() puts every original back."""
    checked("restores", check, None)
