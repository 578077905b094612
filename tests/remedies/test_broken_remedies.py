"""A remedy that fails leaves the job's call as the job made it: each check of programs/broken.py."""

import pytest
from remedy_runs import checks


@pytest.mark.parametrize("check", checks("broken"))
def test_broken(check, checked):
    """Whatever fails inside a remedy, the call does what it does without it, and the failure is recorded."""
    checked("broken", check, "auto", DDP_PROBE_STRICT=None)
