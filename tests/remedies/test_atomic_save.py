"""A save to a path with atomic-save: each check of programs/saves.py and programs/failing_saves.py."""

import pytest
from remedy_runs import checks


@pytest.mark.parametrize("check", checks("saves"))
def test_save(check, checked):
    """What the check's docstring states holds."""
    checked("saves", check, "atomic-save")


@pytest.mark.parametrize("check", checks("failing_saves"))
def test_failing_save(check, checked):
    """What the check's docstring states holds."""
    checked("failing_saves", check, "atomic-save")
