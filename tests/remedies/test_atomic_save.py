"""A save to a path with atomic-save: each check of programs/saves.py and programs/failing_saves.py."""

import pytest
from remedy_runs import checks


@pytest.mark.parametrize("check", checks("saves"))
def test_save(check, checked):
    """A save that succeeds leaves at its path what torch.save leaves there without the remedy."""
    checked("saves", check, "atomic-save")


@pytest.mark.parametrize("check", checks("failing_saves"))
def test_failing_save(check, checked):
    """A save that fails raises what it raises without the remedy; if no file can replace the old one, the save writes over it."""
    checked("failing_saves", check, "atomic-save")
